"""One step of depth of a sum: a row of B, then every row of A times it.

In: a tile, where it reads, its accumulators. Out: the accumulators, with the products added. Not
done here: the loops (``multiply``).

B is prefetched ahead: worth 3-10 % where the panel comes from L2, never harmful. How far is a matter
of time: 8 steps of 8x3 vectors of 512 bits; 5x2 of 256 bits take 5 % less time with 20 than with 8.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Axis,
    Pointers,
    Step,
)
from ingot_compiler.codegen.emit.blocks.products.bf16_products import (
    add_bf16_products,
    pairs_of_bf16,
)
from ingot_compiler.codegen.emit.blocks.products.byte_products import add_byte_products, flipped
from ingot_compiler.codegen.emit.blocks.products.offsets import Offsets
from ingot_compiler.codegen.emit.blocks.products.pairs import multiply_pairs
from ingot_compiler.codegen.emit.convert import MEMORY, emit_cast, from_memory
from ingot_compiler.codegen.emit.lanes import load_lanes
from ingot_compiler.codegen.emit.operands import Operands, i64
from ingot_compiler.codegen.llvm_value import (
    SIZES_BYTES,
    LlvmValue,
    constant,
    element_bits,
)
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.kernels.tiles import rows_together
from ingot_runtime.lazy_dataclass import dataclass

_PREFETCH_PRODUCTS = 192  # multiply-adds of a tile between a prefetch and the use
_INTO_L1, INTO_L2 = 3, 2
LINE_BYTES = 64
_PREFETCH_FROM_BYTES = 16384  # a smaller panel stays in L1


@dataclass(frozen=True, slots=True)
class Rest:
    """A step of ``count`` elements of A, fewer than there are together in B, where those are 0;
    ``behind_others``: before them in A there is a whole step."""

    count: int
    behind_others: bool


def emit_step(
    tile: AccumulatorTile,
    axis: Axis,
    at: Offsets,
    step: int,
    sums: Operands,
    rest: Rest | None = None,
    factors: Operands = (),
) -> Operands:
    """Add the products of the step `step` steps of `axis` behind `at` to the accumulators.
    ``factors``: the elements of A, each in every lane, where they were loaded before."""
    w, element = tile.writer, MEMORY[tile.factors.a]
    a, a_rest = _displaced(w, at.a, axis.a_step, step)
    b, b_rest = _displaced(w, at.b, axis.b_step, step)
    vectors = tuple(
        (w.offset(pointer, b, MEMORY[tile.factors.b]), displacement + b_rest)
        for pointer, displacement in tile.b
    )
    masks = [*[None] * (tile.vectors - 1), tile.mask]
    addends = tile.b_addends or [None] * tile.vectors
    places = zip(vectors, masks, tile.row_lanes, addends, strict=True)
    columns = [_load_b(tile, *at, mask, lanes, addend) for at, mask, lanes, addend in places]
    for others, opcode in ((tile.b_added, "fadd"), (tile.b_subtracted, "fsub")):
        columns = _with_others(tile, columns, others, (opcode, b, b_rest))
    if _begins_line(tile, axis, step):
        _prefetch_b(tile, axis, vectors)
    totals, result = iter(sums), list[LlvmValue]()
    alone = tile.vectors - len(tile.a_again)
    for number, (pointer, displacement) in enumerate(tile.a):
        moved = w.offset(pointer, a, element)
        known = factors[number] if factors else tile.fixed
        factor = known or _load_a(tile, moved, displacement + a_rest, tile.lanes, rest)
        result += [_add_product(tile, factor, column, next(totals)) for column in columns[:alone]]
        for vector, rows in enumerate(tile.a_again, alone):
            again = w.offset(rows[number][0], a, element)
            factor = _load_a(tile, again, displacement + a_rest, tile.row_lanes[vector])
            result.append(_add_product(tile, factor, columns[vector], next(totals)))
    return tuple(result)


def _with_others(
    tile: AccumulatorTile,
    columns: list[LlvmValue],
    others: Pointers,
    place: tuple[str, LlvmValue, int],
) -> list[LlvmValue]:
    """The vectors of a row of B with those of another matrix; ``place``: how, and where it is read."""
    if not others:
        return columns
    w, (opcode, offset, rest) = tile.writer, place
    element = MEMORY[tile.factors.b]
    addends = tile.other_addends or [None] * len(others)
    found = [
        _load_b(
            tile, w.offset(pointer, offset, element), displacement + rest, None, tile.lanes, addend
        )
        for (pointer, displacement), addend in zip(others, addends, strict=True)
    ]
    return [w.binary(opcode, *both) for both in zip(columns, found, strict=True)]


def has_element_vectors(tile: AccumulatorTile, axis: Axis) -> bool:
    """Whether ``lanes`` steps may take the elements of A from vectors: each is a lane that the
    instruction names."""
    is_read = tile.fixed is None and axis.a_step == tile.factors.together
    return is_read and tile.writer.target.multiplies_by_element


def load_element_vectors(tile: AccumulatorTile, at: Offsets) -> Operands:
    """The elements of ``lanes`` steps of each row of A."""
    w, element = tile.writer, MEMORY[tile.factors.a]
    return tuple(
        flipped(
            w, _load_a_lanes(tile, w.offset(pointer, at.a, element), displacement), tile.factors
        )
        for pointer, displacement in tile.a
    )


def _load_a_lanes(tile: AccumulatorTile, pointer: LlvmValue, displacement: int) -> LlvmValue:
    """A vector of a row of A."""
    w, factors = tile.writer, tile.factors
    element = MEMORY[factors.a]
    at = w.offset(pointer, i64(displacement), element)
    if factors.together > 1:
        loaded = w.load(at, "i32", tile.lanes, align=SIZES_BYTES[element])
        return pairs_of_bf16(w, loaded) if factors.a == "bf16" else loaded
    loaded = from_memory(w, w.load(at, element, tile.lanes), factors.a)
    return emit_cast(w, loaded, factors.a, factors.sum)


def _displaced(w: Writer, offset: LlvmValue, stride: Step, step: int) -> tuple[LlvmValue, int]:
    """Move an offset by `step` strides: what is constant stays apart, to become part of the
    address."""
    if isinstance(stride, int):
        return offset, stride * step
    return w.add(offset, w.mul(stride, i64(step))), 0


def _load_a(
    tile: AccumulatorTile,
    pointer: LlvmValue,
    displacement: int,
    lanes: int,
    rest: Rest | None = None,
) -> LlvmValue:
    """An element of A, or those that lie together as one i32, in every lane."""
    w, factors = tile.writer, tile.factors
    element = MEMORY[factors.a]
    if factors.together > 1:
        found = _load_together(tile, pointer, displacement, rest)
        return flipped(w, w.splat(found, lanes), factors)
    at = w.offset(pointer, i64(displacement), element)
    loaded = from_memory(w, w.load(at, element), factors.a)
    return w.splat(emit_cast(w, loaded, factors.a, factors.sum), lanes)


def _load_together(
    tile: AccumulatorTile, pointer: LlvmValue, displacement: int, rest: Rest | None
) -> LlvmValue:
    """Load as many elements of A as an i32 holds; of a rest, the elements that exist, then zeros.
    Nothing beyond the row is read: what is before a rest is shifted out."""
    w, element, together = tile.writer, MEMORY[tile.factors.a], tile.factors.together
    bits = element_bits(element)

    def load(first: int, element_type: str) -> LlvmValue:
        place = w.offset(pointer, i64(displacement + first), element)
        return w.load(place, element_type, align=SIZES_BYTES[element])

    if rest is None:
        return load(0, "i32")
    missing = together - rest.count
    if rest.behind_others:
        return w.binary("lshr", load(-missing, "i32"), constant(missing * bits, "i32"))
    found = constant(0, "i32")
    for number in range(rest.count):
        part = w.convert("zext", load(number, element), "i32")
        found = w.binary("or", found, w.binary("shl", part, constant(number * bits, "i32")))
    return found


def _load_b(
    tile: AccumulatorTile,
    pointer: LlvmValue,
    displacement: int,
    mask: LlvmValue | None,
    lanes: int,
    addend: LlvmValue | None,
) -> LlvmValue:
    """A vector of a row of B; i32 of elements that lie together. ``addend``: is added to integers
    before they are floats."""
    w, factors = tile.writer, tile.factors
    element = MEMORY[factors.b]
    at = w.offset(pointer, i64(displacement), element)
    if factors.together > 1:
        return w.load(at, "i32", lanes)
    loaded = from_memory(w, load_lanes(w, at, element, lanes, mask), factors.b)
    if addend is None:
        return emit_cast(w, loaded, factors.b, factors.sum)
    whole = w.binary("add", emit_cast(w, loaded, factors.b, "i32"), addend)
    return emit_cast(w, whole, "i32", factors.sum)


def _add_product(
    tile: AccumulatorTile, left: LlvmValue, right: LlvmValue, total: LlvmValue
) -> LlvmValue:
    """``left * right + total``."""
    w = tile.writer
    if total.is_float:
        if tile.factors.together > 1:
            return add_bf16_products(w, left, right, total)
        return w.fma(left, right, total)
    if tile.factors.together == rows_together("i8"):
        return add_byte_products(w, left, right, total, tile.factors)
    pairs = tile.factors.together == rows_together("i16")
    product = multiply_pairs(w, left, right) if pairs else w.binary("mul", left, right)
    return w.binary("add", product, total)


def _begins_line(tile: AccumulatorTile, axis: Axis, step: int) -> bool:
    """Whether the row of B begins a cache line, if the first one of the block does: rows of 16 bits
    share one."""
    if not isinstance(axis.b_step, int):
        return True
    bits = axis.b_step * element_bits(MEMORY[tile.factors.b])
    return step * bits % (8 * LINE_BYTES) < max(bits, 1)


def _prefetch_b(tile: AccumulatorTile, axis: Axis, vectors: Pointers) -> None:
    if not isinstance(axis.b_step, int):
        return
    if tile.steps_ahead:
        _prefetch(tile, vectors, tile.steps_ahead * axis.b_step, INTO_L2)
        return
    if len(tile.a) == 1:
        return
    element = MEMORY[tile.factors.b]
    panel_bits = element_bits(element) * axis.b_step
    rounds = axis.known_rounds
    if rounds is not None and rounds * panel_bits < 8 * _PREFETCH_FROM_BYTES:
        return
    steps = -(-_PREFETCH_PRODUCTS // (len(tile.a) * tile.vectors))
    _prefetch(tile, vectors, steps * axis.b_step, _INTO_L1)


def _prefetch(tile: AccumulatorTile, vectors: Pointers, distance: int, locality: int) -> None:
    """Prefetch what lies ``distance`` elements behind each vector of B; vectors of one line once."""
    element, seen = MEMORY[tile.factors.b], set[tuple[LlvmValue, int]]()
    line = 8 * LINE_BYTES // element_bits(element)
    for (panel, start), (pointer, displacement) in zip(tile.b, vectors, strict=True):
        if (panel, start // line) not in seen:
            seen.add((panel, start // line))
            place = tile.writer.offset(pointer, i64(displacement + distance), element)
            tile.writer.prefetch(place, locality)
