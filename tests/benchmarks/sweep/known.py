"""Cases that are known to be slower than ONNX Runtime's, or to differ from it, each with why.

In: names. Out: what is known of one. Not done here: measuring (``bench_algorithms``).
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Known:
    """Cases by a pattern of their names; ``ratio_max``: how slow they may be."""

    pattern: str
    ratio_max: float
    why: str


SLOWER: tuple[Known, ...] = ()


DIFFERENT: tuple[tuple[str, str], ...] = (
    (
        "* trees of 2 classes, *",
        "ONNX's reference takes the class of the greater score, ONNX Runtime looks at the second",
    ),
)
"""Names, and why results are not those of ONNX Runtime."""


def known(name: str) -> Known | None:
    """Return what is known of a case."""
    return next((row for row in SLOWER if fnmatchcase(name, row.pattern)), None)


def may_differ(name: str) -> bool:
    """Whether results of a case are known to differ."""
    return any(fnmatchcase(name, pattern) for pattern, _ in DIFFERENT)
