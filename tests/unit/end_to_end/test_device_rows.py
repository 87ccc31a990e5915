"""``docs/device-rows.md`` and ``docs/library-rows.md``: made from ``tests/device_rows``, naming tests that there are."""

from pathlib import Path

import pytest
from tests.device_rows.page import ALL, PAGES, page_text, unknown_tests

ROOT = Path(__file__).parents[3]


@pytest.mark.pages
@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_the_rows(name: str, bless: bool) -> None:
    """``--bless`` writes it anew."""
    page = ROOT / name
    if bless:
        page.write_text(page_text(name), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == page_text(name)


def test_rows_name_tests_that_there_are() -> None:
    """A test that was renamed or removed leaves no row behind; each row is there once."""
    assert unknown_tests(ROOT) == []
    numbers = [row.number for row in ALL]
    assert len(set(numbers)) == len(numbers)


def test_every_decision_of_a_row_is_a_record() -> None:
    """What stands in the place of a row is written down."""
    records = {int(path.name[:4]) for path in (ROOT / "docs/decisions").glob("0*.md")}
    assert {row.decision for row in ALL} <= {0, *records}


def test_no_weakness_is_left_out() -> None:
    """All 38 have a row; a heading says that those are mended that tests show."""
    weaknesses = {row.number for row in ALL if row.number.startswith("w")}
    assert weaknesses == {f"w{number}" for number in range(1, 39)}
    for tables in PAGES.values():
        for title, rows in tables.items():
            if title.endswith(", mended"):
                assert {row.state for row in rows} == {"tested"}
