"""Loads and stores: contiguous lanes, lanes a few elements apart, one element for all or some
lanes, or for all where only a run knows that, lanes from anywhere; masked in tails and by guards,
by gather and scatter.

In: buffer number, index, context. Out: values in register form; instructions. Not done here: what
is computed.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.byte_tables import (
    has_byte_tables,
    look_up_bytes,
    table_places,
)
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.convert import MEMORY, from_memory, to_memory
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lane_index import (
    emit_lanes,
    is_stretch,
    known_places,
    lane_repeat,
    lane_stride,
)
from ingot_compiler.codegen.emit.lanes import all_lanes, lane_numbers, load_lanes
from ingot_compiler.codegen.emit.near_lanes import has_windows, load_near, near_lanes
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.emit.spread_loads import (
    APART_MAX,
    load_apart,
    load_backwards,
    load_places,
    load_repeated,
)
from ingot_compiler.codegen.emit.spread_stores import store_apart, stores_vectors
from ingot_compiler.codegen.llvm_value import LlvmValue, constants
from ingot_compiler.ir.dims import Dim, substitute, terms_of
from ingot_compiler.ir.errors import InternalError

_SPARE_BYTES = 128  # one vector of the widest element: what a load reads whose guard does not hold
_GATHER_OFFSET_MAX = 1 << 20  # lane offsets below it are gathered with 32-bit numbers


def emit_load(context: EmitContext, buffer: int, index: Dim) -> LlvmValue:
    """Load in register form: a scalar if all lanes read one element."""
    w, dtype = context.writer, context.dtypes[buffer]
    element = MEMORY[dtype]
    known = _loaded(context, buffer, index) if isinstance(index, int) else None
    if known is not None:
        return known
    stride = lane_stride(context, index)
    if stride == 0:
        pointer = _guarded(context, emit_address(context, buffer, index), uniform=True)
        value = w.load(pointer, element)
    elif stride == 1:
        value = _load_contiguous(context, emit_address(context, buffer, index), element)
    elif stride is not None and is_stretch(stride):
        value = _load_stretched(context, emit_address(context, buffer, index), element, stride)
    else:
        value = _load_spread(context, buffer, index, stride)
    return from_memory(w, value, dtype)


def _loaded(context: EmitContext, buffer: int, index: int) -> LlvmValue | None:
    """What was loaded before: in all lanes where these are as many."""
    wide = context.loaded.wide.get((buffer, index))
    is_as_wide = wide is not None and context.vector and wide.lanes == context.vector.lanes
    return wide if is_as_wide else context.loaded.single.get((buffer, index))


def emit_store(context: EmitContext, buffer: int, index: Dim, value: LlvmValue) -> None:
    """Store a value of the buffer's dtype in register form; inactive lanes are not written."""
    w, dtype = context.writer, context.dtypes[buffer]
    stride = lane_stride(context, index)
    if stride == 0:
        _refuse_lanes(value, f"buffer {buffer}, index {index}")
        w.store(to_memory(w, value, dtype), emit_address(context, buffer, index))
        return
    assert context.vector is not None
    lanes = context.vector.lanes
    wide = w.splat(to_memory(w, value, dtype), lanes)
    mask = context.active()
    if isinstance(stride, int) and stores_vectors(context.target, stride):
        left = None if context.guards else context.iterations_left()
        store_apart(w, emit_address(context, buffer, index), wide, stride, mask, left)
    elif stride != 1:
        w.scatter(wide, _addresses(context, buffer, index, stride), mask or all_lanes(lanes))
    elif mask is None:
        w.store(wide, emit_address(context, buffer, index))
    elif context.vector.count is not None and not context.guards:
        _store_first(context, wide, emit_address(context, buffer, index), context.vector.count)
    else:
        w.masked_store(wide, emit_address(context, buffer, index), mask)


def _store_first(context: EmitContext, value: LlvmValue, pointer: LlvmValue, count: int) -> None:
    """Store the first lanes in parts of powers of two. Under a mask, a load of what lies right
    behind would wait for the store, as if that were of all lanes."""
    w, first = context.writer, 0
    while first < count:
        size = 1 << ((count - first).bit_length() - 1)
        lanes = range(first, first + size)
        part = w.shuffle(value, lanes) if size > 1 else w.extract(value, first)
        w.store(part, w.offset(pointer, i64(first), value.element))
        first += size


def _refuse_lanes(value: LlvmValue, where: str) -> None:
    if value.lanes:
        raise InternalError("lanes of a vector loop store to one element", why=where)


def emit_address(context: EmitContext, buffer: int, index: Dim) -> LlvmValue:
    """The pointer to element ``index`` (of lane 0)."""
    w, element = context.writer, MEMORY[context.dtypes[buffer]]
    index = substitute(index, context.constants)
    # The constant term goes last, where it becomes the instruction's displacement.
    fixed = dict(terms_of(index)).get((), 0)
    pointer = w.offset(context.buffers[buffer], emit_index(context, index - fixed), element)
    return w.offset(pointer, i64(fixed), element)


