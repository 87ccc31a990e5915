"""What is always true of stage 6 about devices, checked.

In: a fused graph. Out: nothing, or an ``InternalError`` that names the step. Not done here: layouts, bounds of accesses (``interpret_loops``).
"""

from __future__ import annotations

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.fused import Copy, FusedGraph, Group, Grow, Launch, SymbolRead, all_steps, buffers_of


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
        if isinstance(step, Group | Launch):
            group = step.group if isinstance(step, Launch) else step
            for buffer in step.buffers if isinstance(step, Launch) else buffers_of(step):
                if device_of[buffer] != group.device:
                    got = f"b{buffer} on device {device_of[buffer]}"
                    raise _broken(where, f"a kernel of device {group.device} touches its buffers", got)
        elif isinstance(step, Copy):
            if device_of[step.operand] == device_of[step.result]:
                raise _broken(where, "a copy crosses between devices", f"device {device_of[step.result]} twice")
        elif isinstance(step, SymbolRead | Grow) and device_of[step.buffer]:
            raise _broken(
                where, "sizes and grown buffers are the host's", f"b{step.buffer} on device {device_of[step.buffer]}"
            )


def _broken(where: str, expected: str, got: str) -> InternalError:
    return InternalError("the fused graph is not valid", where=where, why=f"expected {expected}, got {got}")
