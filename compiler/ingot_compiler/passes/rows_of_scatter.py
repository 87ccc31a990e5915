"""Pass: a scatter that writes whole rows of a cache becomes ``write_rows``.

In: a graph without dead nodes. Out: the same, with ``write_rows`` for what exporters write of
``index_copy`` and ``index_put``. Not done here: which of them a session may keep in place
(``hold_rows``).

``scatter_nd`` by one index, of a cache whose axis was brought to the front and is brought back, or is
the first; ``scatter_elements`` by places that are the same for all elements of a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.passes.rewrite import Rewriter, RootOps, rewrite, union
from ingot_runtime.lazy_dataclass import dataclass

_ROOTS: RootOps = ("transpose", "scatter_nd", "scatter_elements")
SCATTERS: tuple[OpName, ...] = ("scatter_nd", "scatter_elements")


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows written into ``past`` at ``places``, one list in any shape."""

    past: int
    places: int
    rows: int
    axis: int


def rows_of_scatter(graph: Graph) -> Graph:
    """Rewrite the scatters of inputs, of which alone a session could keep the results."""
    return rewrite(graph, _rule, _ROOTS)


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    if node.op == "transpose":
        return _brought_back(state, node)
    past, places, rows = node.operands
    if past not in state.inputs or node.text("reduction") != "none":
        return None
    if node.op == "scatter_nd":
        listed = _is_one_index(state, places)
        return _rows(state, _Rows(past, places, rows, 0), node.source) if listed else None
    axis = node.integer("axis")
    column = _same_for_rows(state, places, axis)
    whole = _beside(state.shape_of(past), axis) == _beside(state.shape_of(rows), axis)
    if column is None or not whole:
        return None
    return _rows(state, _Rows(past, column, rows, axis), node.source)


def _brought_back(state: Rewriter, node: Node) -> Sequence[int] | None:
    """``transpose(scatter_nd(transpose(past), places, rows))`` where the two undo each other."""
    scatter = state.made_by(node.operands[0], "scatter_nd")
    front = state.made_by(scatter.operands[0], "transpose") if scatter else None
    if scatter is None or front is None or front.operands[0] not in state.inputs:
        return None
    order, back = front.ints("permutation"), node.ints("permutation")
    _, places, rows = scatter.operands
    undone = tuple(order[axis] for axis in back) == tuple(range(len(order)))
    if not undone or scatter.text("reduction") != "none" or not _is_one_index(state, places):
        return None
    source = union((front.source, scatter.source, node.source))
    moved = state.emit("transpose", (rows,), {"permutation": back}, source)
    return _rows(state, _Rows(front.operands[0], places, moved, order[0]), source)


def _rows(state: Rewriter, rows: _Rows, source: Sequence[int]) -> Sequence[int]:
    count = state.shape_of(rows.rows)[rows.axis]
    shaped = state.emit("reshape", (rows.places,), {"shape": (1, count)}, source)
    if state.type_of(shaped).dtype != "i64":
        shaped = state.emit("cast", (shaped,), {"dtype": "i64"}, source)
    operands = (rows.past, shaped, rows.rows)
    return (state.emit("write_rows", operands, {"axis": rows.axis, "held": False}, source),)


def _is_one_index(state: Rewriter, places: int) -> bool:
    """Whether places are a list of indices of the first axis."""
    shape = state.shape_of(places)
    return len(shape) == 2 and shape[1] == 1


def _same_for_rows(state: Rewriter, places: int, axis: int) -> int | None:
    """The list that places are, where it is repeated beside their axis: cut from them, behind what
    checks them."""
    value: int | None = places
    while value is not None and not state.made_by(value, "broadcast_to"):
        kept = state.made_by(value, "require", "cast")
        value = kept.operands[0] if kept else None
    wide = None if value is None else state.made_by(value, "broadcast_to")
    if wide is None:
        return None
    whole, shape = state.shape_of(places), state.shape_of(wide.operands[0])
    at = len(shape) - (len(whole) - axis)
    own = at >= 0 and all(size == 1 for number, size in enumerate(shape) if number != at)
    if not own or shape[at] != whole[axis] or state.shape_of(wide.results[0]) != whole:
        return None
    sizes = tuple(size if number == axis else 1 for number, size in enumerate(whole))
    table = {"starts": (0,) * len(whole), "sizes": sizes, "steps": (1,) * len(whole)}
    return state.emit("slice", (places,), table, wide.source)


def _beside(shape: Sequence[object], axis: int) -> tuple[object, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
