"""Row kernels: softmax, layer normalisation and their kin, with the row in cache and neighbours
fused before and after.

In: a group anchored by one of ``ROW_BODIES``. Out: its loop program: units are rows. Not done here:
normalisation over channels of an image (``group_norm`` has its own kind).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from ingot_compiler.ir.dims import Dim, dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import (
    Apply,
    Constant,
    For,
    FromIndex,
    Let,
    Load,
    Local,
    LoopProgram,
    Reduce,
    Statement,
    Store,
    Value,
)
from ingot_compiler.lowering.space import Run, Space


@dataclass(frozen=True, slots=True)
class _Row:
    """What a row body works with: ``x(variable)`` gives the statements and value of one element of
    the operand."""

    group: Group
    anchor: Node
    buffers: GroupBuffers
    space: Callable[[str], Space]
    extent: Dim
    dtype: DType
    outer: Elements

    def x(self, variable: str) -> tuple[tuple[Statement, ...], Value]:
        """Element ``variable`` of the row."""
        elements = Elements(self.group, self.buffers, self.outer.given)
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
            name, function, variable, self.extent, self.dtype, body, map_value(x), lanes=True
        )

    def apply(self, function: str, *arguments: Value) -> Apply:
        """An operation in the row's dtype."""
        return Apply(function, arguments, self.dtype)

    def local(self, name: str) -> Local:
        """A named value of the row's dtype."""
        return Local(name, self.dtype)

    def kept(self, variable: str) -> Load | None:
        """The element's place in the result, if it can hold an intermediate of the row's dtype."""
        result = self.group.results[0]
        if result.type.dtype != self.dtype:
            return None
        return Load(
            self.buffers.number(result),
            self.space(variable).offset_of(result.view, result.type.shape),
        )

    def parameter(self, position: int, variable: str) -> Value:
        """Element of a per-column operand (scale, bias) of the anchor."""
        value = self.anchor.operands[position]
        operand = next(operand for operand in self.group.operands if operand.value == value)
        axes = operand.type.rank
        run = Space(operand.type.shape, (Run(tuple(range(axes)), symbol(variable)),))
        return Load(self.buffers.number(operand), run.offset(operand.view))


RowBody = Callable[
    [_Row], tuple[tuple[Statement, ...], Callable[[str], tuple[tuple[Statement, ...], Value]]]
]
"""row -> (statements that compute the row's scalars, element function of the result)."""


# The largest element is taken without regard to NaN: a NaN makes the sum NaN, and with it every
# result.


def _softmax(
    row: _Row,
) -> tuple[tuple[Statement, ...], Callable[[str], tuple[tuple[Statement, ...], Value]]]:
    largest, inverse = row.local("largest"), row.local("inverse")
    summing = row.reduce("total", "sum", lambda x: row.apply("exp", row.apply("sub", x, largest)))
    kept = row.kept(summing.variable)
    if kept is None:

        def element(variable: str) -> tuple[tuple[Statement, ...], Value]:
            body, x = row.x(variable)
            return body, row.apply("mul", row.apply("exp", row.apply("sub", x, largest)), inverse)

    else:
        # The exponentials wait in the result's own row, so that each is computed once.
        exponential = row.local("exponential")
        body = (
            *summing.body,
            Let("exponential", summing.value),
            Store(kept.buffer, kept.index, exponential),
        )
        summing = replace(summing, body=body, value=exponential)

        def element(variable: str) -> tuple[tuple[Statement, ...], Value]:
            place = row.kept(variable)
            assert place is not None
            return (), row.apply("mul", place, inverse)

    # One division per row; a product with its result is within 1 ulp of the quotient.
    scaling = Let("inverse", row.apply("reciprocal", row.local("total")))
    return (row.reduce("largest", "max_number", lambda x: x), summing, scaling), element


