"""The tours of README and docs/building.md: what their commands print, run as written over an empty
cache, is what the pages show."""

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
from tests.tidy.test_documents import NOT_RUN

_BLOCK = re.compile(
    r"^```sh\n(?P<commands>.*?)^```\n(?:\n```\n(?P<shown>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
_MARK = "----------"
# What differs between two runs, or with every change of the compiler. A line of three dots stands
# for any number of lines, three dots within a line for any text. A build of files that were just
# written looks into them: then its line is longer.
_TOKENS = {
    "lines": r"^\.\.\.\n",
    "text": r"\.\.\.",
    "looked": r"(?:; 0 actions ran, 0 from the cache, [\d.]+ m?s$)",
    "number": r" *[\d.]+ (?:s|ms|us|[kMG]?B)\b|\d+ bytes at \d+",
    "digest": r"\b(?:k_)?[0-9a-f]{8,64}\b",
}
_STANDS_FOR = _TOKENS | {"lines": r"(?:.*\n)*?", "text": ".*?", "looked": f"{_TOKENS['looked']}?"}
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


def renewed(shown: str, printed: str, digests: dict[str, str]) -> str | None:
    """Return ``shown`` with the numbers and digests of ``printed``, or None where they differ in
    more than that.

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
        texts += [value if kind in ("number", "digest") else token[0], literal]
    assert len({*digests.values()}) == len(digests), "digests that were different are equal"
    return "".join(texts)


@pytest.mark.broad
@pytest.mark.parametrize(
    "page", ["README.md", pytest.param("docs/building.md", marks=pytest.mark.slow)]
)
def test_a_page_shows_what_its_commands_print(page: str, tmp_path: Path, bless: bool) -> None:
    """Line by line, apart from times, sizes and digests, which only have to agree with each other;
    ``--bless`` writes them anew."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks, digests = blocks_of(text), dict[str, str]()
    for block, printed in zip(blocks, run_blocks(blocks, tmp_path / "reader"), strict=True):
        if block.shown is None:
            continue
        now = renewed(block.shown, printed, digests)
        if bless:
            text = text.replace(f"```\n{block.shown}```\n", f"```\n{now or printed}```\n", 1)
        else:
            assert now is not None, f"{block.commands}shows\n{block.shown}and prints\n{printed}"
    if bless:
        (ROOT / page).write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_the_tour_prints_the_same_everywhere(tmp_path: Path) -> None:
    """In two folders, over two empty caches: the same lines in the same order with the same
    digests; times alone differ."""
    blocks = blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
    one, two = (run_blocks(blocks, tmp_path / name) for name in ("one", "another folder"))
    assert [re.sub(_TOKENS["looked"] + "|" + _TOKENS["number"], "", text) for text in one] == [
        re.sub(_TOKENS["looked"] + "|" + _TOKENS["number"], "", text) for text in two
    ]
