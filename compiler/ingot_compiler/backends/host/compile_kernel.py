"""The hook ``compile_kernel`` of processors: a loop program to one kernel's object.

In: a loop program, a target. Out: symbol and ELF object. Not done here: IR text (``emit``), LLVM
(``object``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.targets.target import parse_target


def compile_kernel(program: LoopProgram, target: str) -> tuple[str, bytes]:
    """Return the kernel's symbol, which names its content, and its object."""
    chosen = parse_target(target)
    module = kernel_module(program, chosen)
    return module.symbol, compile_object(llvm_text(module), chosen)
