"""One loop program to one LLVM module with one function.

In: a ``LoopProgram`` and a target. Out: ``KernelIr``, the list of statements that have a file
of their own. Not done here: writing statements (``statement``), compiling.

``i32 k(ptr buffers, ptr scalars, i64 first, i64 last, ptr scratch)`` runs the body for every index
in [first, last) and returns 0, or ``RC_REQUIREMENT`` and the number of a ``Require`` that did not
hold.
"""

from __future__ import annotations

import hashlib

from ingot_compiler.codegen.emit.blocks.attention.attention import emit_attention
from ingot_compiler.codegen.emit.blocks.call_extern import emit_call_extern
from ingot_compiler.codegen.emit.blocks.depthwise import emit_depthwise
from ingot_compiler.codegen.emit.blocks.depthwise_plane import emit_depthwise_plane
from ingot_compiler.codegen.emit.blocks.products.blocked_product import emit_blocked_product
from ingot_compiler.codegen.emit.blocks.products.contraction import emit_contraction
from ingot_compiler.codegen.emit.blocks.transpose import emit_transpose
from ingot_compiler.codegen.emit.blocks.winograd.winograd import emit_winograd
from ingot_compiler.codegen.emit.context import EmitContext, Emitters
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.filter import emit_filter
from ingot_compiler.codegen.emit.for_loop import emit_for
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.emit.reduce import emit_reduce
from ingot_compiler.codegen.emit.statement import emit_statements
from ingot_compiler.codegen.kernel_ir import TABLES, KernelIr
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.lowering.loops.kernel_of import of_one_unit
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.program import (
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
from ingot_compiler.targets.target import Target

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


def kernel_symbol(program: LoopProgram) -> str:
    """The content name of a program's kernel, whatever the units that it is launched for."""
    content = f"codegen {CODEGEN_VERSION}\n{print_loops(of_one_unit(program))}"
    return f"k_{hashlib.sha256(content.encode()).hexdigest()[:_SYMBOL_DIGITS]}"


def kernel_module(program: LoopProgram, target: Target) -> KernelIr:
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

    first, last = LlvmValue("%first", "i64"), LlvmValue("%last", "i64")
    for_each(writer, first, last, 1, body)
    code = constant(0, "i32") if context.report is None else writer.load(context.report, "i32")
    writer.write("ret", (code,))
    parameters = (*TABLES, first, last, context.scratch)
    return writer.kernel(kernel_symbol(program), parameters, "i32")


def _load_arguments(writer: Writer, program: LoopProgram) -> None:
    counts = (len(program.buffers), len(program.scalars))
    for table, letter, element, count in zip(TABLES, "bs", ("ptr", "i64"), counts, strict=True):
        for number in range(count):
            place = writer.offset(table, i64(number), element)
            writer.write("load", (place,), LlvmValue(f"%{letter}{number}", element), align=8)