def _guarded(context: EmitContext, pointer: LlvmValue, *, uniform: bool) -> LlvmValue:
    """Point to spare zeros where the guard of all lanes does not hold (``uniform``: where no lane's
    guard holds)."""
    w = context.writer
    guard = context.uniform_guard()
    varying = [guard for guard in context.guards if guard.lanes]
    if uniform and varying:
        active = context.active()
        assert active is not None
        some = w.any_lane(active)
        guard = some if guard is None else w.binary("and", guard, some)
    if guard is None:
        return pointer
    spare = w.array("zeros", "i8", (0,) * _SPARE_BYTES)
    return w.select(guard, pointer, spare)


def _load_contiguous(context: EmitContext, pointer: LlvmValue, element: str) -> LlvmValue:
    assert context.vector is not None
    w, mask = context.writer, context.active()
    pointer = _guarded(context, pointer, uniform=False)
    return load_lanes(w, pointer, element, context.vector.lanes, mask)


def _load_stretched(
    context: EmitContext, pointer: LlvmValue, element: str, stride: Dim
) -> LlvmValue:
    """Contiguous lanes, or one element for all; in both cases ``pointer`` is where lane 0 reads.
    What is not needed is read from spare zeros, for behind one element there may be nothing."""
    assert context.vector is not None
    w, lanes = context.writer, context.vector.lanes
    is_whole = w.compare("ne", emit_index(context, stride), i64(0))
    spare = w.array("zeros", "i8", (0,) * _SPARE_BYTES)
    whole = _load_contiguous(context, w.select(is_whole, pointer, spare), element)
    one = w.load(_guarded(context, pointer, uniform=True), element)
    return w.select(is_whole, whole, w.splat(one, lanes))


def _load_spread(context: EmitContext, buffer: int, index: Dim, stride: Dim | None) -> LlvmValue:
    """Lanes that do not lie together."""
    assert context.vector is not None
    w, lanes, mask = context.writer, context.vector.lanes, context.active()
    element = MEMORY[context.dtypes[buffer]]
    places = known_places(context, index) if stride is None and not context.guards else None
    if places is not None and places[1] < context.lanes:
        shared, last, own = places
        order = [*own, *(0 for _ in range(lanes - len(own)))]
        pointer = emit_address(context, buffer, shared)
        return load_places(w, pointer, element, max(lanes, context.lanes), last + 1, order)
    if context.uniform_guard() is None:  # where it does not hold, more is read than is spare
        if stride == -1:
            return load_backwards(w, emit_address(context, buffer, index), element, lanes, mask)
        if isinstance(stride, int) and 1 < stride <= APART_MAX:
            pointer = emit_address(context, buffer, index)
            count = context.vector.count
            left = context.iterations_left()
            return load_apart(w, pointer, element, lanes, stride, mask, count, left)
        times = lane_repeat(context, index) if stride is None else None
        if times is not None:
            pointer = emit_address(context, buffer, index)
            left = context.iterations_left()
            return load_repeated(w, pointer, element, lanes, times, mask, left)
    has_tables = element == "i8" and not context.guards and has_byte_tables(context.target)
    table = table_places(context, index) if has_tables else None
    if table is not None:
        return look_up_bytes(context, emit_address(context, buffer, table.shared), table.own)
    near = near_lanes(context, index) if stride is None and not context.guards else None
    if near is not None and has_windows(context.target, element, lanes, near.reach):
        return load_near(context, emit_address(context, buffer, near.shared), near)
    addresses = _addresses(context, buffer, index, stride)
    if mask is None and context.uniform_guard() is None and context.target.loads_lanes_singly:
        return w.load_each(addresses, element)
    return w.gather(addresses, _gather_mask(context), element)


def _gather_mask(context: EmitContext) -> LlvmValue:
    assert context.vector is not None
    w, lanes = context.writer, context.vector.lanes
    mask, guard = context.active(), context.uniform_guard()
    if guard is None:
        return mask or all_lanes(lanes)
    wide = w.splat(guard, lanes)
    return w.binary("and", mask, wide) if mask else wide


def _addresses(context: EmitContext, buffer: int, index: Dim, stride: Dim | None) -> LlvmValue:
    """One pointer per lane."""
    assert context.vector is not None
    w, lanes = context.writer, context.vector.lanes
    element = MEMORY[context.dtypes[buffer]]
    if stride is None:
        return w.offset(context.buffers[buffer], emit_lanes(context, index), element)
    base = emit_address(context, buffer, index)
    if isinstance(stride, int) and abs(stride) * lanes < _GATHER_OFFSET_MAX:
        steps = constants([stride * lane for lane in range(lanes)], "i32")
        return w.offset(base, steps, element)
    step = w.splat(emit_index(context, stride), lanes)
    return w.offset(base, w.binary("mul", step, lane_numbers(lanes)), element)
