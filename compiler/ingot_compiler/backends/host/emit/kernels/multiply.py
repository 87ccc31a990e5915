"""The sum of a contraction for one register tile: multiply-add chains over nested loops of taps and
depth.

In: pointers to the tile's rows of A and to its panel of B. Out: the accumulators, row by row, as
SSA values.
Not done here: finding the pointers (``contraction``), what becomes of the accumulators
(``epilogue``).

The chain of every element is taps outer to inner, then depth. B is prefetched ahead: worth 3-10 %
where the panel comes from L2, never harmful.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ingot_compiler.backends.host.emit.convert import MEMORY, REGISTER, emit_cast, from_memory
from ingot_compiler.backends.host.emit.kernels.pairs import multiply_pairs
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant, element_bits
from ingot_compiler.backends.host.writer import Writer
from ingot_compiler.ir.dims import Dim, coefficient
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.types import DType

_UNROLL_MAX = 4
_CHAINS_PER_BLOCK = (
    60  # multiply-adds that hide a loop's overhead; more would only cost compile time
)
_PREFETCH_STEPS = 8
_PREFETCH_FROM_BYTES = 16384  # a smaller panel stays in L1
_PAIR_ALIGN_BYTES = 2  # a pair of i16 lies where one may lie

Step = int | LlvmValue


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop of the sum and how far one round moves in A and in B, in elements; integers, or
    symbols' values."""

    extent: Step
    a_step: Step
    b_step: Step


@dataclass(frozen=True, slots=True)
class Factors:
    """Element types of A and B in memory and of the sums; ``pairs``: two i16 that lie beside each
    other make one product."""

    a: DType
    b: DType
    sum: DType
    pairs: bool = False

    @property
    def together(self) -> int:
        """Elements of A, and of a column of B, that one step takes."""
        return 2 if self.pairs else 1


@dataclass(frozen=True, slots=True)
class AccumulatorTile:
    """One register tile: ``a`` holds a pointer and a constant displacement for every row; B's last
    vector is read under ``mask`` (None: whole)."""

    a: tuple[tuple[LlvmValue, int], ...]
    b: LlvmValue
    vectors: int
    lanes: int
    factors: Factors
    mask: LlvmValue | None


def merged_dims(
    loops: Sequence[tuple[str, Dim]], a_index: Dim, b_index: Dim
) -> tuple[tuple[Dim, Dim, Dim], ...]:
    """Return (extent, step in A, step in B) of `loops`, outer to inner, with contiguous neighbours
    made one loop."""
    merged: list[tuple[Dim, Dim, Dim]] = []
    for name, extent in loops:
        a_step, b_step = coefficient(a_index, name), coefficient(b_index, name)
        if a_step is None or b_step is None:
            raise InternalError(
                "contraction index is not linear",
                where=f"loop {name}",
                why=f"A {a_index}, B {b_index}",
            )
        if extent == 1:
            continue
        if merged and merged[-1][1:] == (extent * a_step, extent * b_step):
            merged[-1] = (merged[-1][0] * extent, a_step, b_step)
        else:
            merged.append((extent, a_step, b_step))
    return tuple(merged) or ((1, 0, 0),)


def emit_sum(writer: Writer, tile: AccumulatorTile, axes: Sequence[Axis]) -> tuple[LlvmValue, ...]:
    """Return the accumulators: ``vectors`` of the first row, then of the next."""
    zero = LlvmValue("zeroinitializer", REGISTER[tile.factors.sum], tile.lanes)
    start = (zero,) * (len(tile.a) * tile.vectors)
    return _emit_axes(writer, tile, axes, constant(0, "i64"), constant(0, "i64"), start)


def _emit_axes(
    writer: Writer,
    tile: AccumulatorTile,
    axes: Sequence[Axis],
    a: LlvmValue,
    b: LlvmValue,
    sums: tuple[LlvmValue, ...],
) -> tuple[LlvmValue, ...]:
    """Emit the loops `axes`, whose first element is at offsets `a` and `b`."""
    axis, inner = axes[0], axes[1:]
    if not inner:
        return _emit_depth(writer, tile, axis, a, b, sums)

    def body(index: LlvmValue, carried: tuple[LlvmValue, ...]) -> Sequence[LlvmValue]:
        a_here, b_here = (
            _moved(writer, a, index, axis.a_step),
            _moved(writer, b, index, axis.b_step),
        )
        return _emit_axes(writer, tile, inner, a_here, b_here, carried)

    return writer.loop(constant(0, "i64"), _operand(axis.extent), 1, sums, body)


