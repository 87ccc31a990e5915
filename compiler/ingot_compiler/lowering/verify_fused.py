"""What is always true of stage 6 about devices, checked.

In: a fused graph. Out: nothing, or an ``InternalError`` that names the step. Not done here: layouts, bounds of accesses (``interpret_loops``).
"""

from __future__ import annotations

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.fused import Copy, FusedGraph, Group, Grow, SymbolRead, all_steps


def verify_fused(fused: FusedGraph) -> None:
    """Check that a kernel touches buffers of its own device alone, a copy joins two, and the host alone reads sizes.

    Raises:
        InternalError: a rule is broken; the compiler is at fault.
    """
    device_of = [buffer.device for buffer in fused.buffers]
    for buffer, spec in enumerate(fused.buffers):
        if spec.kind in ("input", "output") and spec.device:
            raise _broken(f"buffer b{buffer}", f"an {spec.kind} lies on the host", f"device {spec.device}")
    for index, step in enumerate(all_steps(fused.steps)):
        where = f"step {index}"
        if isinstance(step, Group):
            for operand in (*step.operands, *step.results):
                if device_of[operand.buffer] != step.device:
                    got = f"b{operand.buffer} on device {device_of[operand.buffer]}"
                    raise _broken(where, f"a kernel of device {step.device} touches its buffers", got)
        elif isinstance(step, Copy):
            if device_of[step.operand] == device_of[step.result]:
                raise _broken(where, "a copy crosses between devices", f"device {device_of[step.result]} twice")
        elif isinstance(step, SymbolRead | Grow) and device_of[step.buffer]:
            raise _broken(
                where, "sizes and grown buffers are the host's", f"b{step.buffer} on device {device_of[step.buffer]}"
            )


def _broken(where: str, expected: str, got: str) -> InternalError:
    return InternalError("the fused graph is not valid", where=where, why=f"expected {expected}, got {got}")
