"""Collects everything that is wrong with a project, so that one error lists it all.

In: problems as they are found. Out: ``UserError``. Not done here: finding them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ingot_build_rules.making.project.lines import Path
from ingot_compiler.ir.errors import UserError

_CHOICES_SHOWN_MAX = 12
PROBLEMS_MAX = 20
"""Where looking for more stops: nobody reads on, and each suggestion takes its time."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where in the project: ``text`` is for people (``ingot.toml:12``), ``line`` orders, 0 for
    outside of a file."""

    line: int
    text: str


@dataclass(frozen=True, slots=True, order=True)
class ProjectProblem:
    """One mistake, in the four parts of an error."""

    where: Place
    what: str
    why: str
    do: str

    def __str__(self) -> str:
        return f"{self.where.text}: {self.what}: {self.why}; {self.do}"


Locate = Callable[[Path], Place]
"""Path of a key -> its place, or the nearest table's."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The problems found so far; ``path`` names the project, ``locate`` finds the place of the next
    problem."""

    path: str
    locate: Locate
    problems: list[ProjectProblem] = field(default_factory=list[ProjectProblem])

    def add(self, at: Path, what: str, why: str, do: str) -> None:
        """Note one problem of the key or table ``at``.

        Raises:
            UserError: there are so many that the rest can wait.
        """
        self.problems.append(ProjectProblem(self.locate(at), what, why, do))
        if len(self.problems) >= PROBLEMS_MAX:
            raise _error_of(self.problems, self.path, "or more")

    def raise_all(self) -> None:
        """Raise one UserError for all problems; nothing when there are none."""
        if self.problems:
            raise _error_of(self.problems, self.path)


def _error_of(problems: Sequence[ProjectProblem], path: str, more: str = "") -> UserError:
    if len(problems) == 1:
        (only,) = problems
        return UserError(only.what, only.where.text, only.why, only.do)
    listed = "".join(f"\n    {problem}" for problem in sorted(problems))
    count = f"{len(problems)} {more}".strip()
    return UserError(f"{count} problems", path, listed, "correct these")


def one_of(choices: Iterable[str]) -> str:
    """Say what was expected; a long list is cut."""
    names = sorted(choices)
    if not names:
        return "there is none"
    cut = len(names) - _CHOICES_SHOWN_MAX
    more = f" and {cut} more" if cut > 0 else ""
    return f"expected one of {', '.join(names[:_CHOICES_SHOWN_MAX])}{more}"


def closest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that was probably meant."""
    found = difflib.get_close_matches(name, sorted(choices), n=1)
    return found[0] if found else None


def did_you_mean(name: str, choices: Iterable[str], otherwise: str) -> str:
    """Say which choice was probably meant, else what to do instead."""
    close = closest(name, choices)
    return otherwise if close is None else f"did you mean {close!r}?"
