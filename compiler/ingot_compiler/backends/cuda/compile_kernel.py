"""The hook ``compile_kernel`` of ``cuda``: a loop program to the PTX of one kernel.

In: a loop program, a target. Out: symbol, and a row for the loader with PTX for each architecture.
Not done here: LLVM (``codegen.object``), compiling PTX.
"""

from __future__ import annotations

from ingot_compiler.backends.cuda.architectures import Architecture
from ingot_compiler.backends.cuda.kernel_ir import kernel_ir
from ingot_compiler.backends.cuda.read_target import read_target
from ingot_compiler.backends.host.device_kernel import DeviceKernel
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.loops.program import LoopProgram

BETWEEN = "\f"
"""Between the row and the texts of the architectures."""


def compile_kernel(program: LoopProgram, target: str) -> tuple[str, bytes]:
    """Return the kernel's symbol, which names its content, and its row and PTX."""
    made = kernel_ir(program)
    texts = [ptx_text(made, each) for each in read_target(target, ()).architectures]
    return made.symbol, BETWEEN.join([made.row, *texts]).encode()


def kernel_text(program: LoopProgram, target: str) -> str:
    """The hook ``kernel_text``: PTX, for each architecture under its name."""
    made = kernel_ir(program)
    architectures = read_target(target, ()).architectures
    return "\n".join(f"// {each.name}\n{ptx_text(made, each)}" for each in architectures)


def ptx_text(made: DeviceKernel, architecture: Architecture) -> str:
    """Return the PTX of one kernel without the head that a module has once."""
    text = assembly_text(made.text, architecture)
    head, found, body = text.partition(".address_size 64\n")
    expected = f".target {architecture.name}\n"
    if not found or expected not in head:
        why = f"expected {expected.strip()}, got {head[-80:]!r}"
        raise InternalError("LLVM writes PTX for another architecture", where=made.symbol, why=why)
    lines = (line.rstrip() for line in body.splitlines())
    kept = [line for line in lines if line and not line.lstrip().startswith("//")]
    return "\n".join([*kept, ""])
