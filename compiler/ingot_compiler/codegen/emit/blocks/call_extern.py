"""A call of a C function of a plug-in's library.

In: a ``CallExtern``. Out: the call, and a report where the function returns another number than 0.
Not done here: the function, which is linked to the image (``plugins``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.convert import to_memory
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.value import emit_value
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.lowering.loops.loop_values import Address, ExternArgument
from ingot_compiler.lowering.loops.program import CallExtern
from ingot_runtime.format import abi


def emit_call_extern(context: EmitContext, statement: CallExtern) -> None:
    """Call the function, and note the number of the requirement where it fails."""
    w = context.writer
    arguments = [_argument(context, argument) for argument in statement.arguments]
    status = w.call(statement.symbol, arguments, "i32")
    report, code = context.reports(), constant(abi.RC_REQUIREMENT + statement.number, "i32")
    w.if_then(w.compare("ne", status, constant(0, "i32")), lambda: w.store(code, report))


def _argument(context: EmitContext, argument: ExternArgument) -> LlvmValue:
    if isinstance(argument, Address):
        return emit_address(context, argument.buffer, argument.index)
    typed = emit_value(context, argument)
    return to_memory(context.writer, typed.operand, typed.dtype)
