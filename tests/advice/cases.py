"""Commands that fail, and what their errors advise: ``cases.txt``, ``not_run.txt``.

In: these files. Out: ``CASES``; ``NOT_RUN``: advice that names a command and that no case ends in,
with the reason. Not done here: running them (``test_advice``), the files of the commands (``folder``).

A case has a command behind ``$``, and the ``do:`` of its error; ``read:`` is what the reader puts in
the place of a word, ``line:`` what [bundle.b] of the project says, ``before:`` a command that
succeeds first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Case:
    """One command; ``{folder}`` and ``{level}`` in ``do`` stand for those of the test."""

    command: str
    do: str
    values: Mapping[str, str]
    lines: tuple[str, ...]
    before: tuple[str, ...]


def _paragraphs(name: str) -> Iterator[list[str]]:
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return (paragraph.strip().split("\n") for paragraph in text.split("\n\n"))


def _case(paragraph: list[str]) -> Case:
    def said(key: str) -> tuple[str, ...]:
        return tuple(line.removeprefix(key) for line in paragraph if line.startswith(key))

    (command,), (do,) = said("$ "), said("do: ")
    values = dict(text.split(" -> ", 1) for text in said("read: "))
    return Case(command, do, values, said("line: "), said("before: "))


CASES = tuple(map(_case, (it for it in _paragraphs("cases.txt") if not it[0].startswith("#"))))
NOT_RUN = {
    text: reason.removeprefix("# ")
    for reason, *texts in _paragraphs("not_run.txt")
    for text in texts
}
"""Advice -> why no case ends in it."""
