"""The text of one kernel: a function that runs a part of its units.

In: a loop program, a form. Out: its symbol, the text. Not done here: who calls it (``main_text``),
what the text names (``support.h``).

``static NO_INLINE int SYMBOL(buffers..., scalars..., first, last, scratch)`` returns 0, or the code
of a requirement that did not hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.c.c99_dialect import c99
from ingot_compiler.backends.c.c_forms import CForm, read_form
from ingot_compiler.backends.c.stack_need import CKernel, stack_need
from ingot_compiler.backends.c_text.function import function_source
from ingot_compiler.backends.c_text.scope import CStatement
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.kernel_ir import READS, WRITES, Instruction
from ingot_compiler.lowering.loops.program import LoopProgram

_WIDENED = ("load", "sext", "zext", "fptosi", "fptoui", "bitcast")
_POINTER = "unsigned char *"
_SPARE = CStatement(f"  {_POINTER}const spare = ({_POINTER})spare_bytes;", "spare", type=_POINTER)


def compile_kernel(program: LoopProgram, target: str) -> tuple[str, bytes]:
    """Write the C of a kernel; it has the type of the hook ``compile_kernel``, and the target is
    the name of a form of C."""
    made = c_kernel(program, read_form(target))
    return made.symbol, made.content


def c_kernel(program: LoopProgram, form: CForm) -> CKernel:
    """Write the kernel of a program."""
    kernel = kernel_module(program, form.machine)
    dialect = c99(form.lanes_max, indices=not any(map(_moves_wide, kernel.instructions)))
    source = function_source(dialect, kernel.without_tables())
    body = _pruned((*source.declarations, _SPARE, *source.statements))
    # Of which no address is made may have no use at all; it does no harm to say so of others.
    bases = {name for each in body if each.type == _POINTER for name in each.reads}
    unused = [each.text for each in source.parameters if each.text not in bases]
    parameters = (
        f"{_POINTER if each.space else 'int64_t '}{each.text}" for each in source.parameters
    )
    lines = [
        *source.tables,
        f"static NO_INLINE int {kernel.symbol}({', '.join(parameters)}) {{",
        *(f"  (void){name};" for name in unused),
        *(each.text for each in body),
        "}",
        "",
    ]
    return CKernel(kernel.symbol, "\n".join(lines), stack_need(body))


def _pruned(statements: Sequence[CStatement]) -> Sequence[CStatement]:
    """The statements that have an effect: compilers warn of variables and labels without use."""
    while True:
        read = {name for each in statements for name in (*each.reads, each.jumps)}
        left = [each for each in statements if not each.makes or each.makes in read]
        if len(left) == len(statements):
            return left
        statements = left


def _moves_wide(instruction: Instruction) -> bool:
    """Whether an instruction gives or takes a number of 64 bits that is no index: then indices have
    64 bits, too."""
    if instruction.opcode == "store" or instruction.word in WRITES:
        return instruction.operands[0].element == "i64"
    is_number = instruction.opcode in _WIDENED or instruction.word in (*READS, "llvm.fptosi.sat")
    return is_number and instruction.result.element == "i64"
