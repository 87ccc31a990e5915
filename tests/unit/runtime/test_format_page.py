"""The tables of ``runtime/FORMAT.md`` are those of the code; ``--bless`` writes them anew. The last
column, what something means, is the page's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import pytest

from ingot_runtime.format import abi, header, limits, plan
from ingot_runtime.format.dtypes import DTYPE_MINORS, DTYPE_NAMES, DTYPE_SIZES_BYTES
from ingot_runtime.format.program import OPCODES
from ingot_runtime.format.schema import Record, Row, layout

PAGE = Path(__file__).parents[3] / "runtime" / "FORMAT.md"
Cells = tuple[str, ...]
# Records of words and texts, and those of fixed size, by the names that the page has for them.
RECORDS: dict[str, type[Record]] = {
    "plan": plan.BundlePlan,
    "device": plan.DevicePlan,
    "library": plan.LibraryPlan,
    "tensor": plan.TensorPlan,
    "variant": plan.VariantPlan,
    "value": plan.ValuePlan,
}
STRUCTS: dict[str, type[Record]] = {
    "header": header.Header,
    "section": header.Section,
    "state": plan.StatePlan,
}


def type_of(row: Row) -> str:
    """What a field is, and its bounds."""
    if row.kind == "word":
        return f"{row.low} to {row.high}"
    if row.kind == "records":
        record = next(name for name, record in RECORDS.items() if record is row.of)
        return f"{row.low} to {row.high} of `{record}`"
    if row.kind == "words per device":
        return f"for each device {row.low} to {row.high}"
    return f"{row.kind}, at most {row.high}" if row.high else row.kind


def record_rows(record: type[Record]) -> Iterator[Cells]:
    """A row for each field of words and texts."""
    for row in record.rows:
        yield f"`{row.name}`", type_of(row), f"`{row.key}`" if row.key else "", f"1.{row.since}"


def struct_rows(record: type[Record]) -> Iterator[Cells]:
    """A row for each field of fixed size, which is where those before end."""
    at = 0
    for row in record.rows:
        yield str(at), f"`{row.name}`", f"{row.high} {row.kind}" if row.high else row.kind
        at += layout(type("One", (Record,), {"value": Row(row.kind, high=row.high)})).size


def tables() -> Iterator[tuple[Cells, Sequence[Cells]]]:
    """Columns and rows, without the last one."""
    for name, record in STRUCTS.items():
        yield (f"byte of `{name}`", "field", "type"), list(struct_rows(record))
    for name, record in RECORDS.items():
        yield (f"field of `{name}`", "type", "in the manifest", "since"), list(record_rows(record))
    yield (
        ("kind", "name", "alignment", "bytes at most", "since", "optional"),
        [
            (
                str(at), kind.name, str(kind.alignment), str(kind.size_bytes_max),
                f"1.{kind.since}", "yes" if kind.is_optional else "",
            )
            for at, kind in enumerate(header.SECTION_KINDS)
            if at
        ],
    )  # fmt: skip
    kinds = zip(plan.DEVICE_KINDS, plan.DEVICE_KIND_MINORS, strict=True)
    yield (
        ("device kind", "name", "since"),
        [(str(at), name, f"1.{since}") for at, (name, since) in enumerate(kinds)],
    )
    rows = zip(DTYPE_NAMES, DTYPE_SIZES_BYTES, DTYPE_MINORS, strict=True)
    yield (
        ("dtype", "name", "bytes", "since"),
        [(str(at), name, str(size), f"1.{since}") for at, (name, size, since) in enumerate(rows)],
    )
    yield (
        ("code", "name", "operands", "since"),
        [
            (str(code), f"`{name}`", kinds or "-", f"1.{since}")
            for code, (name, kinds, _, since, _) in enumerate(OPCODES)
        ],
    )
    names = [name for name in vars(limits) if name.isupper()]
    yield ("name", "value"), [(f"`{name}`", str(getattr(limits, name))) for name in names]


def with_table(page: str, columns: Cells, rows: Sequence[Cells]) -> str:
    """The page with one table anew; what a row means stays."""
    start = page.index(f"| {' | '.join(columns)} | ")
    end = start + len(
        "".join(takewhile(lambda line: line[0] == "|", page[start:].splitlines(keepends=True)))
    )
    head, line, *lines = page[start:end].splitlines()
    written = [tuple(cell.strip() for cell in text[2:].split(" |")) for text in lines]
    key = (
        columns.index("name")
        if "name" in columns
        else columns.index("field")
        if "field" in columns
        else 0
    )
    meanings = {cells[key]: cells[len(columns)] for cells in written}
    made = [f"| {' | '.join(cells)} | {meanings.get(cells[key], '')} |" for cells in rows]
    return page[:start] + "".join(f"{text}\n" for text in [head, line, *made]) + page[end:]


def with_struct(page: str, struct: abi.Struct) -> str:
    """The page with the line of a struct of the ABI anew."""
    fields = (f"{name} {kind} @{struct.offsets[name]}" for name, kind in struct.fields)
    line = f"- `{struct.name}` ({struct.size_bytes} bytes): {', '.join(fields)}"
    return re.sub(rf"^- `{struct.name}` \(.*$", line, page, flags=re.MULTILINE)


@pytest.mark.pages
def test_the_page_has_the_tables(bless: bool) -> None:
    """Records, kinds, codes, limits and structs are as the code has them, and each is explained."""
    made = PAGE.read_text(encoding="utf-8")
    for columns, rows in tables():
        made = with_table(made, columns, rows)
    for struct in (abi.CALL, abi.TENSOR, abi.DEVICE, abi.WATCH):
        made = with_struct(made, struct)
    exports = ", ".join(f"`{name}`" for name in abi.EXPORTS)
    made = re.sub(r"(?<=the exports )`.*`(?=; then of the kernels)", exports, made)
    version = f"{header.VERSION_MAJOR}.{header.VERSION_MINOR}"
    made = re.sub(r"(?<=^# The bundle format, version )[\d.]+", version, made)
    if bless:
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made
    assert not re.findall(r"^\| .*\|  \|$", made, re.MULTILINE), "say what it means"
