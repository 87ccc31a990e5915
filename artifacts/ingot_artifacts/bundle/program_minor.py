"""The minor version of the format whose readers know all opcodes of a program.

In: bytes of a program section. Out: its number. Not done here: what else raises it (``version_minor``).
"""

from __future__ import annotations

import struct

from ingot_runtime.format.program import CODES, operand_kinds

_EARLY_COPIES = frozenset((CODES["begin_copy"], CODES["end_copy"]))
_MINOR_OF_EARLY_COPIES = 3


def program_minor(program: bytes) -> int:
    """Return 3 where copies begin before they end, else 0: other opcodes follow from the plan."""
    count, instruction_count = struct.unpack_from("<qq", program)
    words = struct.unpack_from(f"<{count}q", program, 8)
    at = 3  # behind the counts of instructions, registers and buffers
    for _ in range(instruction_count):
        opcode = words[at]
        if opcode in _EARLY_COPIES:
            return _MINOR_OF_EARLY_COPIES
        at += 1
        for kind in operand_kinds(opcode):
            at += 1 + words[at] if kind[0] == "*" else 1
    return 0
