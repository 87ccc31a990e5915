"""The hook ``compile_kernel`` of ``opencl``: a loop program to the text of one kernel.

In: a loop program, a target. Out: symbol, and a row for the loader with the text. Not done here:
compiling it.
"""

from __future__ import annotations

from ingot_compiler.backends.opencl.kernel_source import kernel_source
from ingot_compiler.lowering.loops.program import LoopProgram


def compile_kernel(program: LoopProgram, target: str) -> tuple[str, bytes]:
    """Return the kernel's symbol, which names its content, and its row and text."""
    del target
    made = kernel_source(program)
    return made.symbol, f"{made.row}\n{made.text}".encode()
