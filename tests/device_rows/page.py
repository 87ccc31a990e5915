"""The pages ``docs/device-rows.md`` and ``docs/library-rows.md``, made from the rows.

In: rows. Out: Markdown; the tests that pytest does not find. Not done here: running the tests
(``__main__``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.device_rows import (
    configuration,
    hooks,
    kept_weaknesses,
    libraries,
    planner,
    runtime,
    text,
    weaknesses,
)
from tests.device_rows.row import Row

Tables = dict[str, tuple[Row, ...]]
_DEVICES = (configuration, planner, text, runtime, hooks, weaknesses, kept_weaknesses)
PAGES: dict[str, Tables] = {
    "docs/device-rows.md": {table.TITLE: table.ROWS for table in _DEVICES},
    "docs/library-rows.md": {libraries.TITLE: libraries.ROWS},
}
ALL: tuple[Row, ...] = tuple(
    row for page in PAGES.values() for rows in page.values() for row in rows
)
_SUBJECTS = {
    "docs/device-rows.md": ("Devices, row by row", "What Ingot promises about devices"),
    "docs/library-rows.md": (
        "Libraries, row by row",
        "What Ingot promises about programs that have no loader ([without-python.md](without-python.md))",
    ),
}
_HEAD = """# {title}

{promise}, and the tests that hold it to that. `tests/device_rows/` has the rows; `pytest --bless
tests/unit/end_to_end/test_device_rows.py` writes this page. `python -m tests.device_rows {some}` runs the tests of rows {rows} and prints
how each row fares; without numbers it runs all. A row is *tested*, or *open*: nothing shows it yet. *decision N* says that a better rule
stands in its place, in [decisions](decisions).
"""


def page_text(page: str) -> str:
    """Return a page."""
    title, promise = _SUBJECTS[page]
    rows = [row.number for table in PAGES[page].values() for row in table]
    first, second = rows[2], rows[12]
    head = _HEAD.format(
        title=title, promise=promise, some=f"{first} {second}", rows=f"{first} and {second}"
    )
    return "\n".join([head, *_lines(PAGES[page])]) + "\n"


def _lines(tables: Tables) -> Iterator[str]:
    states = [row.state.partition(" ")[0] for rows in tables.values() for row in rows]
    tested, replaced, left = map(states.count, ("tested", "decision", "open"))
    yield f"{len(states)} rows: {tested} tested, {replaced} replaced by a decision, {left} open."
    for title, rows in tables.items():
        yield from ("", f"## {title}", "", "| row | says | state | tests |", "|---|---|---|---|")
        for row in rows:
            tests = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in row.tests)
            yield f"| {row.number} | {row.says} | {row.state} | {tests or '–'} |"


def unknown_tests(root: Path) -> list[str]:
    """Return the tests of rows that no file below ``root`` has."""
    tests = {test for row in ALL for test in row.tests}
    return sorted(test for test in tests if not _is_there(root, test))


def _is_there(root: Path, test: str) -> bool:
    path, _, name = test.partition("::")
    return name.partition("[")[0] in _functions(root / path)


@cache
def _functions(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )
