"""The page ``docs/device-rows.md``, made from the rows.

In: rows. Out: Markdown; the tests that pytest does not find. Not done here: running the tests
(``__main__``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.device_rows import configuration, hooks, planner, runtime, text, weaknesses
from tests.device_rows.row import Row

PAGE = "docs/device-rows.md"
TABLES = {
    table.TITLE: table.ROWS for table in (configuration, planner, text, runtime, hooks, weaknesses)
}
ALL: tuple[Row, ...] = tuple(row for rows in TABLES.values() for row in rows)
_HEAD = """# Devices, row by row

What Ingot promises about devices, and the tests that hold it to that. `tests/device_rows/` has the rows; `pytest --bless
tests/unit/test_device_rows.py` writes this page. `python -m tests.device_rows 3 13` runs the tests of rows 3 and 13 and prints
how each row fares; without numbers it runs all. A row is *tested*, or *open*: nothing shows it yet. *decision N* says that a better rule
stands in its place, in [decisions](decisions).
"""


def page_text() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_lines()]) + "\n"


def _lines() -> Iterator[str]:
    states = [row.state.partition(" ")[0] for row in ALL]
    tested, replaced, left = map(states.count, ("tested", "decision", "open"))
    yield f"{len(ALL)} rows: {tested} tested, {replaced} replaced by a decision, {left} open."
    for title, rows in TABLES.items():
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
