"""One loop program to one LLVM module with one function.

In: a ``LoopProgram`` and a target. Out: ``KernelModule``, the list of statements that have a file
of their own. Not done here: writing statements (``statement``), compiling.

``i32 k(ptr buffers, ptr scalars, i64 first, i64 last, ptr scratch)`` runs the body for every index
in [first, last) and returns 0, or ``RC_REQUIREMENT`` and the number of a ``Require`` that did not
hold.
"""

from __future__ import annotations

import hashlib

from ingot_compiler.backends.host.emit.context import EmitContext, Emitters
from ingot_compiler.backends.host.emit.control import for_each
from ingot_compiler.backends.host.emit.filter import emit_filter
from ingot_compiler.backends.host.emit.for_loop import emit_for
from ingot_compiler.backends.host.emit.kernels.attention import emit_attention
from ingot_compiler.backends.host.emit.kernels.blocked_product import emit_blocked_product
from ingot_compiler.backends.host.emit.kernels.call_extern import emit_call_extern
from ingot_compiler.backends.host.emit.kernels.contraction import emit_contraction
from ingot_compiler.backends.host.emit.kernels.depthwise import emit_depthwise
from ingot_compiler.backends.host.emit.kernels.depthwise_plane import emit_depthwise_plane
from ingot_compiler.backends.host.emit.kernels.transpose import emit_transpose
from ingot_compiler.backends.host.emit.kernels.winograd import emit_winograd
from ingot_compiler.backends.host.emit.operands import i64
from ingot_compiler.backends.host.emit.reduce import emit_reduce
from ingot_compiler.backends.host.emit.statement import emit_statements
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant
from ingot_compiler.backends.host.targets.target import Target
from ingot_compiler.backends.host.writer import Writer
from ingot_compiler.lowering.kernel_of import of_one_unit
from ingot_compiler.lowering.loops import (
    Attention,
    BlockedProduct,
    CallExtern,
    Contraction,
    Depthwise,
    DepthwisePlane,
    Filter,
    For,
    LoopProgram,
    Reduce,
    Transpose,
    Winograd,
)
from ingot_compiler.lowering.print_loops import print_loops
from ingot_runtime.lazy_dataclass import dataclass

# Part of every symbol: counts up when the same program gets other code.
CODEGEN_VERSION = "1"

# Statements with a file of their own; each emitter takes its own type.
EMITTERS: Emitters = {
    Attention: emit_attention,
    BlockedProduct: emit_blocked_product,
    CallExtern: emit_call_extern,
    Contraction: emit_contraction,
    Depthwise: emit_depthwise,
    DepthwisePlane: emit_depthwise_plane,
    Filter: emit_filter,
    For: emit_for,
    Reduce: emit_reduce,
    Transpose: emit_transpose,
    Winograd: emit_winograd,
}

_SYMBOL_DIGITS = 24


@dataclass(frozen=True, slots=True)
class KernelModule:
    """LLVM IR of one kernel; ``symbol`` is a function of the program alone, so that equal kernels
    share it."""

    symbol: str
    text: str


def kernel_symbol(program: LoopProgram) -> str:
    """The content name of a program's kernel, whatever the units that it is launched for."""
    content = f"codegen {CODEGEN_VERSION}\n{print_loops(of_one_unit(program))}"
    return f"k_{hashlib.sha256(content.encode()).hexdigest()[:_SYMBOL_DIGITS]}"


def kernel_module(program: LoopProgram, target: Target) -> KernelModule:
    """Write the kernel of ``program`` for ``target``.

    Raises:
        UnsupportedError: a function that code generation does not have.
    """
    writer = Writer(target)
    _load_arguments(writer, program)
    context = EmitContext(writer, target, program.buffers, EMITTERS)
    names = enumerate(program.scalars)
    context.bind({name: LlvmValue(f"%s{number}", "i64") for number, name in names})

    def body(index: LlvmValue) -> None:
        with context.scope():
            context.bind({program.index: index})
            emit_statements(context, program.body)

    for_each(writer, LlvmValue("%first", "i64"), LlvmValue("%last", "i64"), 1, body)
    code = constant(0, "i32") if context.report is None else writer.load(context.report, "i32")
    writer.line(f"ret {code.typed}")
    symbol = kernel_symbol(program)
    header = f"i32 @{symbol}(ptr %buffers, ptr %scalars, i64 %first, i64 %last, ptr %scratch)"
    return KernelModule(symbol, writer.module(header, target.function_attributes))


def _load_arguments(writer: Writer, program: LoopProgram) -> None:
    for letter, element, source, count in (
        ("b", "ptr", "buffers", len(program.buffers)),
        ("s", "i64", "scalars", len(program.scalars)),
    ):
        for number in range(count):
            pointer = writer.offset(LlvmValue(f"%{source}", "ptr"), i64(number), element)
            writer.line(f"%{letter}{number} = load {element}, ptr {pointer.text}, align 8")
