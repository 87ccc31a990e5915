"""The values of a program that runs, each with its device.

In: tensors in memories. Out: ``Value``, and ``Activation``: what is known in one call. Not done
here: running (``interpret_program``).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import field

from ingot_compiler.oracles.memories import Tensor
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import Expression, FunctionLiteral, Variable
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TupleValue:
    """Values side by side, all on one device."""

    items: tuple[Value, ...]
    device: VirtualDevice


@dataclass(frozen=True, slots=True)
class DataValue:
    """A constructor and its fields, all on one device."""

    constructor: str
    fields: tuple[Value, ...]
    device: VirtualDevice


@dataclass(slots=True, eq=False)
class ReferenceValue:
    """A place with a content on its device."""

    content: Value
    device: VirtualDevice


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function with the call in which it was made."""

    function: FunctionLiteral
    activation: Activation | None


Value = Tensor | TupleValue | DataValue | ReferenceValue | Closure
Steps = Generator["Steps", Value, Value]
"""A computation that yields those it needs, and is sent their values."""


@dataclass(slots=True, eq=False)
class Activation:
    """One call of a function: what its variables are, and what has been computed in it."""

    around: Activation | None
    values: dict[Expression, Value] = field(default_factory=dict[Expression, Value])

    def find(self, variable: Variable) -> Value:
        """The value of a variable that is bound here or around."""
        activation: Activation | None = self
        while activation is not None:
            if variable in activation.values:
                return activation.values[variable]
            activation = activation.around
        raise AssertionError(variable.name)
