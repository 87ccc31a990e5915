"""The computation along a row: softmax, layer normalisation and similar ops.

In: a row of a group's operand. Out: the statements in front of the row's loop, and the element of
the result. Not done here: loops over rows, what is fused behind (``rows``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal as OneOf

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import Elements
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Load, Local, Value
from ingot_compiler.lowering.loops.program import Let, Reduce, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

Statements = tuple[Statement, ...]
Element = tuple[Statements, Value]
"""One element, and the statements that compute it."""


@dataclass(frozen=True, slots=True)
class RowScope:
    """What a row body works with. ``space``: the point of a variable in the row; ``outer`` knows
    which names are taken; ``in_lanes``: whether the row's elements are in lanes, else other rows
    are."""

    group: Group
    anchor: Node
    space: Callable[[str], Space]
    extent: Dim
    dtype: DType
    outer: Elements
    in_lanes: bool

    def x(self, variable: str) -> Element:
        """Element ``variable`` of the row."""
        elements = Elements(self.group, self.outer.buffers, self.outer.given)
        elements.counter = self.outer.counter
        value = elements.value(self.anchor.operands[0], self.space(variable))
        statements = elements.take()
        self.outer.counter = elements.counter
        return statements, value

    def reduce(
        self, name: str, function: OneOf["sum", "max_number"], map_value: Callable[[Value], Value]
    ) -> Reduce:
        """``name = function over the row of map_value(x)``."""
        variable = f"{name}_j"
        body, x = self.x(variable)
        return Reduce(
            name, function, variable, self.extent, self.dtype, body, map_value(x), self.in_lanes
        )

    @property
    def count(self) -> Value:
        """The elements of the row, in its dtype."""
        return FromIndex(self.extent, self.dtype)

    def apply(self, function: str, *arguments: Value) -> Apply:
        """An operation in the row's dtype."""
        return Apply(function, arguments, self.dtype)

    def local(self, name: str) -> Local:
        """A named value of the row's dtype."""
        return Local(name, self.dtype)

    def kept(self, variable: str) -> Load | None:
        """The element's place in the result, if it can hold an intermediate of the row's dtype."""
        result = self.group.results[0]
        fits = result.type.dtype == self.dtype
        return self.outer.load(result, self.space(variable)) if fits else None

    def parameter(self, position: int, variable: str) -> Value:
        """Element of a per-column operand (scale, bias) of the anchor."""
        value = self.anchor.operands[position]
        operand = self.outer.operands[value]
        run = Run(tuple(range(operand.type.rank)), symbol(variable))
        return self.outer.load(operand, Space(operand.type.shape, (run,)))


Body = tuple[Statements, Callable[[str], Element]]
"""Statements that compute the row's scalars; the element of the result at a variable."""

# The largest element is taken without regard to NaN: a NaN makes the sum NaN, and with it every
# result.


def _softmax(row: RowScope) -> Body:
    """The exponentials wait in the result's own row, if they fit there, so that each is computed
    once."""
    summing = row.reduce("total", "sum", lambda x: _exponential(row, x))
    kept = row.kept(summing.variable)
    if kept is not None:
        named = row.local("exponential")
        store = Store(kept.buffer, kept.index, named)
        body = (*summing.body, Let(named.name, summing.value), store)
        summing = replace(summing, body=body, value=named)

    def element(variable: str) -> Element:
        if (place := row.kept(variable)) is not None:
            return (), row.apply("mul", place, row.local("inverse"))
        body, x = row.x(variable)
        return body, row.apply("mul", _exponential(row, x), row.local("inverse"))

    # One division per row; a product with its result is within 1 ulp of the quotient.
    scaling = Let("inverse", row.apply("reciprocal", row.local("total")))
    return (row.reduce("largest", "max_number", lambda x: x), summing, scaling), element


def _exponential(row: RowScope, x: Value) -> Value:
    return row.apply("exp", row.apply("sub", x, row.local("largest")))


def _log_softmax(row: RowScope) -> Body:
    statements = (
        row.reduce("largest", "max_number", lambda x: x),
        row.reduce("total", "sum", lambda x: _exponential(row, x)),
        Let("log_total", row.apply("log", row.local("total"))),
    )

    def element(variable: str) -> Element:
        body, x = row.x(variable)
        centred = row.apply("sub", x, row.local("largest"))
        return body, row.apply("sub", centred, row.local("log_total"))

    return statements, element


def _rms_norm(row: RowScope) -> Body:
    def element(variable: str) -> Element:
        body, x = row.x(variable)
        return body, _scaled(row, x, variable)

    return _inverse_deviation(row, lambda x: x), element


def _layer_norm(row: RowScope) -> Body:
    def centre(x: Value) -> Value:
        return row.apply("sub", x, row.local("mean"))

    def element(variable: str) -> Element:
        body, x = row.x(variable)
        scaled = _scaled(row, centre(x), variable)
        return body, row.apply("add", scaled, row.parameter(2, variable))

    mean = row.apply("div", row.local("total"), row.count)
    statements = row.reduce("total", "sum", lambda x: x), Let("mean", mean)
    return (*statements, *_inverse_deviation(row, centre)), element


def _inverse_deviation(row: RowScope, centre: Callable[[Value], Value]) -> Statements:
    """``inverse``: 1 / sqrt(mean of squares + epsilon)."""
    squares = row.reduce("squares", "sum", lambda x: row.apply("mul", centre(x), centre(x)))
    mean = row.apply("div", row.local("squares"), row.count)
    variance = row.apply("add", mean, Constant(row.anchor.real("epsilon"), row.dtype))
    return squares, Let("inverse", row.apply("reciprocal", row.apply("sqrt", variance)))


def _scaled(row: RowScope, x: Value, variable: str) -> Value:
    scaled = row.apply("mul", x, row.local("inverse"))
    return row.apply("mul", scaled, row.parameter(1, variable))


ROW_BODIES: Mapping[str, Callable[[RowScope], Body]] = {
    "layer_norm": _layer_norm,
    "log_softmax": _log_softmax,
    "rms_norm": _rms_norm,
    "softmax": _softmax,
}
