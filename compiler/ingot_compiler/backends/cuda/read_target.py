"""The hook ``parse_target`` of ``cuda``: the architectures that kernels are compiled for.

In: ``sm_75``, or several with ``+`` between them. Out: a ``CudaTarget``. Not done here: which
devices run them (the device opens, or says what is missing).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ingot_compiler.backends.cuda.architectures import ARCHITECTURES, Architecture
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass

_BETWEEN = "+"


@dataclass(frozen=True, slots=True)
class CudaTarget:
    """``architectures`` in the order of their age. It has no features of a processor: the library
    itself says what it needs."""

    architectures: tuple[Architecture, ...]
    features: tuple[str, ...] = ()
    rank: int = 0

    def __str__(self) -> str:
        return _BETWEEN.join(each.name for each in self.architectures)


def read_target(text: str, host_targets: Sequence[str]) -> CudaTarget:
    """Read a target; "" is the oldest architecture, which every later GPU runs as well.

    Raises:
        UserError: an unknown architecture, or one twice.
    """
    del host_targets
    names = text.split(_BETWEEN) if text else [ARCHITECTURES[0].name]
    known = [each.name for each in ARCHITECTURES]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise UserError(
                f"unknown architecture {name!r} of a cuda device",
                where=f"target {text}",
                why=f"expected {', '.join(known)}, or several with {_BETWEEN} between them",
                do=f"did you mean {close[0]!r}?" if close else "leave target= out",
            )
        if names.count(name) > 1:
            what, why = f"architecture {name!r} is given twice", "expected it once"
            raise UserError(what, f"target {text}", why, "leave one out")
    return CudaTarget(tuple(each for each in ARCHITECTURES if each.name in names))
