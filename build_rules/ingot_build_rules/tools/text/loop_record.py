"""The loop programs that a bundle carries, so that one can see what each kernel was made from (a
few kB): as the codec writes them.

In: bytes from a bundle, which anybody may have written. Out: a ``LoopProgram``. Not done here: code
(``assembly`` makes it again: the same LLVM makes the same code of the same program).
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.values import MemoryBlobs, Values
from ingot_build_rules.making.values.artifact_types import ARTIFACT_TYPES
from ingot_compiler.ir.errors import UserError
from ingot_compiler.lowering.loops.program import LoopProgram


def read_program(content: bytes) -> LoopProgram:
    """Return the program that ``content`` encodes.

    Raises:
        UserError: it encodes none; no other classes are built than those of artifacts.
    """
    codec = Codec(ARTIFACT_TYPES)
    try:
        program = codec.decode(content, Values(MemoryBlobs(), codec))
    except ValueError as error:
        why = f"it is damaged, or of another version of Ingot: {error}"
        do = "inspect it with the version that made the bundle, or compile the model again"
        raise UserError("a kernel's record cannot be read", why=why, do=do) from None
    if not isinstance(program, LoopProgram):
        why, do = "it is no loop program", "compile the model again"
        raise UserError("a kernel's record is damaged", why=why, do=do)
    return program
