"""The hook ``parse_target`` of ``opencl``: the version of OpenCL C that kernels are written in.

In: a text. Out: an ``OpenClTarget``. Not done here: which devices know it (the device opens, or
says what is missing).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass

TARGET = "opencl-c-1.2"


@dataclass(frozen=True, slots=True)
class OpenClTarget:
    """OpenCL C 1.2, which every later driver compiles as well; it has no features of a
    processor."""

    features: tuple[str, ...] = ()
    rank: int = 0

    def __str__(self) -> str:
        return TARGET


def read_target(text: str, host_targets: Sequence[str]) -> OpenClTarget:
    """Read a target; there is one.

    Raises:
        UserError: another text.
    """
    del host_targets
    if text not in ("", TARGET):
        raise UserError(
            f"unknown target {text!r} of an opencl device",
            where=f"target {text}",
            why=f"expected {TARGET}",
            do="leave target= out",
        )
    return OpenClTarget()
