"""The factors of a product as sums of bf16: which of them a kernel splits, and whether products of
parts are close enough to those of f32.

In: a group anchored by a product of parts. Out: its operands, the loops that make them. Not done
here: parts of weights (``weight_parts``), the products (``contraction``), who asks for them
(``split_products``).

A part is what is left, rounded to bf16: three hold an f32 exactly from 2^-108 on. Tiles flush
denormal numbers, and overflow where f32 does not; so the greatest magnitudes of both factors say
whether the products are made so, for all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_add, dim_min, dim_mul, substitute, symbol
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.views import dense_view
from ingot_compiler.lowering.kinds.launches_in_turn import workspace_number
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, LoopProgram, Reduce, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

GREATEST_MAX, GREATEST_MIN = 2.0**57, 2.0**-48
"""From the first on, sums may overflow; below the second one, products of low parts are denormal."""
_CHUNK = 4096  # elements of a unit


@dataclass(frozen=True, slots=True)
class FloatParts:
    """``count`` elements of ``a`` from ``first`` on as so many ``parts``; ``weights``: the lower
    parts of B, ``greatest_weight``: its greatest magnitude."""

    a: Operand
    first: int
    count: int
    weights: tuple[Operand, ...]
    greatest_weight: Operand

    @property
    def parts(self) -> tuple[Operand, ...]:
        """The parts of A, the greatest one first."""
        kinds = (TensorType("bf16", (self.count,)) for _ in (0, *self.weights))
        return tuple(_workspace(number, kind) for number, kind in enumerate(kinds))

    @property
    def maxima(self) -> Operand:
        """The greatest magnitude of each chunk of A."""
        tensor_type = TensorType("f32", (-(-self.count // _CHUNK),))
        return _workspace(len(self.weights) + 1, tensor_type)

    @property
    def fits(self) -> Operand:
        """Whether products of parts are near enough."""
        return _workspace(len(self.weights) + 2, TensorType("bool", (1,)))

    @property
    def workspace(self) -> tuple[Operand, ...]:
        """All that launches before the products compute."""
        return (*self.parts, self.maxima, self.fits)


def _workspace(number: int, tensor_type: TensorType) -> Operand:
    value = workspace_number(number)
    return Operand(value, tensor_type, value, dense_view(tensor_type.shape, (0,)))


def span_of(index: Dim, extents: Mapping[str, Dim]) -> tuple[int, int]:
    """The first element that an index reaches, and how many there are up to its last one.

    The index grows with every symbol of ``extents``, whose extents are numbers.
    """
    first = substitute(index, dict.fromkeys(extents, 0))
    last = substitute(index, {name: dim_add(extent, -1) for name, extent in extents.items()})
    assert isinstance(first, int)
    assert isinstance(last, int)
    return first, last + 1 - first


def with_parts(group: Group, parts: FloatParts) -> tuple[Group, Group, Group]:
    """The group that splits A, the one that decides, and the one that multiplies."""
    types = (*group.types, *((each.value, each.type) for each in parts.workspace))
    split = replace(group, operands=(parts.a,), results=(*parts.parts, parts.maxima), types=types)
    read = (parts.maxima, parts.greatest_weight)
    decide = replace(group, operands=read, results=(parts.fits,), types=types)
    multiplied = (*group.operands, *parts.parts, parts.fits)
    return split, decide, replace(group, operands=multiplied, types=types)


def part_program(group: Group, parts: FloatParts) -> LoopProgram:
    """Units are chunks of A."""
    buffers, start = GroupBuffers(group), dim_mul(symbol(INDEX), _CHUNK)
    left: Dim = parts.count
    if parts.count > _CHUNK:
        left = dim_min(_CHUNK, dim_add(parts.count, dim_mul(start, -1)))
    place = dim_add(start, symbol("i"))
    x = Load(buffers.number(parts.a), dim_add(parts.first, place))
    body: list[Statement] = [Let("rest0", x)]
    for number, part in enumerate(parts.parts):
        rest, name = Local(f"rest{number}", "f32"), f"part{number}"
        body.append(Let(name, Apply("cast", (rest,), "bf16")))
        body.append(Store(buffers.number(part), place, Local(name, "bf16")))
        if number < len(parts.weights):
            own = Apply("cast", (Local(name, "bf16"),), "f32")
            body.append(Let(f"rest{number + 1}", Apply("sub", (rest, own), "f32")))
    magnitude = Apply("abs", (x,), "f32")
    statements: tuple[Statement, ...] = (
        Reduce("greatest", "max", "i", left, "f32", (), magnitude, lanes=True),
        Store(buffers.number(parts.maxima), symbol(INDEX), Local("greatest", "f32")),
        For("i", left, "vector", tuple(body)),
    )
    extent = -(-parts.count // _CHUNK)
    return finish_program(buffers, statements, extent, grain_for(4 * _CHUNK))


def guard_program(group: Group, parts: FloatParts) -> LoopProgram:
    """One unit: NaN fits nothing."""
    buffers = GroupBuffers(group)
    chunks, (fits,) = parts.maxima.type.element_count, group.results
    values = Load(buffers.number(parts.maxima), symbol("i"))
    weight = Load(buffers.number(parts.greatest_weight), 0)
    both = _both(_is_near(Local("greatest", "f32")), _is_near(weight))
    statements: tuple[Statement, ...] = (
        Reduce("greatest", "max", "i", chunks, "f32", (), values, lanes=True),
        Store(buffers.number(fits), 0, both),
    )
    return finish_program(buffers, statements, 1, 1)


def _is_near(greatest: Value) -> Value:
    """Whether the greatest magnitude of a factor is 0 or one that parts can have."""
    is_zero = _is("equal", greatest, _number(0))
    is_large = _is("less_equal", _number(GREATEST_MIN), greatest)
    return _both(_is("less", greatest, _number(GREATEST_MAX)), _is("logical_or", is_zero, is_large))


def _both(left: Value, right: Value) -> Value:
    return _is("logical_and", left, right)


def _is(function: str, left: Value, right: Value) -> Value:
    dtype: DType = "bool"
    return Apply(function, (left, right), dtype)


def _number(value: float) -> Value:
    return Constant(value, "f32")
