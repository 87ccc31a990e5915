"""One step of depth of a sum: a row of B, then every row of A times it.

In: a tile, where it reads, its accumulators. Out: the accumulators, with the products added. Not
done here: the loops (``multiply``).

B is prefetched ahead: worth 3-10 % where the panel comes from L2, never harmful.
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_compiler.backends.host.emit.convert import MEMORY, emit_cast, from_memory
from ingot_compiler.backends.host.emit.kernels.accumulators import AccumulatorTile, Axis, Step
from ingot_compiler.backends.host.emit.kernels.pairs import multiply_pairs
from ingot_compiler.backends.host.emit.lanes import load_lanes
from ingot_compiler.backends.host.emit.operands import Operands, i64
from ingot_compiler.backends.host.llvm_value import LlvmValue, element_bits
from ingot_compiler.backends.host.writer import Writer

_PREFETCH_STEPS = 8
_PREFETCH_FROM_BYTES = 16384  # a smaller panel stays in L1
_PAIR_ALIGN_BYTES = 2  # a pair of i16 lies where one may lie


@dataclass(frozen=True, slots=True)
class Offsets:
    """Where a sum reads A and B, in elements from the pointers of its tile."""

    a: LlvmValue
    b: LlvmValue


def emit_step(
    tile: AccumulatorTile, axis: Axis, at: Offsets, step: int, sums: Operands
) -> Operands:
    """Add the products of the step `step` steps of `axis` behind `at` to the accumulators."""
    w, element = tile.writer, MEMORY[tile.factors.a]
    a, a_rest = _displaced(w, at.a, axis.a_step, step)
    b, b_rest = _displaced(w, at.b, axis.b_step, step)
    row = w.offset(tile.b, b, MEMORY[tile.factors.b])
    columns = [_load_b(tile, row, b_rest, vector) for vector in range(tile.vectors)]
    _prefetch_b(tile, axis, row, b_rest)
    totals, result = iter(sums), list[LlvmValue]()
    for pointer, displacement in tile.a:
        moved = w.offset(pointer, a, element)
        factor = _load_a(tile, w.offset(moved, i64(displacement + a_rest), element))
        result += [_add_product(tile, factor, column, next(totals)) for column in columns]
    return tuple(result)


def _displaced(w: Writer, offset: LlvmValue, stride: Step, step: int) -> tuple[LlvmValue, int]:
    """Move an offset by `step` strides: what is constant stays apart, to become part of the
    address."""
    if isinstance(stride, int):
        return offset, stride * step
    return w.add(offset, w.mul(stride, i64(step))), 0


def _load_a(tile: AccumulatorTile, at: LlvmValue) -> LlvmValue:
    """An element of A, or a pair as one i32, in every lane."""
    w, factors = tile.writer, tile.factors
    if factors.pairs:
        return w.splat(w.load(at, "i32", align=_PAIR_ALIGN_BYTES), tile.lanes)
    loaded = from_memory(w, w.load(at, MEMORY[factors.a]), factors.a)
    return w.splat(emit_cast(w, loaded, factors.a, factors.sum), tile.lanes)


def _load_b(tile: AccumulatorTile, row: LlvmValue, displacement: int, vector: int) -> LlvmValue:
    """Vector number `vector` of a row of B; twice the lanes where they are pairs."""
    w, factors = tile.writer, tile.factors
    element, count = MEMORY[factors.b], tile.lanes * factors.together
    at = w.offset(row, i64(displacement + vector * count), element)
    mask = tile.mask if vector == tile.vectors - 1 else None
    loaded = load_lanes(w, at, element, count, mask)
    if factors.pairs:
        return loaded
    return emit_cast(w, from_memory(w, loaded, factors.b), factors.b, factors.sum)


def _add_product(
    tile: AccumulatorTile, left: LlvmValue, right: LlvmValue, total: LlvmValue
) -> LlvmValue:
    """``left * right + total``."""
    w = tile.writer
    if total.is_float:
        return w.fma(left, right, total)
    pairs = tile.factors.pairs
    product = multiply_pairs(w, left, right) if pairs else w.binary("mul", left, right)
    return w.binary("add", product, total)


def _prefetch_b(tile: AccumulatorTile, axis: Axis, row: LlvmValue, displacement: int) -> None:
    if not isinstance(axis.b_step, int) or len(tile.a) == 1:
        return
    element = MEMORY[tile.factors.b]
    panel_bits = element_bits(element) * axis.b_step
    if isinstance(axis.extent, int) and axis.extent * panel_bits < 8 * _PREFETCH_FROM_BYTES:
        return
    ahead = displacement + _PREFETCH_STEPS * axis.b_step
    for vector in range(tile.vectors):
        place = i64(ahead + vector * tile.lanes * tile.factors.together)
        tile.writer.prefetch(tile.writer.offset(row, place, element))
