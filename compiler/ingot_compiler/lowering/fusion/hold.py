"""States of a graph: where an input and the output that continues it lie, together or apart.

In: the fuser before its first node, the states. Out: ``HoldState`` steps, the pitch of the inputs;
then the rules of ``append`` and ``write_rows``. Not done here: which pairs are states
(``lowering.groups.states``).

The output has the pitch of the memory that the caller lends (``capacity``). Where the input lies in
the same memory, nothing of it is copied, and only the new rows are written.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim, dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType, dtype_size_bytes
from ingot_compiler.lowering.fusion.fuser import Fuser, Held
from ingot_compiler.lowering.fusion.movement import concat
from ingot_compiler.lowering.fusion.relayout import relaid
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.groups.fused import BufferSpec, HeldPair, HoldState, View
from ingot_compiler.lowering.groups.states import State
from ingot_compiler.lowering.groups.views import haloed_view, slice_view
from ingot_compiler.lowering.kinds.write_rows import WRITE_ROWS


def hold_states(fuser: Fuser, inputs: Sequence[int], states: Sequence[State]) -> None:
    """Append a step for the pairs of each length, and say how their inputs lie."""
    classes: dict[tuple[Dim, Dim, bool], list[State]] = {}
    for state in states:
        past, rows = (
            fuser.values.type_of(value).shape[state.axis]
            for value in (inputs[state.input], state.result)
        )
        classes.setdefault((past, rows, state.fixed), []).append(state)
    for (past, rows, fixed), members in classes.items():
        taken = fuser.values.size_names()
        capacity, pitch, moved = (fuser.symbols.new(taken) for _ in range(3))
        fuser.symbols.bind((capacity, pitch, moved))
        pairs = tuple(
            HeldPair(state.input, state.output, _row_bytes(fuser, state)) for state in members
        )
        fuser.append(HoldState(capacity, pitch, moved, rows, past, pairs))
        for state in members:
            if fixed:
                fuser.hold(state.result, Held(state.output, rows, symbol(moved)))
                continue
            value = inputs[state.input]
            stored = fuser.where(value)
            tensor_type = fuser.values.type_of(value)
            view, _ = _pitched(tensor_type, state.axis, symbol(pitch))
            fuser.storage.put(value, Stored(stored.buffer, view))
            fuser.hold(state.result, Held(state.output, symbol(capacity), symbol(moved)))


def _row_bytes(fuser: Fuser, state: State) -> Dim:
    tensor_type = fuser.values.type_of(state.result)
    beside = (*tensor_type.shape[: state.axis], *tensor_type.shape[state.axis + 1 :])
    return dim_mul(dim_product(beside), dtype_size_bytes(tensor_type.dtype))


def _pitched(tensor_type: TensorType, axis: int, rows: Dim) -> tuple[View, Dim]:
    """How a tensor lies row-major in memory for so many rows along an axis; elements of that."""
    after = [0] * tensor_type.rank
    behind = [rows - tensor_type.shape[axis] if at == axis else 0 for at in range(tensor_type.rank)]
    return haloed_view(tensor_type.shape, range(tensor_type.rank), after, behind)


def append(fuser: Fuser, node: Node) -> None:
    """The rows of the past where they are not there yet, then the new ones behind them."""
    (past, new), result = node.operands, node.results[0]
    held = fuser.held(result)
    if held is None:
        concat(fuser, node)
        return
    tensor_type, axis = fuser.values.type_of(result), node.integer("axis")
    place = _place(fuser, node, held)
    length = fuser.values.type_of(past).shape[axis]
    starts = tuple(length if at == axis else 0 for at in range(tensor_type.rank))
    fuser.store(new, Stored(place.buffer, slice_view(place.view, starts, (1,) * tensor_type.rank)))
    fuser.storage.put(result, place)


def write_rows(fuser: Fuser, index: int, node: Node) -> None:
    """All of the past where it is not there yet, then the rows that are replaced. The places lie in
    memory before that, for reading them may be refused."""
    past, *others = node.operands
    if _replaces_all(fuser, node):
        _write_all(fuser, node)
        return
    leaves = [fuser.leaf(operand) for operand in others]
    held = fuser.held(node.results[0])
    if held is None:
        place = relaid(fuser, past, range(fuser.values.type_of(past).rank))
    else:
        place = _place(fuser, node, held)
    fuser.defer_anchor(index, node, WRITE_ROWS, leaves)
    fuser.compute(node.results[0], place)


def _replaces_all(fuser: Fuser, node: Node) -> bool:
    """Whether the places are all rows in their order, perhaps behind requirements."""
    past, places, _ = node.operands
    maker = fuser.values.maker(places)
    while maker is not None and maker.op == "require":
        maker = fuser.values.maker(maker.operands[0])
    if maker is None or maker.op != "literal":
        return False
    rows = fuser.values.type_of(past).shape[node.integer("axis")]
    return isinstance(rows, int) and maker.table["value"] == tuple(range(rows))


def place_in_state(fuser: Fuser, value: int) -> None:
    """Let a value that replaces all of a state be computed where that lies, behind what is required
    before; unless somebody else reads it, or what is required is not known yet."""
    users = fuser.values.users(value)
    writer = users[0] if len(users) == 1 else None
    if writer is None or writer.op != "write_rows" or fuser.values.use_count(value) != 1:
        return
    held, (_, places, rows) = fuser.held(writer.results[0]), writer.operands
    if held is None or rows != value or not fuser.is_known(places):
        return
    if not _replaces_all(fuser, writer):
        return
    _require_places(fuser, places)
    fuser.storage.put(value, _memory(fuser, writer, held))


def _require_places(fuser: Fuser, places: int) -> None:
    """The places of all rows are read for nothing else than what is required of them."""
    maker = fuser.values.maker(places)
    if maker is not None and maker.op == "require":
        fuser.leaf(places)


def _write_all(fuser: Fuser, node: Node) -> None:
    """The new rows alone, computed where they belong; behind the requirements of the places, for
    which alone these are read."""
    _, places, rows = node.operands
    _require_places(fuser, places)
    held, stored = fuser.held(node.results[0]), fuser.storage.find(rows)
    if held is None or (stored and _is_output(fuser, stored, held.output)):
        fuser.storage.put(node.results[0], fuser.where(rows))
        return
    place = _memory(fuser, node, held)
    fuser.store(rows, place)
    fuser.storage.put(node.results[0], place)


def _is_output(fuser: Fuser, stored: Stored, number: int) -> bool:
    spec = fuser.storage.spec(stored.buffer)
    return (spec.kind, spec.index) == ("output", number)


def _memory(fuser: Fuser, node: Node, held: Held) -> Stored:
    """The memory of a state's output."""
    tensor_type = fuser.values.type_of(node.results[0])
    view, count = _pitched(tensor_type, node.integer("axis"), held.capacity)
    return Stored(
        fuser.storage.add(BufferSpec("output", tensor_type.dtype, count, held.output)), view
    )


def _place(fuser: Fuser, node: Node, held: Held) -> Stored:
    """The memory of a state's output, with the rows of the past."""
    past, axis, place = node.operands[0], node.integer("axis"), _memory(fuser, node, held)
    given = fuser.values.type_of(past)
    rows = dim_mul(given.shape[axis], held.moved)
    shape = (*given.shape[:axis], rows, *given.shape[axis + 1 :])
    moved = fuser.values.add(TensorType(given.dtype, shape), fuser.values.device_of(past))
    fuser.storage.put(moved, fuser.where(past))
    fuser.copy(moved, place)
    return place
