"""The statements of one function of C under construction, and what its names stand for.

In: names of LLVM IR. Out: ``CScope``: values by name, statements. Not done here: what instructions
become (``c_arithmetic``, ``c_lanes``, ``c_memory``).
"""

from __future__ import annotations

from collections.abc import Iterable

from ingot_compiler.backends.host.llvm_value import LlvmValue
from ingot_compiler.backends.opencl.c_values import CValue, constant_value, piece_count, type_name

SPARE = CValue("ptr", 0, ("spare",), "__global")
"""What is read where a guard does not hold; nobody looks at what is there."""


class CScope:
    """``lines`` are the body so far, ``declarations`` what stands before it."""

    def __init__(self, prefix: str, values: dict[str, CValue]) -> None:
        self.prefix = prefix
        self.values = {**values, "@zeros": SPARE}
        self.lines: list[str] = []
        self.declarations: list[str] = []

    def value(self, operand: LlvmValue) -> CValue:
        """What an operand stands for."""
        if operand.text.startswith(("%", "@")):
            return self.values[operand.text]
        return constant_value(operand)

    def line(self, text: str) -> None:
        """Append a statement."""
        self.lines.append(f"  {text};")

    def define(self, name: str, element: str, lanes: int, texts: Iterable[str]) -> CValue:
        """Name a value, given each piece."""
        made = named(name, element, lanes)
        for piece, text in zip(made.pieces, texts, strict=True):
            self.line(f"const {type_name(element, made.piece_lanes)} {piece} = {text}")
        self.values[name] = made
        return made

    def define_pointer(self, name: str, space: str, text: str) -> None:
        """Name an address of a space."""
        made = CValue("ptr", 0, (name[1:],), space)
        self.line(f"{space} uchar *const {made.text} = {text}")
        self.values[name] = made


def named(name: str, element: str, lanes: int) -> CValue:
    """The variables of a value."""
    plain, count = name[1:], piece_count(lanes)
    pieces = (plain,) if count == 1 else tuple(f"{plain}_{number}" for number in range(count))
    return CValue(element, lanes, pieces)
