"""Fused attention of one head: scores of a few queries at a time in L1, softmax, product with the
values.

In: an ``Attention`` and the emission context of its kernel. Out: LLVM IR in the kernel's function.
Not done here: repacking (``attention_pack``), the layout of scratch (``attention_layout``), the
sums (``multiply``).

The group whose keys and values lie repacked in scratch is remembered over the kernel's index loop,
in a stack slot. The softmax is divided out at the end, by one reciprocal a row (the sum is at least
1). Keys that causality hides from a whole tile are skipped, unless a value is not finite: 0 * inf
must stay NaN, as in the unfused form.
"""

from dataclasses import dataclass

from ingot_compiler.backends.host.attention_layout import (
    AttentionLayout,
    attention_layout,
    attention_query_block,
    attention_scratch_bytes,
)
from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.convert import emit_cast
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.attention_pack import (
    emit_pack_keys,
    emit_pack_values,
)
from ingot_compiler.backends.host.emit.kernels.epilogue import Results, emit_epilogue
from ingot_compiler.backends.host.emit.kernels.multiply import (
    AccumulatorTile,
    Axis,
    Factors,
    emit_sum,
)
from ingot_compiler.backends.host.emit.math.exp import exp
from ingot_compiler.backends.host.emit.memory import emit_address
from ingot_compiler.backends.host.emit.number import Number
from ingot_compiler.backends.host.emit.value import emit_value
from ingot_compiler.backends.host.writer import LlvmValue, constant, constants
from ingot_compiler.ir.dims import coefficient, dim_min, substitute
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.loops import Attention

__all__ = ["attention_query_block", "attention_scratch_bytes", "emit_attention"]

_F32 = Factors("f32", "f32", "f32")
_ZERO = constant(0, "i64")
_NO_GROUP = -(1 << 63)
_MINUS_INFINITY = float("-inf")


@dataclass(frozen=True, slots=True)
class _Head:
    """What all tiles of one unit share; ``keys_least`` is a slot: keys that may not be skipped, 0
    or all."""

    context: EmitContext
    statement: Attention
    layout: AttentionLayout
    packed_keys: LlvmValue
    packed_values: LlvmValue
    scores: LlvmValue
    factors: LlvmValue
    keys: LlvmValue
    keys_padded: LlvmValue
    keys_least: LlvmValue


@dataclass(frozen=True, slots=True)
class _Tile:
    """Queries ``first`` .. ``first + valid``, which see no key from ``limit`` on."""

    first: LlvmValue
    valid: LlvmValue
    limit: LlvmValue


