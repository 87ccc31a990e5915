"""The expressions of a program: a graph of frozen nodes, in which a node that several read is
computed once.

In: nothing. Out: one class per kind of expression. Not done here: types (``infer_types``), text
(``print_program``), what programs consist of beside expressions (``program``).

Expressions compare by identity: equal texts are not one value. Nothing here recurses over them, so
chains of any depth are fine (``walk``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.errors import UserError
from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice
from ingot_compiler.programs.types import Type
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Where something stands in the user's text, counted from 1; 0 is nowhere."""

    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}" if self.line else "no line"


NOWHERE = TextSpan()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Expression:
    """What has a value. ``operands`` are the expressions in it, in the order of their text."""

    span: TextSpan = NOWHERE

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions that it is made of."""
        return ()

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """Return the expression with other operands; span and devices stay."""
        assert not operands
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Expression):
    """A parameter, a variable of ``let`` or of a pattern: itself where it is bound and read.

    ``type`` is None where ``let`` binds it: the type of its value. ``device`` is the declared
    device of a parameter (of a function: where its result is).
    """

    name: str
    type: Type | None = None
    device: VirtualDevice = UNCONSTRAINED


@dataclass(frozen=True, slots=True, eq=False)
class GlobalReference(Expression):
    """A global function, by its name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class OperatorCall(Expression):
    """A call of an operator (``operators``); a constant is one without arguments."""

    operator: str
    arguments: tuple[Expression, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()  # sorted by name

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, arguments=tuple(operands))


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCall(Expression):
    """A call of a function."""

    callee: Expression
    arguments: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The function, then the arguments."""
        return (self.callee, *self.arguments)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, callee=operands[0], arguments=tuple(operands[1:]))


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall(Expression):
    """A call of a kernel that the program has (``Kernel``)."""

    kernel: str
    arguments: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, arguments=tuple(operands))


@dataclass(frozen=True, slots=True, eq=False)
class FunctionLiteral(Expression):
    """A function literal; it may read variables from around it.

    ``device`` is where the result is. A ``primitive`` function is compiled as one kernel: its body
    has no devices of its own.
    """

    parameters: tuple[Variable, ...]
    result_type: Type
    body: Expression
    device: VirtualDevice = UNCONSTRAINED
    primitive: bool = False

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The body."""
        return (self.body,)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, body=operands[0])


@dataclass(frozen=True, slots=True, eq=False)
class LetIn(Expression):
    """``let variable = value; body``; a function may call itself by the variable."""

    variable: Variable
    value: Expression
    body: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The value, then the body."""
        return (self.value, self.body)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, value=operands[0], body=operands[1])


@dataclass(frozen=True, slots=True, eq=False)
class Tuple(Expression):
    """Values side by side."""

    items: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The items."""
        return self.items

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, items=tuple(operands))


@dataclass(frozen=True, slots=True, eq=False)
class Projection(Expression):
    """An item of a tuple."""

    value: Expression
    index: int

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The tuple."""
        return (self.value,)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, value=operands[0])


@dataclass(frozen=True, slots=True, eq=False)
class IfElse(Expression):
    """One of two expressions, by a bool of rank 0."""

    condition: Expression
    then: Expression
    otherwise: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        """Condition and branches."""
        return (self.condition, self.then, self.otherwise)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, condition=operands[0], then=operands[1], otherwise=operands[2])


@dataclass(frozen=True, slots=True, eq=False)
class Construct(Expression):
    """A value of a data type."""

    constructor: str
    arguments: tuple[Expression, ...]

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The fields."""
        return self.arguments

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, arguments=tuple(operands))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A constructor and a variable for each of its fields; None reads nothing."""

    constructor: str
    variables: tuple[Variable | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MatchData(Expression):
    """The expression whose pattern fits a value of a data type."""

    value: Expression
    patterns: tuple[Pattern, ...]
    results: tuple[Expression, ...]  # one for each pattern

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The value, then the results."""
        return (self.value, *self.results)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, value=operands[0], results=tuple(operands[1:]))


@dataclass(frozen=True, slots=True, eq=False)
class NewReference(Expression):
    """A new reference."""

    value: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The first content."""
        return (self.value,)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, value=operands[0])


@dataclass(frozen=True, slots=True, eq=False)
class ReadReference(Expression):
    """The content of a reference."""

    reference: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The reference."""
        return (self.reference,)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, reference=operands[0])


@dataclass(frozen=True, slots=True, eq=False)
class WriteReference(Expression):
    """Replaces the content of a reference; its value is ``()``."""

    reference: Expression
    value: Expression

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The reference, then the new content."""
        return (self.reference, self.value)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, reference=operands[0], value=operands[1])


@dataclass(frozen=True, slots=True, eq=False)
class OnDevice(Expression):
    """An annotation: the value of ``body``, and the constraint on its device.

    ``constrain_body``: the body is on ``device``. ``constrain_result``: what reads it is on
    ``device``. Both: fixed, there is no copy here. The body alone: a copy may stand here. The
    result alone: what reads it is there, and a copy may stand here. Neither: free, a copy may stand
    here (``device`` is open).
    """

    body: Expression
    device: VirtualDevice
    constrain_body: bool = True
    constrain_result: bool = False

    def __post_init__(self) -> None:
        constrains = self.constrain_body or self.constrain_result
        if constrains and self.device.is_open:
            raise UserError(
                "an annotation asks for no device",
                where=str(self.span),
                why="expected a device of which at least one field is given, got an open one",
                do="name a device, or write free(...)",
            )
        if not constrains:
            object.__setattr__(self, "device", UNCONSTRAINED)

    @property
    def is_normal(self) -> bool:
        """Whether it says where its body is, and nothing else."""
        return self.constrain_body and not self.constrain_result

    @property
    def is_fixed(self) -> bool:
        """Whether it says where its body and its reader are."""
        return self.constrain_body and self.constrain_result

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The body."""
        return (self.body,)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, body=operands[0])


@dataclass(frozen=True, slots=True, eq=False)
class DeviceCopy(Expression):
    """The value of ``value``, which is on ``source``, on ``destination``."""

    value: Expression
    source: VirtualDevice
    destination: VirtualDevice

    def __post_init__(self) -> None:
        for end, device in (("source", self.source), ("destination", self.destination)):
            if device.is_open:
                raise UserError(
                    f"a copy has no {end}",
                    where=str(self.span),
                    why="expected a device of which at least one field is given, got an open one",
                    do=f"name the device of the {end}",
                )

    @property
    def operands(self) -> tuple[Expression, ...]:
        """What is copied."""
        return (self.value,)

    def with_operands(self, operands: Sequence[Expression]) -> Self:
        """See ``Expression``."""
        return replace(self, value=operands[0])
