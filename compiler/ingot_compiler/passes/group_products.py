"""Pass: products of single rows by matrices that indices pick are products by groups.

In: a graph. Out: a graph where ``x @ gather(w, i)`` of constant matrices is ``grouped_matmul``,
which reads the matrices where they lie: mixtures of experts as PyTorch exports them copy those of
every token. Not done here: several rows by one matrix, matrices that something else reads too.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.passes.rewrite import Rewriter, in_shape, rewrite
from ingot_runtime.lazy_dataclass import dataclass

_ELEMENTS_MIN = 1 << 12  # of a matrix: ordering rows takes longer than copying fewer
_SWAPPED = (0, 2, 1)


def group_products(graph: Graph) -> Graph:
    """Read matrices by the groups of rows instead of copying them."""
    return rewrite(graph, _rule, ("matmul",))


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    a, b = node.operands
    found = _single_rows(state, a, b, 1) or _single_rows(state, b, a, 0)
    if found is None:
        return None
    count, depth = dim_product(found.leading), found.depth
    rows = in_shape(state, found.rows, (count, depth), node.source)
    groups = in_shape(state, _from_front(state, found, node), (count,), node.source)
    matrices = found.matrices
    if found.is_swapped:
        table = {"permutation": _SWAPPED}
        matrices = state.emit("transpose", (matrices,), table, node.source)
    product = state.emit("grouped_matmul", (rows, groups, matrices), {}, node.source)
    return (in_shape(state, product, state.shape_of(node.results[0]), node.source),)


@dataclass(frozen=True, slots=True)
class _Picked:
    """``rows`` [leading.., 1, depth], or its columns, by ``matrices`` at ``indices``."""

    rows: int
    depth: Dim
    leading: tuple[Dim, ...]
    matrices: int
    indices: int
    is_swapped: bool


def _single_rows(state: Rewriter, rows: int, matrices: int, side: int) -> _Picked | None:
    """The product of single ``rows`` by matrices on one ``side``: right (1) or left (0)."""
    *leading, height, width = state.shape_of(rows)
    single, depth = (height, width) if side == 1 else (width, height)
    is_swapped = side == 0
    swap = state.made_by(matrices, "transpose")
    if swap is not None and _swaps_last(swap):
        if not state.is_used_once(matrices):
            return None
        (matrices,) = swap.operands
        is_swapped = not is_swapped
    picked = _picked(state, matrices)
    if picked is None or single != 1 or state.shape_of(matrices)[:-2] != tuple(leading):
        return None
    return _Picked(rows, depth, tuple(leading), *picked, is_swapped)


def _swaps_last(node: Node) -> bool:
    permutation = node.ints("permutation")
    last = len(permutation) - 1
    return permutation == (*range(last - 1), last, last - 1)


def _picked(state: Rewriter, value: int) -> tuple[int, int] | None:
    """The constant matrices and the indices that pick whole ones of them, for one reader."""
    gather = state.made_by(value, "gather", "gather_nd")
    if gather is None or not state.is_used_once(value):
        return None
    matrices, indices = gather.operands
    tensor_type = state.type_of(matrices)
    picks_whole = (
        gather.integer("axis") == 0
        if gather.op == "gather"
        else gather.integer("batch_dims") == 0 and state.shape_of(indices)[-1] == 1
    )
    sizes = [size for size in tensor_type.shape if isinstance(size, int)]
    if not picks_whole or len(sizes) != 3 or not state.is_constant(matrices):
        return None
    is_large = sizes[1] * sizes[2] >= _ELEMENTS_MIN and sizes[0] > 1
    return (matrices, indices) if is_large and tensor_type.dtype in FLOATS else None


def _from_front(state: Rewriter, picked: _Picked, node: Node) -> int:
    """The indices in i64, those that count from the end as ones from the front."""
    indices = picked.indices
    if state.type_of(indices).dtype != "i64":
        indices = state.emit("cast", (indices,), {"dtype": "i64"}, node.source)
    if _is_position(state, indices):
        return indices
    count = state.shape_of(picked.matrices)[0]
    zero, size = (state.literal(number, "i64", node.source) for number in (0, count))
    below = state.emit("less", (indices, zero), {}, node.source)
    moved = state.emit("add", (indices, size), {}, node.source)
    return state.emit("select", (below, moved, indices), {}, node.source)


def _is_position(state: Rewriter, value: int) -> bool:
    """Whether numbers are positions that an op found, which count from the front."""
    while moved := state.made_by(value, "reshape", "require", "cast"):
        value = moved.operands[0]
    return state.made_by(value, "argsort", "argmax", "argmin") is not None