def _emit_depth(
    writer: Writer,
    tile: AccumulatorTile,
    axis: Axis,
    a: LlvmValue,
    b: LlvmValue,
    sums: tuple[LlvmValue, ...],
) -> tuple[LlvmValue, ...]:
    """Emit the innermost loop, unrolled, and what its extent leaves."""
    unroll = _unroll(tile)

    def round_of(
        count: int, index: LlvmValue, carried: tuple[LlvmValue, ...]
    ) -> tuple[LlvmValue, ...]:
        a_here, b_here = (
            _moved(writer, a, index, axis.a_step),
            _moved(writer, b, index, axis.b_step),
        )
        for step in range(count):
            carried = _emit_step(writer, tile, axis, a_here, b_here, step, carried)
        return carried

    zero = constant(0, "i64")
    if isinstance(axis.extent, int):
        whole = axis.extent // unroll * unroll
        if whole == unroll:
            sums = round_of(unroll, zero, sums)
        else:
            sums = writer.loop(
                zero, constant(whole, "i64"), unroll, sums, lambda k, old: round_of(unroll, k, old)
            )
        rest = axis.extent - whole
        return round_of(rest, constant(whole, "i64"), sums) if rest else sums
    whole_operand = writer.binary("and", axis.extent, constant(-unroll, "i64"))
    sums = writer.loop(zero, whole_operand, unroll, sums, lambda k, old: round_of(unroll, k, old))
    return writer.loop(whole_operand, axis.extent, 1, sums, lambda k, old: round_of(1, k, old))


def _unroll(tile: AccumulatorTile) -> int:
    """Steps per block: a power of two."""
    unroll = _UNROLL_MAX
    while unroll > 1 and unroll * len(tile.a) * tile.vectors > _CHAINS_PER_BLOCK:
        unroll //= 2
    return unroll


def _emit_step(
    writer: Writer,
    tile: AccumulatorTile,
    axis: Axis,
    a: LlvmValue,
    b: LlvmValue,
    step: int,
    sums: tuple[LlvmValue, ...],
) -> tuple[LlvmValue, ...]:
    """One step of depth: a row of B, then every row of A times it."""
    a, a_rest = _displaced(writer, a, axis.a_step, step)
    b, b_rest = _displaced(writer, b, axis.b_step, step)
    a_element, b_element = MEMORY[tile.factors.a], MEMORY[tile.factors.b]
    row = writer.offset(tile.b, b, b_element)
    columns = [_load_b(writer, tile, row, b_rest, vector) for vector in range(tile.vectors)]
    _prefetch_b(writer, tile, axis, row, b_rest)
    result: list[LlvmValue] = []
    for number, (pointer, displacement) in enumerate(tile.a):
        moved = writer.offset(pointer, a, a_element)
        at = writer.offset(moved, constant(displacement + a_rest, "i64"), a_element)
        factor = _load_a(writer, tile, at)
        for vector, column in enumerate(columns):
            result.append(
                _add_product(
                    writer, tile.factors, factor, column, sums[number * tile.vectors + vector]
                )
            )
    return tuple(result)


def _load_a(writer: Writer, tile: AccumulatorTile, at: LlvmValue) -> LlvmValue:
    """An element of A, or a pair as one i32, in every lane."""
    factors = tile.factors
    if factors.pairs:
        return writer.splat(writer.load(at, "i32", align=_PAIR_ALIGN_BYTES), tile.lanes)
    loaded = from_memory(writer, writer.load(at, MEMORY[factors.a]), factors.a)
    return writer.splat(emit_cast(writer, loaded, factors.a, factors.sum), tile.lanes)


def _load_b(
    writer: Writer, tile: AccumulatorTile, row: LlvmValue, displacement: int, vector: int
) -> LlvmValue:
    factors = tile.factors
    element, together = MEMORY[factors.b], factors.together
    at = writer.offset(row, constant(displacement + vector * tile.lanes * together, "i64"), element)
    if tile.mask is not None and vector == tile.vectors - 1:
        loaded = writer.masked_load(at, tile.mask, element)
    else:
        loaded = writer.load(at, element, tile.lanes * together)
    return (
        loaded
        if factors.pairs
        else emit_cast(writer, from_memory(writer, loaded, factors.b), factors.b, factors.sum)
    )


def _add_product(
    writer: Writer, factors: Factors, left: LlvmValue, right: LlvmValue, total: LlvmValue
) -> LlvmValue:
    """``left * right + total``."""
    if total.is_float:
        return writer.fma(left, right, total)
    product = (
        multiply_pairs(writer, left, right) if factors.pairs else writer.binary("mul", left, right)
    )
    return writer.binary("add", product, total)


def _prefetch_b(
    writer: Writer, tile: AccumulatorTile, axis: Axis, row: LlvmValue, displacement: int
) -> None:
    if not isinstance(axis.b_step, int) or len(tile.a) == 1:
        return
    element = MEMORY[tile.factors.b]
    if (
        isinstance(axis.extent, int)
        and axis.extent * axis.b_step * element_bits(element) < 8 * _PREFETCH_FROM_BYTES
    ):
        return
    for vector in range(tile.vectors):
        ahead = (
            displacement
            + vector * tile.lanes * tile.factors.together
            + _PREFETCH_STEPS * axis.b_step
        )
        writer.prefetch(writer.offset(row, constant(ahead, "i64"), element))


def _displaced(writer: Writer, offset: LlvmValue, stride: Step, step: int) -> tuple[LlvmValue, int]:
    """Move an offset by `step` strides: what is constant stays apart, to become part of the
    address."""
    if isinstance(stride, int):
        return offset, stride * step
    return writer.add(offset, writer.mul(stride, constant(step, "i64"))), 0


def _moved(writer: Writer, offset: LlvmValue, index: LlvmValue, stride: Step) -> LlvmValue:
    return writer.add(offset, writer.mul(index, _operand(stride)))


def _operand(value: Step) -> LlvmValue:
    return constant(value, "i64") if isinstance(value, int) else value
