"""Sizes that must hold for a kernel to stay inside its buffers, and that the types leave open: checked when ``main`` begins.

In: a node, the fuser. Out: ``Requirement`` steps, none where the types show it. Not done here: sizes that contradict in numbers
(type rules), operands that broadcast and element counts (``movement``, ``fuse``), values of indices (kernels clamp them).

Every op that reads one operand at places that another's shape, or an attribute, decides has a line in ``BOUNDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mod, dim_mul, format_dim
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.ops.recurrent import CELLS, operand_names
from ingot_compiler.ir.ranges import at_most
from ingot_compiler.lowering.fusion.fuser import Fuser

Bound = Callable[[Fuser, Node], None]
Shape = tuple[Dim, ...]


def require_bounds(fuser: Fuser, node: Node) -> None:
    """Check at run time what the op of a node takes for granted."""
    if node.op in BOUNDS:
        BOUNDS[node.op](fuser, node)


def _at_most(fuser: Fuser, size: Dim, limit: Dim, what: str, node: Node) -> None:
    if not at_most(size, limit):
        why = f"{what}: expected at most {format_dim(limit)}, got {format_dim(size)}"
        fuser.require_equal(dim_max(size - limit, 0), 0, why, node)


def _same(fuser: Fuser, left: Sequence[Dim], right: Sequence[Dim], what: str, node: Node) -> None:
    for one, other in zip(left, right, strict=True):
        fuser.require_equal(one, other, f"{what} differ: {format_dim(one)} and {format_dim(other)}", node)


def _elements_along(fuser: Fuser, extent: Dim, picked: Dim, node: Node) -> None:
    """An axis that ``picked`` elements are taken from is not empty, unless none is taken."""
    if not at_most(1, extent) and picked != 0:
        none_there, some_wanted = 1 - dim_min(extent, 1), dim_min(picked, 1)
        fuser.require_equal(dim_mul(none_there, some_wanted), 0, "elements are taken from an empty axis", node)


def _shapes(fuser: Fuser, node: Node) -> list[Shape]:
    return [fuser.types[operand].shape for operand in node.operands]


# ---- picking --------------------------------------------------------------------------------------------------------


def _slice(fuser: Fuser, node: Node) -> None:
    entries = zip(*_shapes(fuser, node), node.dims("starts"), node.dims("sizes"), node.ints("steps"), strict=True)
    for length, start, size, step in entries:
        last = start + dim_mul(size - 1, step)
        low, high = (start, last) if step > 0 else (last, start)
        if at_most(0, low) and at_most(high, length - 1):
            continue
        # A slice without elements may start anywhere.
        beyond = dim_max(high + 1 - length, 0) - dim_min(low, 0)
        what = f"a slice leaves its axis of size {format_dim(length)}"
        fuser.require_equal(dim_mul(beyond, dim_min(size, 1)), 0, what, node)


def _gather(fuser: Fuser, node: Node) -> None:
    _elements_along(
        fuser, _shapes(fuser, node)[0][node.integer("axis")], fuser.types[node.results[0]].element_count, node
    )


def _beside_axis(fuser: Fuser, node: Node) -> None:
    """Indices are not larger than x beside the axis that they are for."""
    x, indices = _shapes(fuser, node)[:2]
    for axis, (size, index_size) in enumerate(zip(x, indices, strict=True)):
        if axis != node.integer("axis"):
            _at_most(fuser, index_size, size, f"size of the indices at axis {axis}", node)
    _elements_along(fuser, x[node.integer("axis")], fuser.types[node.operands[1]].element_count, node)


def _scatter_elements(fuser: Fuser, node: Node) -> None:
    _beside_axis(fuser, node)
    _, indices, updates = _shapes(fuser, node)
    _same(fuser, indices, updates, "sizes of indices and updates", node)


def _gather_nd(fuser: Fuser, node: Node) -> None:
    x, indices = _shapes(fuser, node)
    batch, depth = node.integer("batch_dims"), indices[-1]
    assert isinstance(depth, int)
    _same(fuser, x[:batch], indices[:batch], "batch sizes", node)
    for extent in x[batch : batch + depth]:
        _elements_along(fuser, extent, fuser.types[node.results[0]].element_count, node)


def _scatter_nd(fuser: Fuser, node: Node) -> None:
    x, indices, updates = _shapes(fuser, node)
    depth = indices[-1]
    assert isinstance(depth, int)
    _same(fuser, (*indices[:-1], *x[depth:]), updates, "sizes of the picked slices and updates", node)
    for extent in x[:depth]:
        _elements_along(fuser, extent, fuser.types[node.operands[2]].element_count, node)


def _resize(fuser: Fuser, node: Node) -> None:
    (x, *_), count = _shapes(fuser, node), fuser.types[node.results[0]].element_count
    for axis in node.ints("axes"):
        _elements_along(fuser, x[axis], count, node)


def _pad(fuser: Fuser, node: Node) -> None:
    if node.text("mode") == "constant":
        return
    x, count = _shapes(fuser, node)[0], fuser.types[node.results[0]].element_count
    for axis, pads in enumerate(zip(node.dims("before"), node.dims("after"), strict=True)):
        if pads != (0, 0):
            _elements_along(fuser, x[axis], count, node)


# ---- combining ------------------------------------------------------------------------------------------------------


def _concat(fuser: Fuser, node: Node) -> None:
    result, axis = fuser.types[node.results[0]].shape, node.integer("axis")
    for shape in _shapes(fuser, node):
        pairs = [pair for at, pair in enumerate(zip(shape, result, strict=True)) if at != axis]
        _same(fuser, [own for own, _ in pairs], [wanted for _, wanted in pairs], "sizes beside the axis", node)


def _channels(fuser: Fuser, node: Node) -> None:
    """x[N, C, ..] and vectors [C]."""
    x, *vectors = _shapes(fuser, node)
    for vector in vectors:
        _same(fuser, x[1:2], vector, "numbers of channels", node)


def _group_norm(fuser: Fuser, node: Node) -> None:
    _channels(fuser, node)
    _divided(fuser, _shapes(fuser, node)[0][1], node)


def _divided(fuser: Fuser, channels: Dim, node: Node) -> None:
    groups = node.integer("groups")
    what = f"{groups} groups do not divide {format_dim(channels)} channels"
    fuser.require_equal(dim_mod(channels, groups), 0, what, node)


def _tail(fuser: Fuser, node: Node) -> None:
    """X and parameters of shape x[axis:]."""
    x, *parameters = _shapes(fuser, node)
    for shape in parameters:
        _same(fuser, x[node.integer("axis") :], shape, "sizes of x[axis:] and its parameters", node)


def _conv(fuser: Fuser, node: Node) -> None:
    x, w, *bias = _shapes(fuser, node)
    groups = node.integer("groups")
    _same(fuser, x[1:2], [dim_mul(w[1], groups)], "numbers of input channels", node)
    _divided(fuser, w[0], node)
    for shape in bias:
        _same(fuser, w[:1], shape, "numbers of output channels", node)


def _conv_transpose(fuser: Fuser, node: Node) -> None:
    x, w, *bias = _shapes(fuser, node)
    _same(fuser, x[1:2], w[:1], "numbers of input channels", node)
    _divided(fuser, x[1], node)
    for shape in bias:
        _same(fuser, fuser.types[node.results[0]].shape[1:2], shape, "numbers of output channels", node)


def _matmul(fuser: Fuser, node: Node) -> None:
    a, b = _shapes(fuser, node)
    _same(fuser, a[-1:], b[-2:-1], "inner sizes", node)
    result = fuser.types[node.results[0]].shape[:-2]
    for shape in (a, b):
        fuser.require_broadcast(shape[:-2], result, node)


def _attention(fuser: Fuser, node: Node) -> None:
    q, k, v, *mask = _shapes(fuser, node)
    _same(fuser, (q[0], q[0], q[3], k[1], k[2]), (k[0], v[0], k[3], v[1], v[2]), "sizes of q, k and v", node)
    if k[1] != q[1]:
        what = f"{format_dim(k[1])} heads of k do not divide {format_dim(q[1])} of q"
        fuser.require_equal(q[1], dim_mul(k[1], dim_floordiv(q[1], k[1])), what, node)  # also of 0 heads
    for shape in mask:
        fuser.require_broadcast(shape, (q[0], q[1], q[2], k[2]), node)


def _recurrent(fuser: Fuser, node: Node) -> None:
    attributes = dict(node.attributes)
    given = dict(zip(operand_names(attributes), _shapes(fuser, node), strict=True))
    (_, batch, columns), (directions, hidden, _) = given["x"], given["weights"]
    gates = CELLS[str(attributes["cell"])][0]
    own = 2 if "candidate" in given else gates
    expected: dict[str, Shape] = {
        "weights": (directions, hidden, own * hidden), "h": (directions, batch, hidden), "c": (directions, batch, hidden),
        "candidate": (directions, hidden, hidden), "bias": (directions, hidden), "lengths": (batch,),
        "peepholes": (directions, 3 * hidden),
    }  # fmt: skip
    _same(fuser, (columns,), (dim_mul(gates * hidden, directions),), "sizes of x and the gates", node)
    for name, shape in given.items():
        if name != "x":
            _same(fuser, shape, expected[name], f"sizes of {name}", node)


def _suppress_overlaps(fuser: Fuser, node: Node) -> None:
    boxes, candidates, _ = _shapes(fuser, node)
    _same(fuser, (boxes[0], boxes[2]), candidates, "sizes of boxes and candidates", node)


BOUNDS: dict[str, Bound] = {
    "attention": _attention,
    "batch_norm": _channels,
    "concat": _concat,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "gather": _gather,
    "gather_elements": _beside_axis,
    "gather_nd": _gather_nd,
    "group_norm": _group_norm,
    "layer_norm": _tail,
    "matmul": _matmul,
    "pad": _pad,
    "recurrent": _recurrent,
    "resize": _resize,
    "rms_norm": _tail,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "slice": _slice,
    "suppress_overlaps": _suppress_overlaps,
}
