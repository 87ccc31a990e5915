"""The minor version of a bundle: the lowest one whose readers know all that it requires.

In: a plan, sizes of weights, programs. Out: its number. Not done here: writing it (``encode_head``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from ingot_runtime.format import header as head
from ingot_runtime.format.dtypes import DTYPE_MINORS
from ingot_runtime.format.limits import MIB
from ingot_runtime.format.plan import DEVICE_KIND_MINORS, DEVICE_KINDS, BundlePlan
from ingot_runtime.format.program import OPCODES, operand_kinds
from ingot_runtime.format.schema import Record

_MINOR_OF_FIXED_STATES = 5
_MINOR_OF_PAGES = 2  # weights that end within a MiB


def version_minor(
    plan: BundlePlan, weights_bytes: tuple[int, ...], programs: Iterable[bytes] = ()
) -> int:
    """Return the number; ``weights_bytes``: of each section, ``programs``: their sections."""
    tensors = (*plan.inputs, *plan.outputs)
    return max(
        0,
        *_minors(plan),
        *(DEVICE_KIND_MINORS[DEVICE_KINDS.index(device.kind)] for device in plan.devices),
        *(DTYPE_MINORS[tensor.dtype] for tensor in tensors),
        *(_MINOR_OF_PAGES for size in weights_bytes if size % MIB),
        *(head.SECTION_KINDS[head.STATE].since for _ in plan.states),
        *(_MINOR_OF_FIXED_STATES for state in plan.states if state.fixed),
        *(OPCODES[opcode][3] for program in programs for opcode in _opcodes(program)),
    )


def _minors(record: Record) -> Iterator[int]:
    """Yield the versions of fields that are not what they are in earlier ones."""
    for row in record.rows:
        value = getattr(record, row.name)
        if value != row.default:
            yield row.since
        if row.kind == "records":
            for each in value:
                yield from _minors(each)


def _opcodes(program: bytes) -> Iterator[int]:
    count, instruction_count = struct.unpack_from("<qq", program)
    words = struct.unpack_from(f"<{count}q", program, 8)
    at = 3  # behind the counts of instructions, registers and buffers
    for _ in range(instruction_count):
        opcode = words[at]
        yield opcode
        at += 1
        for kind in operand_kinds(opcode):
            at += 1 + words[at] if kind[0] == "*" else 1
