"""Repacking of keys and values of one attention head into scratch.

In: an ``Attention``, pointers into scratch. Out: loops that fill them. Not done here: when to
repack (``attention``).

Keys are transposed into panels: square blocks through registers where depth is contiguous, gathers
otherwise. Keys past the last repeat the last one: their scores are never used.
"""

from ingot_compiler.backends.host.attention_layout import AttentionLayout
from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.shuffles import transposed
from ingot_compiler.backends.host.emit.memory import emit_address
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant, constants
from ingot_compiler.backends.host.writer import Writer
from ingot_compiler.ir.dims import coefficient, substitute
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.loops import Attention

_ZERO = constant(0, "i64")


def emit_pack_keys(
    context: EmitContext, statement: Attention, layout: AttentionLayout, target: LlvmValue
) -> None:
    """Fill the panels of keys at `target`."""
    w, lanes = context.writer, layout.lanes

    def block(key: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        # key = panel * panel_keys + vector * lanes; a panel takes depth * panel_keys elements.
        panel_start = w.sub(key, w.binary("urem", key, constant(layout.panel, "i64")))
        inside = w.sub(key, panel_start)
        place = w.add(w.mul(panel_start, constant(statement.depth_extent, "i64")), inside)
        column = w.offset(target, place, "float")
        if coefficient(statement.k_index, statement.depth) == 1:
            _emit_transposed(context, statement, layout, key, column)
        else:
            _emit_gathered(context, statement, layout, key, column)
        return ()

    w.loop(_ZERO, emit_index(context, layout.keys_padded), lanes, (), block)


def _last_key(context: EmitContext, statement: Attention) -> LlvmValue:
    return context.writer.sub(emit_index(context, statement.keys), constant(1, "i64"))


def _emit_transposed(
    context: EmitContext,
    statement: Attention,
    layout: AttentionLayout,
    key: LlvmValue,
    column: LlvmValue,
) -> None:
    """Transpose blocks of ``lanes`` keys x ``lanes`` of depth."""
    w, lanes, depth = context.writer, layout.lanes, statement.depth_extent
    last = _last_key(context, statement)
    rows: list[LlvmValue] = []
    for number in range(lanes):
        here = w.intrinsic("smin", w.add(key, constant(number, "i64")), last)
        with context.scope():
            context.bind({statement.key: here})
            rows.append(
                emit_address(
                    context, statement.k, substitute(statement.k_index, {statement.depth: 0})
                )
            )

    def emit(start: LlvmValue, count: int) -> None:
        mask = (
            None
            if count == lanes
            else constants([int(lane < count) for lane in range(lanes)], "i1")
        )
        block: list[LlvmValue] = []
        for row in rows:
            place = w.offset(row, start, "float")
            block.append(
                w.load(place, "float", lanes)
                if mask is None
                else w.masked_load(place, mask, "float")
            )
        target = w.offset(column, w.mul(start, constant(layout.panel, "i64")), "float")
        for number, value in enumerate(transposed(w, block)[:count]):
            w.store(value, w.offset(target, constant(number * layout.panel, "i64"), "float"))

    def whole(start: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        emit(start, lanes)
        return ()

    end = depth // lanes * lanes
    w.loop(_ZERO, constant(end, "i64"), lanes, (), whole)
    if end < depth:
        emit(constant(end, "i64"), depth - end)


def _emit_gathered(
    context: EmitContext,
    statement: Attention,
    layout: AttentionLayout,
    key: LlvmValue,
    column: LlvmValue,
) -> None:
    """Gather ``lanes`` keys for every element of depth."""
    w, lanes = context.writer, layout.lanes
    pitch = coefficient(statement.k_index, statement.key)
    if pitch is None:
        raise InternalError(
            "attention index is not linear in the key", why=f"k index {statement.k_index}"
        )
    numbers = w.binary("add", w.splat(key, lanes), context.lane_numbers(lanes))
    numbers = w.intrinsic("smin", numbers, w.splat(_last_key(context, statement), lanes))
    steps = w.binary("mul", numbers, w.splat(emit_index(context, pitch), lanes))

    def body(depth: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        with context.scope():
            context.bind({statement.depth: depth})
            base = emit_address(
                context, statement.k, substitute(statement.k_index, {statement.key: 0})
            )
        values = w.gather(w.offset(base, steps, "float"), context.true_mask(lanes), "float")
        w.store(values, w.offset(column, w.mul(depth, constant(layout.panel, "i64")), "float"))
        return ()

    w.loop(_ZERO, constant(statement.depth_extent, "i64"), 1, (), body)


def emit_pack_values(
    context: EmitContext, statement: Attention, layout: AttentionLayout, target: LlvmValue
) -> LlvmValue:
    """Fill the rows of values at `target`; return an i1: whether all are finite."""
    w, lanes, extent = context.writer, layout.lanes, statement.value_extent
    whole = extent // lanes * lanes
    odd = constants([int(lane < extent - whole) for lane in range(lanes)], "i1")

    def row(key: LlvmValue, carried: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        with context.scope():
            context.bind({statement.key: key})
            source = emit_address(
                context, statement.v, substitute(statement.v_index, {statement.value: 0})
            )
        place = w.offset(target, w.mul(key, constant(layout.value_padded, "i64")), "float")

        def vector(
            start: LlvmValue, seen: LlvmValue, mask: LlvmValue | None
        ) -> tuple[LlvmValue, ...]:
            value = _load_values(context, statement, source, start, mask, lanes)
            w.store(value, w.offset(place, start, "float"))
            return (_seen(w, seen, value),)

        (seen,) = w.loop(
            _ZERO,
            constant(whole, "i64"),
            lanes,
            carried,
            lambda start, old: vector(start, old[0], None),
        )
        return (seen,) if whole == extent else vector(constant(whole, "i64"), seen, odd)

    start = LlvmValue("zeroinitializer", "float", lanes)
    (seen,) = w.loop(_ZERO, emit_index(context, statement.keys), 1, (start,), row)
    bad = w.any_lane(w.compare("uno", seen, seen))
    return w.binary("xor", bad, constant(1, "i1"))


def _load_values(
    context: EmitContext,
    statement: Attention,
    row: LlvmValue,
    start: LlvmValue,
    mask: LlvmValue | None,
    lanes: int,
) -> LlvmValue:
    """Load the values from `start` on, 0 outside of `mask`."""
    w, pitch = context.writer, coefficient(statement.v_index, statement.value)
    if pitch is None:
        raise InternalError(
            "attention index is not linear in the value", why=f"v index {statement.v_index}"
        )
    if pitch == 1:
        place = w.offset(row, start, "float")
        return (
            w.load(place, "float", lanes) if mask is None else w.masked_load(place, mask, "float")
        )
    numbers = w.binary("add", w.splat(start, lanes), context.lane_numbers(lanes))
    steps = w.binary("mul", numbers, w.splat(emit_index(context, pitch), lanes))
    return w.gather(w.offset(row, steps, "float"), mask or context.true_mask(lanes), "float")


def _seen(w: Writer, seen: LlvmValue, value: LlvmValue) -> LlvmValue:
    """Add 0 * value: stays 0 until an infinity or NaN comes by."""
    zero = LlvmValue("zeroinitializer", "float", value.lanes)
    return w.binary("fadd", seen, w.binary("fmul", value, zero))
