"""Pages stay short, and each section of the pages of measurements has a benchmark that owns it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.benchmarks.measured_page import OPS_PAGE, PAGE, with_section, words_of
from tests.tidy.source import ROOT

BENCHMARKS = ROOT / "tests" / "benchmarks"
BYTES_MAX = {
    "docs/measurements.md": 30_000, "docs/measured-ops.md": 16_000, "docs/status.md": 12_000,
    "CHANGELOG.md": 4_000,
}  # fmt: skip
README_LINES_MAX = 200
_SECTION = re.compile(r"<!-- (\S+): begin -->\n(.*?)<!-- (\S+): end -->", re.DOTALL)
_FIRST_LINE = re.compile(
    r"`(?P<command>[^`]+)` on (?P<processor>.+), (?P<date>\d{4}-\d\d-\d\d):\n\n"
)


def sections() -> Iterator[tuple[str, str]]:
    """The owner of each section, and what stands between its markers."""
    for page in (PAGE, OPS_PAGE):
        for found in _SECTION.finditer(page.read_text(encoding="utf-8")):
            assert found[1] == found[3]
            yield found[1], found[2]


@pytest.mark.parametrize("page", BYTES_MAX)
def test_a_page_is_short(page: str) -> None:
    """What is superseded, or was an anecdote, is found in the history."""
    assert (ROOT / page).stat().st_size <= BYTES_MAX[page]


def test_the_readme_is_short() -> None:
    """It is read at once."""
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= README_LINES_MAX


def test_each_section_has_one_owner_that_there_is() -> None:
    """A benchmark, or a script elsewhere in the tests; none has two sections; no marker is alone."""
    owners = [owner for owner, _ in sections()]
    assert len(set(owners)) == len(owners)
    texts = [page.read_text(encoding="utf-8") for page in (PAGE, OPS_PAGE)]
    assert sum(text.count("<!-- ") for text in texts) == 2 * len(owners)
    for owner in owners:
        assert (ROOT / owner if "/" in owner else BENCHMARKS / owner).is_file(), owner


def test_each_section_says_how_and_where_it_was_measured() -> None:
    """The command runs the owner; the processor and the date stand beside it; a table follows."""
    for owner, text in sections():
        found = _FIRST_LINE.match(text)
        assert found, owner
        assert owner.removesuffix(".py") in found["command"], owner
        rows = text[found.end() :].splitlines()
        assert len(rows) > 2, owner
        assert len({row.count("|") for row in rows}) == 1, owner


def test_a_benchmark_replaces_its_section_alone() -> None:
    """What stands around the markers stays, as do the other sections."""
    text = "a\n<!-- bench_x.py: begin -->\nold\n<!-- bench_x.py: end -->\nb\n"
    made = with_section(
        text, "bench_x.py", "python x", "Zen 4", "2026-01-02", ("n", "t"), [("r", "1")]
    )
    assert made == (
        "a\n<!-- bench_x.py: begin -->\n`python x` on Zen 4, 2026-01-02:\n\n"
        "| n | t |\n|---|---|\n| r | 1 |\n<!-- bench_x.py: end -->\nb\n"
    )
    with pytest.raises(ValueError, match="one section"):
        with_section(text, "bench_y.py", "", "", "", (), [])


def test_a_command_names_no_folder_of_this_machine() -> None:
    """A path is the name of its option, or its last part."""
    words = ["--models", "/home/me/models", "--page", "--rounds", "5", "/home/me/m.onnx"]
    assert words_of(words) == " --models MODELS --rounds 5 m.onnx"
