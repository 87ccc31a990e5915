"""Registers of a program in IR: those with one constant are folded in, the others lie in the frame.

In: a program, its frame. Out: ``Registers``, which writes loads and stores; what registers hold at
first. Not done here: what is computed with them (``arithmetic``, ``steps``).
"""

from ingot_compiler.backends.host.main.frame import MainFrame, frame_field
from ingot_runtime.format.program import Program, constants_of


def initial_registers(program: Program) -> tuple[int, ...]:
    """Return what each register holds before the first instruction: its constant if it is assigned
    only one, else 0."""
    constants = constants_of(program)
    return tuple(constants.get(register, 0) for register in range(program.register_count))


class Registers:
    """Writes how registers are read and written, and gives every value a name of its own."""

    def __init__(self, program: Program, frame: MainFrame) -> None:
        self.constants = constants_of(program)
        self._at = frame.registers_at
        self._count = 0

    def fresh(self, prefix: str) -> str:
        """Return a new name: ``%PREFIX`` and a number."""
        self._count += 1
        return f"%{prefix}{self._count}"

    def read(self, register: int, value: str) -> list[str]:
        """Define ``value``: what a register holds."""
        if register in self.constants:
            return [f"  {value} = add i64 0, {self.constants[register]}"]
        return [
            frame_field(f"{value}.p", self._at + 8 * register),
            f"  {value} = load i64, ptr {value}.p, align 8",
        ]

    def write(self, register: int, value: str) -> list[str]:
        """Put ``value`` into a register."""
        place = self.fresh("w")
        return [
            frame_field(place, self._at + 8 * register),
            f"  store i64 {value}, ptr {place}, align 8",
        ]
