"""LLVM IR text to machine code, one module at a time.

In: final IR text and a target. Out: an ELF object as bytes, or assembly text. Not done here:
writing IR, linking, running many side by side (actions of a build run in processes of their own:
llvmlite holds one lock around LLVM).
"""

from ingot_compiler.codegen.llvm import CodeTarget, Level, emit_assembly, emit_object
from ingot_compiler.targets.target import Target


def compile_object(
    ir_text: str, target: Target, *, level: Level = 2, verify: bool = False
) -> bytes:
    """Compile one module to a relocatable ELF object, position independent, small code model.

    The bytes depend on `ir_text`, `target`, `level` and the version of LLVM alone. `verify` runs
    LLVM's verifier first (for debugging: without it, malformed IR may end the process instead of
    being refused).

    Raises:
        InternalError: LLVM does not accept the text.
    """
    return emit_object(ir_text, target, level=level, verify=verify)


def assembly_text(ir_text: str, target: CodeTarget) -> str:
    """Compile one module to assembly text, as ``inspect --asm`` shows it."""
    return emit_assembly(ir_text, target)
