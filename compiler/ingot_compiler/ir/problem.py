"""A problem that a verifier finds in a stage, and its message.

In: rules that do not hold. Out: ``Problem`` (of a ``Part``), ``InternalError``. Not done here: the
rules (``verify_*``), places in a text (``text_reader``).
"""

from __future__ import annotations

from collections.abc import Iterable

from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass

Path = tuple[int, ...]
"""Where a part is: its index, or index of the part, of its body, of the part in there, and so
on."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a part of a stage: ``name`` is what it is (an op, a kind of step),
    ``rule`` what does not hold ("" where ``expected`` says it all). An empty ``path`` means the
    whole; one that begins below 0 something beside the parts (a device, a buffer)."""

    path: Path
    name: str
    expected: str
    got: str
    rule: str = ""

    @property
    def why(self) -> str:
        """The rule, what it asks for and what is there."""
        return f"{self.rule or self.name}: expected {self.expected}, got {self.got}"

    def where(self, part: str, whole: str) -> str:
        """``node 3 (conv)``, ``node 1.0.2 (add)`` inside region 0 of node 1, ``b3`` (a path below
        0: no part), or ``the graph``."""
        if self.path and self.path[0] < 0:
            return self.name
        return (
            f"{part} {'.'.join(map(str, self.path))} ({self.name})" if self.path else f"the {whole}"
        )


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a stage that is checked; ``path`` and ``name`` as in its problems."""

    path: Path
    name: str

    def problem(self, expected: str, got: str, rule: str = "") -> Problem:
        """What is wrong with this part."""
        return Problem(self.path, self.name, expected, got, rule)


def require_none(problems: Iterable[Problem], part: str, whole: str, stage: str) -> None:
    """Raise InternalError for the first problem of what the compiler itself made.

    Raises:
        InternalError: names the part, the rule, what was expected and what is there.
    """
    for problem in problems:
        raise InternalError(
            f"the {whole} is malformed",
            problem.where(part, whole),
            problem.why,
            f"this is a bug in ingot: please report it together with the output of `ingot compile --to {stage}`",
        )
