"""Sizes, times and digests on the pages: those that no test writes are listed, so that whoever adds
one sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tidy.source import ROOT
from tests.tidy.test_claims import CLAIMS, NEARLY
from tests.unit.end_to_end.test_demonstration import TOURS

LIST = Path(__file__).with_name("numbers_without_a_test.txt")
# Measurements have dates; the others are written by tests as a whole.
_OTHERS = [
    "measurements", "measured-ops", "status", "json", "coverage", "models", "device-rows",
    "library-rows",
]  # fmt: skip
_FOLDER = sorted((ROOT / "docs").glob("*.md"))
PAGES = (
    "README.md",
    "SECURITY.md",
    *(f"docs/{path.name}" for path in _FOLDER if path.stem not in _OTHERS),
)
_NUMBER = re.compile(
    r"(?<![\w.=<])\d[\d.,]* ?(?:[kMG]i?B|ms|us|microseconds?|milliseconds?|seconds?|minutes?)\b"
    r"|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,64}\b"
)
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def numbers_of(page: str) -> Iterator[str]:
    """The numbers of a page that no test writes, each with some words around it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blank = re.compile("|".join(_held(page)), re.DOTALL) if _held(page) else None
    text = blank.sub(" ", text) if blank else text
    text = _BLOCK.sub(" ", text) if page in TOURS else text
    text = " ".join(text.split())
    for found in _NUMBER.finditer(text):
        yield f"{page}: {text[max(0, found.start() - 40) : found.end() + 20].strip()}"


def _held(page: str) -> list[str]:
    patterns = [pattern for where, pattern in (*CLAIMS, *NEARLY) if where == page]
    return [_without_groups(pattern).replace(" ", r"\s+") for pattern in patterns]


def _without_groups(pattern: str) -> str:
    """The pattern with groups that are not numbered: several are joined."""
    return re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)


@pytest.mark.pages
def test_numbers_without_a_test_are_listed(bless: bool) -> None:
    """``--bless`` writes the list anew; a shorter one is better."""
    text = "".join(f"{line}\n" for page in PAGES for line in dict.fromkeys(numbers_of(page)))
    if bless:
        LIST.write_text(text, encoding="utf-8")
    assert LIST.read_text(encoding="utf-8") == text


def test_what_is_held_is_not_listed() -> None:
    """A claim, a tour."""
    listed = LIST.read_text(encoding="utf-8")
    assert "ziglang" not in listed
    assert "two_layer.ingot" not in listed
