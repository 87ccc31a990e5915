"""The number of iterations of a loop of a program.

In: an extent, the context. Out: an integer, or an i64 operand. Not done here: the loops
(``for_loop``, ``reduce``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lane_index import lane_stride
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import Dim, dim_max, substitute
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.sizes.ranges import is_nonnegative


def integer_extent(context: EmitContext, extent: Dim, what: str) -> int:
    """The number of copies that an unrolled loop makes; ``what`` names the loop in the error."""
    number = substitute(extent, context.constants)
    if not isinstance(number, int):
        raise InternalError(f"{what} has an extent that is no integer", why=f"extent {extent}")
    return number


def loop_extent(context: EmitContext, extent: Dim) -> LlvmValue:
    """The number of iterations, at least 0; the same for all lanes of an enclosing vector loop."""
    if lane_stride(context, extent) != 0:
        raise InternalError("a loop's extent differs between lanes", why=f"extent {extent}")
    known = substitute(extent, context.constants)
    if not is_nonnegative(known, context.is_signed):
        known = dim_max(known, 0)
    return emit_index(context, known)


def refuse_nested_lanes(context: EmitContext, variable: str) -> None:
    """Raise ``InternalError`` if a vector loop over ``variable`` would stand inside another."""
    if context.vector is not None:
        raise InternalError(
            f"vector loop {variable} stands inside vector loop {context.vector.name}"
        )
