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

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_min,
    dim_mul,
    substitute,
    symbol,
)
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.kernels.matrix_tiles import TILE_ROWS
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.views import dense_view
from ingot_compiler.lowering.kinds.launches_in_turn import workspace_number
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.bf16_pairs import TILE_DEPTH
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, LoopProgram, Reduce, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

GREATEST_MAX, GREATEST_MIN = 2.0**57, 2.0**-48
"""From the first on, sums may overflow; below the second one, products of low parts are
denormal."""
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class FloatParts:
    """``count`` elements of ``a`` from ``first`` on as so many ``parts``; ``weights``: the lower
    parts of B, ``greatest_weight``: its greatest magnitude. Parts lie as ``a`` does, or, where its
    rows follow one another and have whole tiles, ``depth`` of elements, tile by tile, so that what
    one instruction loads is contiguous. ``turns``: parts of the depth that are multiplied one after
    the other, with sums of ``sums_type`` between them."""

    a: Operand
    first: int
    count: int
    weights: tuple[Operand, ...]
    greatest_weight: Operand
    depth: int = 0
    turns: int = 1
    sums_type: TensorType | None = None

    @property
    def chunk(self) -> int:
        """Elements of a unit that splits: the rows of a tile, or so many that they stay near."""
        return TILE_ROWS * self.depth or _CHUNK

    @property
    def units(self) -> int:
        """How many split A."""
        return -(-self.count // self.chunk)

    @property
    def parts(self) -> tuple[Operand, ...]:
        """The parts of A, the greatest one first."""
        count = self.units * self.chunk if self.depth else self.count
        kinds = (TensorType("bf16", (count,)) for _ in (0, *self.weights))
        return tuple(_workspace(number, kind) for number, kind in enumerate(kinds))

    @property
    def maxima(self) -> Operand:
        """The greatest magnitude of each chunk of A."""
        return _workspace(len(self.weights) + 1, TensorType("f32", (self.units,)))

    @property
    def fits(self) -> Operand:
        """Whether products of parts are near enough."""
        return _workspace(len(self.weights) + 2, TensorType("bool", (1,)))

    @property
    def sums(self) -> tuple[Operand, ...]:
        """The sums of one turn, which the next one goes on from."""
        number = len(self.weights) + 3
        return (_workspace(number, self.sums_type),) if self.sums_type else ()

    @property
    def workspace(self) -> tuple[Operand, ...]:
        """All that launches compute for each other and for turns."""
        return (*self.parts, self.maxima, self.fits, *self.sums)


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
    results = (*group.results, *parts.sums)
    return split, decide, replace(group, operands=multiplied, results=results, types=types)


def part_program(group: Group, parts: FloatParts) -> LoopProgram:
    """Units are chunks of A."""
    buffers, chunk = GroupBuffers(group), parts.chunk
    start = dim_mul(symbol(INDEX), chunk)
    left: Dim = parts.count
    if parts.count > chunk:
        left = dim_min(chunk, dim_add(parts.count, dim_mul(start, -1)))
    source, i = buffers.number(parts.a), symbol("i")
    first = dim_add(parts.first, start)
    if parts.depth:
        row, tile = symbol("row"), symbol("tile")
        place = dim_mul(row, parts.depth) + dim_mul(tile, TILE_DEPTH) + i
        stored = dim_mul(tile, TILE_ROWS * TILE_DEPTH) + dim_mul(row, TILE_DEPTH) + i
        body = _split(buffers, parts, Load(source, first + place), dim_add(start, stored))
        loop = For("i", TILE_DEPTH, "vector", body)
        loop = For("row", dim_floordiv(left, parts.depth), "serial", (loop,))
        loop = For("tile", parts.depth // TILE_DEPTH, "serial", (loop,))
    else:
        body = _split(buffers, parts, Load(source, dim_add(first, i)), dim_add(start, i))
        loop = For("i", left, "vector", body)
    magnitude = Apply("abs", (Load(source, dim_add(first, i)),), "f32")
    statements: tuple[Statement, ...] = (
        Reduce("greatest", "max", "i", left, "f32", (), magnitude, lanes=True),
        Store(buffers.number(parts.maxima), symbol(INDEX), Local("greatest", "f32")),
        loop,
    )
    return finish_program(buffers, statements, parts.units, grain_for(4 * chunk))


def _split(buffers: GroupBuffers, parts: FloatParts, x: Value, place: Dim) -> tuple[Statement, ...]:
    """Store the parts of a value at a place of theirs."""
    body: list[Statement] = [Let("rest0", x)]
    for number, part in enumerate(parts.parts):
        rest, name = Local(f"rest{number}", "f32"), f"part{number}"
        body.append(Let(name, Apply("cast", (rest,), "bf16")))
        body.append(Store(buffers.number(part), place, Local(name, "bf16")))
        if number < len(parts.weights):
            own = Apply("cast", (Local(name, "bf16"),), "f32")
            body.append(Let(f"rest{number + 1}", Apply("sub", (rest, own), "f32")))
    return tuple(body)


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
