"""Follows the program of `main` in Python: what each instruction does to registers, and which one is
next.

In: a ``Program``. Out: ``Evaluator``, whose subclasses say what becomes of buffers and launches; the
numbers of registers, bit for bit those of the native `main`: i64 that wrap, division that rounds
down. Not done here: memory and kernels (``executor.vm``).
"""

import math
import struct

from .dtypes import DTYPE_NAMES
from .program import OPCODES, Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

END = -1
"""What is next behind the last instruction."""
_BITS = 1 << 64
_MAX = (1 << 63) - 1
_MIN = -(1 << 63)
_FORMATS = {
    "f32": "<f", "f64": "<d", "f16": "<e", "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q",
    "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q", "bool": "<B",
}  # fmt: skip


class Evaluator:
    """``follow`` runs a program. A subclass has a method ``_NAME`` for each further opcode, which takes
    the operands; a number that a method returns is the next instruction.

    ``registers``; ``workspace_bytes`` of each device and ``scratch_bytes``: the most that was told.
    """

    __slots__ = ("program", "registers", "scratch_bytes", "workspace_bytes")

    def __init__(self, program: Program, device_count: int) -> None:
        """Start with registers of 0."""
        self.program = program
        self.registers = [0] * program.register_count
        self.workspace_bytes = [0] * device_count
        self.scratch_bytes = 0

    def follow(self) -> None:
        """Run the instructions to their end."""
        at = 0
        while at != END:
            at = self.step(at)

    def step(self, at: int) -> int:
        """Run instruction `at`; return the next one's index, or ``END``."""
        opcode, operands = self.program.instructions[at]
        name, *_, compute = OPCODES[opcode]
        if compute is not None:
            self._arithmetic(compute, *operands)
            return at + 1
        target: int | None = getattr(self, f"_{name}")(*operands)
        return at + 1 if target is None else target

    def refuse(self, message: int) -> int:
        """What an ``assert`` that does not hold leads to; as a method of an opcode."""
        raise NotImplementedError

    def _arithmetic(self, compute: "Any", register: "Any", left: "Any", right: "Any") -> None:
        values = self.registers
        values[register] = wrap(compute(values[left], values[right]))

    def _return(self) -> int:
        return END

    def _begin(self) -> None:
        """Sizes are known."""

    def _const(self, register: int, value: int) -> None:
        self.registers[register] = value

    def _assert(self, register: int, message: int) -> "int | None":
        return None if self.registers[register] else self.refuse(message)

    def _jump(self, label: int) -> int:
        return label

    def _branch(self, register: int, taken: int, other: int) -> int:
        return taken if self.registers[register] else other

    def _workspace_bytes(self, device: int, register: int) -> None:
        needed = self.registers[register] % _BITS
        self.workspace_bytes[device] = max(self.workspace_bytes[device], needed)

    def _scratch_bytes(self, register: int) -> None:
        self.scratch_bytes = max(self.scratch_bytes, self.registers[register] % _BITS)

    def _held_bytes(self, register: int, _given: int, _made: int) -> None:
        """Inputs and outputs lie apart."""
        self.registers[register] = 0


def wrap(value: int) -> int:
    """Return `value` modulo 2^64 as a signed number."""
    return (value + (1 << 63)) % _BITS - (1 << 63)


def element(data: bytes, dtype: int) -> int:
    """Return one element as i64: floats rounded towards zero and saturated, NaN as 0; u64 wraps."""
    name = DTYPE_NAMES[dtype]
    if name == "bf16":
        data, name = b"\0\0" + data, "f32"
    (value,) = struct.unpack(
        _FORMATS.get(name, "<B"), data
    )  # of types that numpy has not, the code
    if not isinstance(value, float):
        return wrap(value)
    if math.isnan(value):
        return 0
    if value >= float(_MAX):
        return _MAX
    return _MIN if value <= float(_MIN) else int(value)