def emit_attention(context: EmitContext, statement: Attention) -> None:
    """Emit one unit: repack if the group is new, then its queries tile by tile."""
    head = _head(context, statement)
    _emit_repacking(head)
    w, layout = context.writer, head.layout
    left = dim_min(statement.query_block, statement.queries - statement.query_start)
    count, start = emit_index(context, left), emit_index(context, statement.query_start)

    def body(number: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        first = w.add(start, number)
        valid = w.intrinsic("smin", constant(layout.rows, "i64"), w.sub(count, number))
        tile = _Tile(first, valid, _key_limit(head, first, valid))
        _emit_scores(head, tile)
        _emit_softmax(head, tile)
        _emit_values(head, tile)
        return ()

    w.loop(_ZERO, count, layout.rows, (), body)


def _head(context: EmitContext, statement: Attention) -> _Head:
    w = context.writer
    layout = attention_layout(
        statement.keys,
        statement.depth_extent,
        statement.value_extent,
        statement.query_block,
        context.target,
    )
    values = w.offset(context.scratch, emit_index(context, layout.values_offset), "float")
    scores = w.offset(context.scratch, emit_index(context, layout.scores_offset), "float")
    keys, keys_padded = emit_index(context, statement.keys), emit_index(context, layout.keys_padded)
    factors, keys_least = w.slot("float", layout.rows), w.slot("i64")
    return _Head(
        context,
        statement,
        layout,
        context.scratch,
        values,
        scores,
        factors,
        keys,
        keys_padded,
        keys_least,
    )


def _emit_repacking(head: _Head) -> None:
    """Repack keys and values where the group is not that of the last unit."""
    w, context, statement = head.context.writer, head.context, head.statement
    last = w.slot("i64")
    with w.at(w.entry):
        w.store(constant(_NO_GROUP, "i64"), last)
    group = emit_index(context, statement.group)

    def repack() -> None:
        w.store(group, last)
        emit_pack_keys(context, statement, head.layout, head.packed_keys)
        finite = emit_pack_values(context, statement, head.layout, head.packed_values)
        w.store(w.select(finite, _ZERO, head.keys), head.keys_least)

    w.if_then(w.compare("ne", group, w.load(last, "i64")), repack)


def _key_limit(head: _Head, first: LlvmValue, valid: LlvmValue) -> LlvmValue:
    """The number of keys that the tile's last query sees, or that must be read all the same."""
    if not head.statement.causal:
        return head.keys
    w = head.context.writer
    seen = w.add(w.add(first, valid), emit_index(head.context, head.statement.causal_offset))
    seen = w.intrinsic("smin", seen, head.keys)
    return w.intrinsic("smax", seen, w.load(head.keys_least, "i64"))


# ---- scores --------------------------------------------------------------------------------------


def _emit_scores(head: _Head, tile: _Tile) -> None:
    """Store ``scale * q.k`` for all panels that hold a key below the limit; rows past the last
    repeat it."""
    w, layout, depth = head.context.writer, head.layout, head.statement.depth_extent
    queries = _query_pointers(head, tile)
    scale = constant(head.statement.scale, "float", layout.lanes)

    def panel(key: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        b = w.offset(head.packed_keys, w.mul(key, constant(depth, "i64")), "float")
        sums = emit_sum(
            w,
            AccumulatorTile(queries, b, layout.vectors, layout.lanes, _F32, None),
            [Axis(depth, _depth_step(head), layout.panel)],
        )
        for number, value in enumerate(sums):
            row, vector = divmod(number, layout.vectors)
            place = w.offset(_score_row(head, constant(row, "i64")), key, "float")
            w.store(
                w.binary("fmul", value, scale),
                w.offset(place, constant(vector * layout.lanes, "i64"), "float"),
            )
        return ()

    w.loop(_ZERO, tile.limit, layout.panel, (), panel)


def _query_pointers(head: _Head, tile: _Tile) -> tuple[tuple[LlvmValue, int], ...]:
    w, context, statement = head.context.writer, head.context, head.statement
    last = w.sub(w.add(tile.first, tile.valid), constant(1, "i64"))
    pointers: list[tuple[LlvmValue, int]] = []
    for number in range(head.layout.rows):
        with context.scope():
            context.bind(
                {
                    statement.query: w.intrinsic(
                        "smin", w.add(tile.first, constant(number, "i64")), last
                    )
                }
            )
            pointers.append(
                (
                    emit_address(
                        context, statement.q, substitute(statement.q_index, {statement.depth: 0})
                    ),
                    0,
                )
            )
    return tuple(pointers)


def _depth_step(head: _Head) -> int | LlvmValue:
    """How far apart a query's elements are."""
    step = coefficient(head.statement.q_index, head.statement.depth)
    if step is None:
        raise InternalError(
            "attention index is not linear in depth", why=f"q index {head.statement.q_index}"
        )
    return step if isinstance(step, int) else emit_index(head.context, step)


def _score_row(head: _Head, row: LlvmValue) -> LlvmValue:
    return head.context.writer.offset(
        head.scores, head.context.writer.mul(row, head.keys_padded), "float"
    )


# ---- softmax -------------------------------------------------------------------------------------


def _emit_softmax(head: _Head, tile: _Tile) -> None:
    """Turn the scores of every row into exp(score - max), and keep 1 / sum.

    All maxima first: they need not wait for one another, nor the exponentials of one row for the
    maximum of the next.
    """
    w, context, lanes = head.context.writer, head.context, head.layout.lanes

    def maximum(number: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        query = w.add(tile.first, number)
        with context.scope():
            context.bind({head.statement.query: query})
            largest = _emit_masked(head, tile, _score_row(head, number), query)
        w.store(w.extract(largest, 0), w.offset(head.factors, number, "float"))
        return ()

    def exponentials(number: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        place = w.offset(head.factors, number, "float")
        largest = w.splat(w.load(place, "float"), lanes)
        total = _emit_exponentials(head, tile, _score_row(head, number), largest)
        w.store(_factor(head, total), place)
        return ()

    w.loop(_ZERO, tile.valid, 1, (), maximum, nonempty=True)
    w.loop(_ZERO, tile.valid, 1, (), exponentials, nonempty=True)


def _emit_masked(head: _Head, tile: _Tile, row: LlvmValue, query: LlvmValue) -> LlvmValue:
    """Mask and store a row of scores; return its maximum in all lanes. Lanes past the limit become
    -inf."""
    unmasked = head.statement.mask is None and not head.statement.causal
    w, lanes = head.context.writer, head.layout.lanes
    lowest = constant(_MINUS_INFINITY, "float", lanes)

    def vector(key: LlvmValue, largest: LlvmValue, tail: LlvmValue | None) -> LlvmValue:
        place = w.offset(row, key, "float")
        score = _masked_score(head, w.load(place, "float", lanes), key, query, tail)
        if tail is not None:
            score = w.select(tail, score, lowest)
        if tail is not None or not unmasked:
            w.store(score, place)
        # A NaN may be lost here: it comes back as exp(NaN) in the sum.
        return w.select(w.compare("ogt", score, largest), score, largest)

    whole = w.binary("and", tile.limit, constant(-lanes, "i64"))
    (largest,) = w.loop(
        _ZERO, whole, lanes, (lowest,), lambda key, old: (vector(key, old[0], None),)
    )
    # At most one round: the vector that holds the limit.
    (largest,) = w.loop(
        whole, tile.limit, lanes, (largest,),
        lambda key, old: (vector(key, old[0], head.context.tail_mask(key, tile.limit, lanes)),),
    )  # fmt: skip
    return _combined(head, largest, "max")


def _masked_score(
    head: _Head, score: LlvmValue, key: LlvmValue, query: LlvmValue, tail: LlvmValue | None
) -> LlvmValue:
    """``score + mask``, -inf where causality hides the key."""
    w, context, statement, lanes = (
        head.context.writer,
        head.context,
        head.statement,
        head.layout.lanes,
    )
    if statement.mask is not None:
        with context.scope():
            context.vectorize(statement.key, key, tail, lanes=lanes)
            mask = emit_value(context, statement.mask)
            addend = w.splat(emit_cast(w, mask.operand, mask.dtype, "f32"), lanes)
        score = w.binary("fadd", score, addend)
    if statement.causal:
        # Lane j is seen when key + j <= query + offset; numbers are clamped to fit 32 bits.
        seen = w.sub(w.add(query, emit_index(context, statement.causal_offset)), key)
        near = w.intrinsic(
            "smax", w.intrinsic("smin", seen, constant(lanes, "i64")), constant(-1, "i64")
        )
        limit = w.splat(w.convert("trunc", near, "i32"), lanes)
        visible = w.compare("sle", constants(range(lanes), "i32"), limit)
        score = w.select(visible, score, constant(_MINUS_INFINITY, "float", lanes))
    return score


def _emit_exponentials(head: _Head, tile: _Tile, row: LlvmValue, largest: LlvmValue) -> LlvmValue:
    """Replace a row of scores by exp(score - largest); return the sum."""
    w, lanes = head.context.writer, head.layout.lanes
    zero = constant(0.0, "float", lanes)
    if head.statement.nan_to_zero:
        # Every score is -inf: exp(-inf - 0) gives a sum of 0 instead of NaN.
        empty = w.compare("oeq", largest, constant(_MINUS_INFINITY, "float", lanes))
        largest = w.select(empty, zero, largest)

    def vector(key: LlvmValue, total: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        place = w.offset(row, key, "float")
        shifted = w.binary("fsub", w.load(place, "float", lanes), largest)
        value = exp(Number(w, shifted)).operand
        w.store(value, place)
        return (w.binary("fadd", total[0], value),)

    (total,) = w.loop(_ZERO, tile.limit, lanes, (zero,), vector)
    return w.extract(_combined(head, total, "sum"), 0)


def _combined(head: _Head, value: LlvmValue, function: str) -> LlvmValue:
    """Combine all lanes with one another, lane j with lane j + half; every lane holds the
    result."""
    w, lanes = head.context.writer, head.layout.lanes
    half = lanes // 2
    while half:
        other = w.shuffle(value, [(lane + half) % lanes for lane in range(lanes)])
        if function == "sum":
            value = w.binary("fadd", value, other)
        else:
            value = w.select(w.compare("ogt", value, other), value, other)
        half //= 2
    return value


def _factor(head: _Head, total: LlvmValue) -> LlvmValue:
    """1 / sum; the sum of an empty row is 0, and gives NaN or 0."""
    w = head.context.writer
    inverse = w.binary("fdiv", constant(1.0, "float"), total)
    empty = w.compare("oeq", total, constant(0.0, "float"))
    return w.select(
        empty, constant(0.0 if head.statement.nan_to_zero else float("nan"), "float"), inverse
    )


# ---- values --------------------------------------------------------------------------------------


def _emit_values(head: _Head, tile: _Tile) -> None:
    """Multiply the weights by the values, panel by panel, and run the epilogue."""
    w, layout, extent = head.context.writer, head.layout, head.statement.value_extent
    whole = extent // layout.panel * layout.panel

    def panel(start: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        _emit_value_panel(head, tile, start, layout.vectors, None)
        return ()

    w.loop(_ZERO, constant(whole, "i64"), layout.panel, (), panel)
    rest = extent - whole
    if rest:
        odd = rest % layout.lanes
        mask = constants([int(lane < odd) for lane in range(layout.lanes)], "i1") if odd else None
        _emit_value_panel(head, tile, constant(whole, "i64"), -(-rest // layout.lanes), mask)


def _emit_value_panel(
    head: _Head, tile: _Tile, start: LlvmValue, vectors: int, mask: LlvmValue | None
) -> None:
    """Emit one tile of results: ``vectors`` vectors of values from `start` on."""
    w, layout, statement = head.context.writer, head.layout, head.statement
    rows = tuple((_score_row(head, constant(row, "i64")), 0) for row in range(layout.rows))
    b = w.offset(head.packed_values, start, "float")
    sum_tile = AccumulatorTile(rows, b, vectors, layout.lanes, _F32, None)
    sums = emit_sum(w, sum_tile, [Axis(tile.limit, 1, layout.value_padded)])
    factors = [
        w.splat(
            w.load(w.offset(head.factors, constant(row, "i64"), "float"), "float"), layout.lanes
        )
        for row in range(layout.rows)
    ]
    scaled = [_scaled(head, value, factors[number // vectors]) for number, value in enumerate(sums)]
    results = Results(
        statement.query, tile.first, layout.rows, tile.valid, statement.value, start, vectors, layout.lanes, mask,
        statement.accumulator, "f32", statement.epilogue,
    )  # fmt: skip
    emit_epilogue(head.context, results, scaled)


def _scaled(head: _Head, value: LlvmValue, factor: LlvmValue) -> LlvmValue:
    """Value / sum; a row without weights is 0 if asked for, whatever its values are."""
    w = head.context.writer
    product = w.binary("fmul", value, factor)
    if not head.statement.nan_to_zero:
        return product
    zero = constant(0.0, "float", value.lanes)
    return w.select(w.compare("oeq", factor, zero), zero, product)
