"""The bytes of the program section: FORMAT.md, "Program".

In: a ``Program``. Out: bytes that ``ingot_runtime.format.program_decode`` reads back; their sha256
is in the image. Not done here: checks.
"""

import struct

from ingot_runtime.format.program import Program


def encode_program(program: Program) -> bytes:
    """Encode as little-endian i64 words; see FORMAT.md, "program"."""
    words = [len(program.instructions), program.register_count, program.buffer_count]
    for opcode, operands in program.instructions:
        words.append(opcode)
        for operand in operands:
            words += [len(operand), *operand] if isinstance(operand, tuple) else [operand]
    texts = [message.encode() for message in program.messages]
    words.append(len(texts))
    words += [len(text) for text in texts]
    return struct.pack(f"<q{len(words)}q", len(words), *words) + b"".join(texts)
