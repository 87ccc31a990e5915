"""``docs/without-python.md`` tells of every function of ``ingot.h``, and names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "without-python.md").read_text(encoding="utf-8")


def test_every_function_is_told() -> None:
    """The header has no other names of functions than the page's table, and at most 15."""
    header = (ROOT / "runtime" / "c" / "ingot.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"^(?:\w+ )+\*?(ingot_\w+)\(", header, re.MULTILINE))
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `ingot_")]
    told = {name for row in rows for name in re.findall(r"`(ingot_\w+)`", row)}
    assert declared == told - {"ingot_header_version"}
    assert len(declared) <= 15


def test_rows_name_tests_that_there_are() -> None:
    """A test that was renamed or removed leaves no row behind."""
    named = re.findall(r"`([\w/]+/\w+\.py)::(\w+)`", PAGE)
    assert len(named) >= 15
    for file, test in named:
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"\ndef {test}(" in text, (file, test)