def _log_softmax(
    row: _Row,
) -> tuple[tuple[Statement, ...], Callable[[str], tuple[tuple[Statement, ...], Value]]]:
    largest, total = row.local("largest"), row.local("total")
    statements = (
        row.reduce("largest", "max_number", lambda x: x),
        row.reduce("total", "sum", lambda x: row.apply("exp", row.apply("sub", x, largest))),
        Let("log_total", row.apply("log", total)),
    )

    def element(variable: str) -> tuple[tuple[Statement, ...], Value]:
        body, x = row.x(variable)
        return body, row.apply("sub", row.apply("sub", x, largest), row.local("log_total"))

    return statements, element


def _norm(
    row: _Row, *, centred: bool
) -> tuple[tuple[Statement, ...], Callable[[str], tuple[tuple[Statement, ...], Value]]]:
    count = FromIndex(row.extent, row.dtype)
    epsilon = row.anchor.real("epsilon")
    mean = row.local("mean")

    def centre(x: Value) -> Value:
        return row.apply("sub", x, mean) if centred else x

    def square(x: Value) -> Value:
        return row.apply("mul", centre(x), centre(x))

    statements: list[Statement] = []
    if centred:
        statements += [
            row.reduce("total", "sum", lambda x: x),
            Let("mean", row.apply("div", row.local("total"), count)),
        ]
    statements.append(row.reduce("squares", "sum", square))
    variance = row.apply(
        "add", row.apply("div", row.local("squares"), count), Constant(epsilon, row.dtype)
    )
    statements.append(Let("inverse", row.apply("reciprocal", row.apply("sqrt", variance))))

    def element(variable: str) -> tuple[tuple[Statement, ...], Value]:
        body, x = row.x(variable)
        scaled = row.apply(
            "mul", row.apply("mul", centre(x), row.local("inverse")), row.parameter(1, variable)
        )
        return body, row.apply("add", scaled, row.parameter(2, variable)) if centred else scaled

    return tuple(statements), element


ROW_BODIES: dict[str, RowBody] = {
    "layer_norm": lambda row: _norm(row, centred=True),
    "log_softmax": _log_softmax,
    "rms_norm": lambda row: _norm(row, centred=False),
    "softmax": _softmax,
}


def row_axes(node: Node, rank: int) -> tuple[int, ...]:
    """Axes that a row op works along: one for softmax, all from ``axis`` on for the norms."""
    axis = node.integer("axis")
    return tuple(range(axis, rank)) if node.op in ("layer_norm", "rms_norm") else (axis,)


def lower_rows(group: Group, target: KernelTarget) -> LoopProgram:
    """Statements for the row's scalars, then one vector loop that stores."""
    del target
    anchor = group.nodes[group.anchor]
    shape = dict(group.types)[anchor.results[0]].shape
    along = row_axes(anchor, len(shape))
    kept = tuple(axis for axis in range(len(shape)) if axis not in along)
    extent = dim_product(tuple(shape[axis] for axis in along))
    buffers = GroupBuffers(group)

    def space(variable: str) -> Space:
        return Space(shape, (Run(kept, symbol("p")), Run(along, symbol(variable))))

    dtype = dict(group.types)[anchor.operands[0]].dtype
    row = _Row(group, anchor, buffers, space, extent, dtype, Elements(group, buffers))
    before, element = ROW_BODIES[anchor.op](row)
    body, value = element("j")
    result = group.results[0]
    epilogue = Elements(group, buffers)
    epilogue.counter = row.outer.counter
    epilogue.given[anchor.results[0]] = epilogue.let(value, dtype)
    stored = epilogue.value(result.value, space("j"))
    store = Store(
        buffers.number(result), space("j").offset_of(result.view, result.type.shape), stored
    )
    loop = For("j", extent, "vector", (*body, *epilogue.take(), store))
    units = dim_product(tuple(shape[axis] for axis in kept))
    return finish_program(buffers, (*before, loop), units, grain_for(dim_mul(extent, 4)))


ROWS = Kind("rows", one_kernel(lower_rows))
