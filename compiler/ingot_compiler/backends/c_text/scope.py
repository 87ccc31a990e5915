"""The statements of one function of C under construction, and what its names stand for.

In: operands of kernel instructions. Out: ``CScope``: values by name, ``CStatement``. Not done here:
what instructions become (``arithmetic``, ``lanes``, ``memory``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.values import GLOBAL, CValue
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_runtime.lazy_dataclass import dataclass

SPARE = CValue("ptr", 0, ("spare",), GLOBAL)
"""What is read where a guard does not hold; nobody looks at what is there."""


@dataclass(frozen=True, slots=True)
class CStatement:
    """One line of a function.

    ``makes``: the variable, the array or the label that the line is there for; a line without one
    is there for its effect. ``reads``: the operands that stand in it. ``jumps``: the label that it
    goes to. ``type``: what a variable or each of an array's ``count`` elements is declared as.
    """

    text: str
    makes: str = ""
    reads: tuple[str, ...] = ()
    jumps: str = ""
    type: str = ""
    count: int = 0


class CScope:
    """``statements`` are the body so far, ``declarations`` what stands before it."""

    def __init__(self, dialect: CDialect) -> None:
        self.dialect = dialect
        self.values = {"@zeros": SPARE}
        self.statements: list[CStatement] = []
        self.declarations: list[CStatement] = []

    def value(self, operand: LlvmValue) -> CValue:
        """What an operand stands for."""
        return self.values[operand.name] if operand.name else self.dialect.constant_value(operand)

    def line(
        self, text: str, reads: Iterable[str] = (), *, makes: str = "", jumps: str = ""
    ) -> None:
        """Append a statement that declares nothing."""
        self.statements.append(CStatement(f"  {text};", makes, tuple(reads), jumps))

    def define(self, result: LlvmValue, texts: Sequence[str], operands: Sequence[CValue]) -> CValue:
        """Name a value, given each piece, which is made of those pieces of the operands that have
        the same share of their lanes."""
        count = len(texts)
        shares = [
            [share for each in operands for share in each.share(at, count)] for at in range(count)
        ]
        return self.define_pieces(result, texts, shares)

    def define_pieces(
        self, result: LlvmValue, texts: Sequence[str], reads: Sequence[Iterable[str]]
    ) -> CValue:
        """Name a value, given the text of each piece and the names that it reads."""
        made = self.named(result)
        c_type = self.dialect.type_name(result.element, made.piece_lanes)
        for piece, text, operands in zip(made.pieces, texts, reads, strict=True):
            line = f"  const {c_type} {piece} = {text};"
            self.statements.append(CStatement(line, piece, tuple(operands), type=c_type))
        self.values[result.name] = made
        return made

    def define_pointer(
        self, result: LlvmValue, space: str, text: str, reads: Iterable[str]
    ) -> None:
        """Name an address of a space."""
        made = CValue("ptr", 0, (result.name[1:],), space)
        line = f"  {self.dialect.pointer(space, f'const {made.text}')} = {text};"
        c_type = self.dialect.pointer(space, "")
        self.statements.append(CStatement(line, made.text, tuple(reads), type=c_type))
        self.values[result.name] = made

    def named(self, result: LlvmValue) -> CValue:
        """The variables of a value."""
        plain, count = result.name[1:], self.dialect.piece_count(result.lanes)
        pieces = (plain,) if count == 1 else tuple(f"{plain}_{number}" for number in range(count))
        return CValue(result.element, result.lanes, pieces)
