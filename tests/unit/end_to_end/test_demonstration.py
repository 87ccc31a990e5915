"""The tours of some pages, and the demonstration: what their commands print, run as written over an
empty cache, is what the pages show, to the last digit of every size and digest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.tidy.source import ROOT
from tests.tidy.test_documents import NOT_RUN, make_files

_BLOCK = re.compile(
    r"^```sh\n(?P<commands>.*?)^```\n(?:\n```\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
TOURS = ("README.md", "docs/building.md", "docs/targets.md")
_MARK = "----------"
# A line of three dots stands for any number of lines, three dots within a line for any text: so for
# times, and for what a processor decides, which no page shows. A build of files that were just
# written looks into them: then its line is longer. ``--bless`` writes sizes and digests.
_TIME = r" *\b[\d.]+ (?:s|ms|us)\b"
_TOKENS = {
    "lines": r"^\.\.\.\n",
    "looked": r"(?:; 0 actions ran, 0 from the cache, \.\.\.$)",
    "text": r"\.\.\.",
    "time": _TIME,
    "size": r" *\b[\d.]+ [kMG]?B\b|\d+ bytes at \d+",
    "digest": r"\b(?:k_)?[0-9a-f]{8,64}\b",
}
_STANDS_FOR = _TOKENS | {
    "lines": r"(?:.*\n)*?",
    "text": ".*?",
    "looked": f"(?:; 0 actions ran, 0 from the cache,{_TIME}$)?",
}
_TOKEN = re.compile(
    "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _TOKENS.items()), re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Block:
    """Commands of a page, and what it shows below them, if anything."""

    commands: str
    shown: str | None


def blocks_of(text: str) -> list[Block]:
    """Return the shell blocks of a page without the commands that are not run."""
    return [
        Block(
            "".join(
                line
                for line in found[1].splitlines(keepends=True)
                if not line.startswith(tuple(NOT_RUN))
            ),
            found[2],
        )
        for found in _BLOCK.finditer(text)
    ]


def run_blocks(blocks: Sequence[Block], folder: Path) -> list[str]:
    """Run all blocks in one shell in ``folder``, over an empty cache; return what each printed."""
    folder.mkdir(exist_ok=True)
    (folder / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            "set -eu\n" + f"echo '{_MARK}'\n".join(block.commands for block in blocks),
        ],
        cwd=folder,
        env={**os.environ, "PATH": path, "INGOT_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.replace(str(folder), "...").split(f"{_MARK}\n")


def without_times(printed: str) -> str:
    """Three dots for each time, aligned ones included."""
    return re.sub(_TIME, lambda found: " " * found[0].startswith(" ") + "...", printed)


def renewed(shown: str, printed: str, digests: dict[str, str]) -> str | None:
    """Return ``shown`` with the sizes and digests of ``printed``, and no times, or None where they
    differ in more than that.

    Args:
        shown: what a page says.
        printed: what was printed.
        digests: those of the page so far -> those that were printed; what was one digest has to be
            one again.
    """
    tokens = list(_TOKEN.finditer(shown))
    literals = _TOKEN.sub("\0", shown).split("\0")
    parts = [re.escape(literals[0])]
    for token, literal in zip(tokens, literals[1:], strict=True):
        parts += [f"({_STANDS_FOR[str(token.lastgroup)]})", re.escape(literal)]
    found = re.fullmatch("".join(parts), printed, re.MULTILINE)
    if found is None:
        return None
    texts: list[str] = [literals[0]]
    for token, value, literal in zip(tokens, found.groups(), literals[1:], strict=True):
        kind = token.lastgroup
        if kind == "digest":
            assert digests.setdefault(token[0], value) == value, (
                f"{token[0]} is now {value} and {digests[token[0]]}"
            )
        kept = value if kind in ("size", "digest") else token[0]
        texts += [without_times(kept), literal]
    assert len({*digests.values()}) == len(digests), "digests that were different are equal"
    return "".join(texts)


@pytest.mark.pages
@pytest.mark.parametrize("page", TOURS)
def test_a_page_shows_what_its_commands_print(page: str, tmp_path: Path, bless: bool) -> None:
    """Line by line, with every size and every digest, but for times; ``--bless`` writes it anew."""
    blocks, digests = blocks_of((ROOT / page).read_text(encoding="utf-8")), dict[str, str]()
    reader = tmp_path / "reader"
    if page == "docs/targets.md":
        reader.mkdir()
        make_files(reader)
    for block, printed in zip(blocks, run_blocks(blocks, reader), strict=True):
        if block.shown is None:
            continue
        now = renewed(block.shown, printed, digests)
        if bless:
            now = without_times(printed) if now is None else now
            text = (ROOT / page).read_text(encoding="utf-8")  # somebody may write it meanwhile
            text = text.replace(f"```\n{block.shown}```\n", f"```\n{now}```\n", 1)
            (ROOT / page).write_text(text, encoding="utf-8")
        else:
            assert now == block.shown, f"{block.commands}shows\n{block.shown}and prints\n{printed}"


@pytest.mark.slow
def test_the_tour_prints_the_same_everywhere(tmp_path: Path) -> None:
    """In two folders, over two empty caches: the same lines in the same order with the same
    digests; times alone differ."""
    blocks = blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
    one, two = (run_blocks(blocks, tmp_path / name) for name in ("one", "another folder"))
    looked = f"; 0 actions ran, 0 from the cache,{_TIME}$"
    printed_one, printed_two = (
        [without_times(re.sub(looked, "", text, flags=re.MULTILINE)) for text in texts]
        for texts in (one, two)
    )
    assert printed_one == printed_two


@pytest.mark.pages
def test_the_demonstration_prints_what_the_page_shows(tmp_path: Path) -> None:
    """README shows the lines of ``make demo``, but for what the machine decides."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.partition("It prints the following")[2].split("```\n")[1]
    demo = [sys.executable, str(ROOT / "examples" / "demo.py")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        demo,
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "INGOT_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert renewed(shown, done.stdout, {}) == shown, done.stdout


def test_times_are_left_out() -> None:
    """Of a line, of columns; what is no time stays."""
    assert (
        without_times("196.6 kB, 2.96 s\nload 8.62 ms, run 741.7 us\n")
        == "196.6 kB, ...\nload ..., run ...\n"
    )
    assert without_times("  ran     113.69 ms  import_model") == "  ran ...  import_model"
    assert renewed("a 1.0 kB, ...\n", "a 2.0 kB, 3 s\n", {}) == "a 2.0 kB, ...\n"
    assert renewed("b 1.0 kB\n", "a 2.0 kB\n", {}) is None
