"""Rows of floats as integers, block by block, for products of bytes.

In: an operand [.., K], the length of a block, how many digits. Out: the operands of the digits, the
loops that compute them. Not done here: the products (``matmul_blocks``).

The step of a block is its largest magnitude by the largest integer, so that an integer is within
0.75 steps of its quotient. With three digits that is a 2^-23 of this magnitude: as near as f32 is
to its largest number. A block whose step would be no normal number, or no number, has none.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.ir.ops.block_products import (
    GREATEST_MAGNITUDE,
    LEAST_MAGNITUDE,
    ROUNDED_LARGEST,
)
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.views import dense_view, flat_offset
from ingot_compiler.lowering.kinds.launches_in_turn import workspace_number
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, LoopProgram, Reduce, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

EXACT, ROUNDED = 3, 1
"""Digits that are as exact as f32; those of ``matmul_blocks`` that is ``rounded``."""
_LARGEST = {ROUNDED: ROUNDED_LARGEST, EXACT: 8_290_000}
_BASE = 256
_NONE = -1
"""The step of a block that is to be read from A."""


@dataclass(frozen=True, slots=True)
class BlockDigits:
    """Rows of ``a`` in ``blocks`` blocks of ``block`` numbers, ``count`` digits each; ``parts`` of
    a block lie after each other: number i in part i mod ``parts``. ``first``: the number of the
    first workspace."""

    a: Operand
    block: int
    parts: int
    count: int
    first: int = 0

    @property
    def rows(self) -> Dim:
        """How many rows there are."""
        return dim_product(self.a.type.shape[:-1])

    @property
    def blocks(self) -> int:
        """Blocks of a row."""
        depth = self.a.type.shape[-1]
        assert isinstance(depth, int)
        return depth // self.block

    @property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        """Digits, steps and sums (``lowering.loops.loop_parts``)."""
        blocks = dim_mul(self.rows, self.blocks)
        kinds: tuple[tuple[DType, Dim], ...] = (
            ("i8", dim_mul(blocks, self.count * self.block)),
            ("f32", blocks),
            ("i32", dim_mul(blocks, self.count)),
        )
        first, second, third = (
            _workspace(number, TensorType(dtype, (size,)))
            for number, (dtype, size) in enumerate(kinds, self.first)
        )
        return first, second, third


def _workspace(number: int, tensor_type: TensorType) -> Operand:
    value = workspace_number(number)
    return Operand(value, tensor_type, value, dense_view(tensor_type.shape, (0,)))


def with_operands(group: Group, digits: BlockDigits) -> tuple[Group, Group]:
    """The group that computes the digits, and the one that reads them too."""
    between = digits.operands
    types = (*group.types, *((each.value, each.type) for each in between))
    before = replace(group, operands=(digits.a,), results=between, types=types)
    return before, replace(group, operands=(*group.operands, *between), types=types)


def digit_program(group: Group, digits: BlockDigits) -> LoopProgram:
    """Units are (row, block)."""
    buffers = GroupBuffers(group)
    unit = symbol(INDEX)
    row, block = dim_floordiv(unit, digits.blocks), dim_mod(unit, digits.blocks)
    a = digits.a
    outer = flat_offset(row, a.type.shape[:-1], a.view.strides[:-1])
    start = dim_add(dim_add(a.view.offset, outer), dim_mul(block, digits.block))
    source = Load(buffers.number(a), dim_add(start, symbol("i")))
    magnitude = Apply("abs", (source,), "f32")
    numbers, steps, sums = (buffers.number(each) for each in digits.operands)
    body: list[Statement] = [
        Reduce("greatest", "max", "i", digits.block, "f32", (), magnitude, lanes=True),
        *_step(digits.count),
        Store(steps, unit, Local("step", "f32")),
    ]
    place = dim_mul(unit, digits.count * digits.block)
    size = digits.block // digits.parts
    for part in range(digits.parts):
        at = dim_add(start, dim_add(dim_mul(symbol("i"), digits.parts), part))
        to = dim_add(place, dim_add(symbol("i"), part * size))
        stores = _digits(digits, Load(buffers.number(a), at), numbers, to)
        body.append(For("i", size, "vector", stores))
    for digit in range(digits.count):
        at = dim_add(place, dim_add(symbol("i"), digit * digits.block))
        found = Apply("cast", (Load(numbers, at),), "i32")
        name = f"sum{digit}"
        body.append(Reduce(name, "sum", "i", digits.block, "i32", (), found, lanes=True))
        where = dim_add(dim_mul(unit, digits.count), digit)
        body.append(Store(sums, where, Local(name, "i32")))
    extent = dim_mul(digits.rows, digits.blocks)
    return finish_program(buffers, body, extent, grain_for(4 * digits.block))


def _step(count: int) -> tuple[Statement, ...]:
    """``step``, and ``divisor``, which is 1 where there are no digits."""
    greatest, step = Local("greatest", "f32"), Local("quotient", "f32")
    small = Apply("less", (greatest, _number(LEAST_MAGNITUDE)), "bool")
    large = Apply("less_equal", (greatest, _number(GREATEST_MAGNITUDE)), "bool")
    zero = Apply("equal", (greatest, _number(0)), "bool")
    many = Apply("select", (small, _number(_NONE), step), "f32")
    some = Apply("select", (large, many, _number(_NONE)), "f32")
    is_none = Apply("select", (small, _number(1), step), "f32")
    return (
        Let("quotient", Apply("div", (greatest, _number(_LARGEST[count])), "f32")),
        Let("step", Apply("select", (zero, _number(0), some), "f32")),
        Let("divisor", Apply("select", (large, is_none, _number(1)), "f32")),
    )


def _digits(digits: BlockDigits, x: Value, buffer: int, place: Dim) -> tuple[Statement, ...]:
    """The stores of the digits of a number, the lowest first."""
    quotient = Apply("div", (x, Local("divisor", "f32")), "f32")
    body: list[Statement] = [Let("rest0", Apply("round", (quotient,), "f32"))]
    for digit in range(digits.count):
        rest = Local(f"rest{digit}", "f32")
        whole = Apply("cast", (rest,), "i32")
        body.append(Let(f"digit{digit}", Apply("cast", (whole,), "i8")))
        own = Local(f"digit{digit}", "i8")
        body.append(Store(buffer, dim_add(place, digit * digits.block), own))
        if digit + 1 < digits.count:
            left = Apply("sub", (rest, Apply("cast", (own,), "f32")), "f32")
            body.append(Let(f"rest{digit + 1}", Apply("mul", (left, _number(1 / _BASE)), "f32")))
    return tuple(body)


def _number(value: float) -> Value:
    return Constant(float(value), "f32")
