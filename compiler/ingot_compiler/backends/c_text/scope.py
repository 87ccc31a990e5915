"""The statements of one function of C under construction, and what its names stand for.

In: names of LLVM IR. Out: ``CScope``: values by name, statements. Not done here: what instructions
become (``arithmetic``, ``lanes``, ``memory``).
"""

from __future__ import annotations

from collections.abc import Iterable

from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.values import GLOBAL, CValue
from ingot_compiler.backends.host.llvm_value import LlvmValue

SPARE = CValue("ptr", 0, ("spare",), GLOBAL)
"""What is read where a guard does not hold; nobody looks at what is there."""


class CScope:
    """``lines`` are the body so far, ``declarations`` what stands before it."""

    def __init__(self, dialect: CDialect, prefix: str, values: dict[str, CValue]) -> None:
        self.dialect = dialect
        self.prefix = prefix
        self.values = {**values, "@zeros": SPARE}
        self.lines: list[str] = []
        self.declarations: list[str] = []

    def value(self, operand: LlvmValue) -> CValue:
        """What an operand stands for."""
        if operand.text.startswith(("%", "@")):
            return self.values[operand.text]
        return self.dialect.constant_value(operand)

    def line(self, text: str) -> None:
        """Append a statement."""
        self.lines.append(f"  {text};")

    def define(self, name: str, element: str, lanes: int, texts: Iterable[str]) -> CValue:
        """Name a value, given each piece."""
        made = self.named(name, element, lanes)
        kind = self.dialect.type_name(element, made.piece_lanes)
        for piece, text in zip(made.pieces, texts, strict=True):
            self.line(f"const {kind} {piece} = {text}")
        self.values[name] = made
        return made

    def define_pointer(self, name: str, space: str, text: str) -> None:
        """Name an address of a space."""
        made = CValue("ptr", 0, (name[1:],), space)
        declared = self.dialect.pointer(space, f"const {made.text}")
        self.line(f"{declared} = {text}")
        self.values[name] = made

    def named(self, name: str, element: str, lanes: int) -> CValue:
        """The variables of a value."""
        plain, count = name[1:], self.dialect.piece_count(lanes)
        pieces = (plain,) if count == 1 else tuple(f"{plain}_{number}" for number in range(count))
        return CValue(element, lanes, pieces)
