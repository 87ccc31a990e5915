"""What back ends have in common whose library is a table of kernels and their text.

In: a loop program; what a library is asked to hold. Out: ``DeviceKernel``, the start
of its row, or a refusal. Not done here: the text (one back end each), how a loader reads a row
(``ingot_runtime_devices.kernel_table``).
"""

from __future__ import annotations

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """``symbol`` names the content; ``row``: what a loader must know of the kernel."""

    symbol: str
    row: str
    text: str


def kernel_row(program: LoopProgram, symbol: str, *, has_report: bool) -> str:
    """Return how many buffers and scalars a kernel takes, whether it may report a code, and whether
    it has scratch."""
    flags = f"{int(has_report)} {int(program.scratch_bytes != 0)}"
    return f"{symbol} {len(program.buffers)} {len(program.scalars)} {flags}"


def require_kernels_alone(main: bytes | None, support: bytes, target: str) -> None:
    """Refuse what such a library cannot hold.

    Raises:
        InternalError: a `main`, or support.
    """
    if main is not None or support:
        raise InternalError("a library with a main, or with support", where=f"target {target}")
