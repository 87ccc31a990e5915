"""Pass: a transposed convolution becomes a convolution and a rearrangement of its results.

In: a graph. Out: a graph in which ``conv_transpose`` is left only where sizes of the kernel or pads
are open, or where both strides and dilations are above 1. Not done here: reading weights; new ones
are ops on constants, folded by ``lowering/constant_expression``.

With stride s, position ``q * s + r`` of the uncropped result is the sum over t of
``x[q - t] * w[r + s * t]``: for each phase r a convolution of its own, whose kernel is a comb of w,
reversed. All phases are channels of one convolution; then they go where they belong. Where a kernel
is no multiple of its stride, some combs are shorter: phases are convolutions of their own, so that
nothing is multiplied by the zeros that would make all of them equally long.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.passes.rewrite import Rewriter, in_shape, rewrite
from ingot_compiler.passes.transpose_by_taps import phases_by_taps, suits
from ingot_compiler.passes.transposed_axis import TransposedAxis


def expand_conv_transpose(graph: Graph) -> Graph:
    """Replace every ``conv_transpose`` that has such a convolution."""
    return rewrite(graph, _rule, ("conv_transpose",))


def transposed_axes(state: Rewriter, node: Node) -> list[TransposedAxis] | None:
    """The axes of a ``conv_transpose`` that can be written as a convolution; None where it
    cannot."""
    shape = state.shape_of(node.operands[1])
    if not all(isinstance(size, int) for size in shape):
        return None
    pads = zip(node.dims("pads_before"), node.dims("pads_after"), strict=True)
    found: list[TransposedAxis] = []
    for size, stride, dilation, (before, after), added in zip(
        shape[2:],
        node.ints("strides"),
        node.ints("dilations"),
        pads,
        node.dims("output_padding"),
        strict=True,
    ):
        known = [item for item in (size, before, after, added) if isinstance(item, int)]
        if len(known) < 4 or not size or (stride > 1 and dilation > 1):
            return None
        axis = TransposedAxis.of(known[0], stride, dilation, (known[1], known[2]), known[3])
        if axis.before < 0 or axis.after < 0:
            return None
        found.append(axis)
    return found


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    if node.op != "conv_transpose":
        return None
    axes = transposed_axes(state, node)
    if axes is None:
        return None
    return (_expanded(state, node, axes),)


def _expanded(state: Rewriter, node: Node, axes: Sequence[TransposedAxis]) -> int:
    x, w, *bias = node.operands
    groups, phases = node.integer("groups"), prod(axis.stride for axis in axes)
    own = state.shape_of(w)[1]
    if suits(state, node, axes):
        return rearranged(state, node, phases_by_taps(state, node, axes), own, axes)
    if _is_uneven(axes):
        return rearranged(state, node, _comb_by_comb(state, node, axes), own, axes)
    weights = phase_weights(state, node, w, axes)
    biases = [phase_bias(state, node, value, phases) for value in bias]
    attributes = phase_window(axes, groups)
    if phases > 1 and groups == state.shape_of(w)[0] == state.shape_of(node.results[0])[1]:
        result = _phase_by_phase(state, (x, weights, *biases), attributes, phases, node.source)
    else:
        result = state.emit("conv", (x, weights, *biases), attributes, node.source)
    return rearranged(state, node, result, own, axes)


def _is_uneven(axes: Sequence[TransposedAxis]) -> bool:
    """Whether phases have combs of unlike lengths."""
    phases = ((axis, phase) for axis in axes for phase in range(axis.stride))
    return any(axis.taps_of(phase) != axis.taps for axis, phase in phases)


def _comb_by_comb(state: Rewriter, node: Node, axes: Sequence[TransposedAxis]) -> int:
    """Each phase by a convolution of as many taps as it has: a tap of zeros would make an infinity
    NaN where no tap is."""
    groups, source = node.integer("groups"), node.source
    phases = list(product(*(range(axis.stride) for axis in axes)))
    results = [_one_comb(state, node, list(zip(axes, phase, strict=True))) for phase in phases]
    if groups == 1:
        return state.emit("concat", results, {"axis": 1}, source)
    batch, channels, *sizes = state.shape_of(results[0])
    shape = (batch, groups, dim_floordiv(channels, groups), *sizes)
    parts = [in_shape(state, result, shape, source) for result in results]
    whole = state.emit("concat", parts, {"axis": 2}, source)
    return in_shape(state, whole, (batch, dim_mul(channels, len(phases)), *sizes), source)


def _one_comb(state: Rewriter, node: Node, pairs: Sequence[tuple[TransposedAxis, int]]) -> int:
    """[N, O, sizes of a phase..]: ``pairs`` are the axes and the phase of each."""
    (x, w, *bias), source, groups = node.operands, node.source, node.integer("groups")
    batch, _, *given = state.shape_of(x)
    rows, own, *_ = state.shape_of(w)
    sizes = [size + axis.more for size, (axis, _) in zip(given, pairs, strict=True)]
    taps = [axis.taps_of(phase) for axis, phase in pairs]
    if min(taps) <= 0:
        return _without_taps(state, node, (batch, dim_mul(own, groups), *sizes))
    last = [
        phase + axis.stride * (count - 1) for (axis, phase), count in zip(pairs, taps, strict=True)
    ]
    comb: dict[str, Attribute] = {
        "starts": (0, 0, *last),
        "sizes": (rows, own, *taps),
        "steps": (1, 1, *(-axis.stride for axis, _ in pairs)),
    }
    weights = state.emit("slice", (w,), comb, source)
    depth = dim_floordiv(rows, groups)
    weights = in_shape(state, weights, (groups, depth, own, *taps), source)
    order = (0, 2, 1, *range(3, 3 + len(taps)))
    weights = state.emit("transpose", (weights,), {"permutation": order}, source)
    weights = in_shape(state, weights, (dim_mul(own, groups), depth, *taps), source)
    before = [axis.before_of(phase) for axis, phase in pairs]
    attributes = phase_window([axis for axis, _ in pairs], groups)
    attributes["pads_before"] = tuple(max(pad, 0) for pad in before)
    result = state.emit("conv", (x, weights, *bias), attributes, source)
    return _cut(state, result, [max(-pad, 0) for pad in before], sizes, source)


def _without_taps(state: Rewriter, node: Node, shape: tuple[Dim, ...]) -> int:
    """A phase behind the end of the kernel: 0, or the bias."""
    _, w, *bias = node.operands
    dtype, source = state.type_of(w).dtype, node.source
    value = state.literal(0.0 if dtype in FLOATS else 0, dtype, source)
    for each in bias:
        value = in_shape(state, each, (shape[1], *(1 for _ in shape[2:])), source)
    return state.emit("broadcast_to", (value,), {"shape": shape}, source)


def _phase_by_phase(
    state: Rewriter,
    operands: Sequence[int],
    attributes: dict[str, Attribute],
    phases: int,
    source: Sequence[int],
) -> int:
    """Emit a convolution for each phase; those of a depthwise convolution are depthwise, too."""
    x, *parameters = operands
    results: list[int] = []
    for phase in range(phases):
        own = [_every(state, value, phase, phases, source) for value in parameters]
        part = state.emit("conv", (x, *own), attributes, source)
        batch, channels, *sizes = state.shape_of(part)
        results.append(in_shape(state, part, (batch, channels, 1, *sizes), source))
    whole = state.emit("concat", results, {"axis": 2}, source)
    batch, channels, _, *sizes = state.shape_of(whole)
    return in_shape(state, whole, (batch, dim_mul(channels, phases), *sizes), source)


def _every(state: Rewriter, value: int, start: int, step: int, source: Sequence[int]) -> int:
    """From ``start`` on, every ``step``-th row."""
    rows, *rest = state.shape_of(value)
    attributes: dict[str, Attribute] = {
        "starts": (start, *(0 for _ in rest)),
        "sizes": (dim_floordiv(rows, step), *rest),
        "steps": (step, *(1 for _ in rest)),
    }
    return state.emit("slice", (value,), attributes, source)


def phase_weights(state: Rewriter, node: Node, w: int, axes: Sequence[TransposedAxis]) -> int:
    """[groups * phases * O/G, C/G, taps..] of w[C, O/G, kernel..]."""
    groups, source = node.integer("groups"), node.source
    rows, own, *kernel = state.shape_of(w)
    assert isinstance(rows, int)
    assert isinstance(own, int)
    longer = [
        axis.taps * axis.stride - size if isinstance(size, int) else 0
        for axis, size in zip(axes, kernel, strict=True)
    ]
    if any(longer):
        pads: dict[str, Attribute] = {
            "before": (0,) * (2 + len(axes)),
            "after": (0, 0, *longer),
            "mode": "constant",
        }
        dtype = state.type_of(w).dtype
        zero = state.literal(0.0 if dtype in FLOATS else 0, dtype, source)
        w = state.emit("pad", (w, zero), pads, source)
    combs = [size for axis in axes for size in (axis.taps, axis.stride)]
    w = in_shape(state, w, (groups, rows // groups, own, *combs), source)
    taps = range(3, 3 + 2 * len(axes), 2)
    order = (0, *(tap + 1 for tap in taps), 2, 1, *taps)
    w = state.emit("transpose", (w,), {"permutation": order}, source)
    phases = [axis.stride for axis in axes]
    sizes = (groups * own * prod(phases), rows // groups, *(axis.taps for axis in axes))
    w = in_shape(state, w, sizes, source)
    starts = (0, 0, *(axis.taps - 1 for axis in axes))
    steps = (1, 1, *(-1 for _ in axes))
    return state.emit("slice", (w,), {"starts": starts, "sizes": sizes, "steps": steps}, source)


def phase_bias(state: Rewriter, node: Node, bias: int, phases: int) -> int:
    """Each group's bias once for each phase."""
    groups = node.integer("groups")
    (count,) = state.shape_of(bias)
    assert isinstance(count, int)
    own = count // groups
    bias = in_shape(state, bias, (groups, 1, own), node.source)
    shape = {"shape": (groups, phases, own)}
    bias = state.emit("broadcast_to", (bias,), shape, node.source)
    return in_shape(state, bias, (count * phases,), node.source)


def phase_window(axes: Sequence[TransposedAxis], groups: int) -> dict[str, Attribute]:
    """The attributes of the convolution that computes all phases."""
    return {
        "strides": (1,) * len(axes),
        "dilations": tuple(axis.dilation for axis in axes),
        "pads_before": tuple(axis.before for axis in axes),
        "pads_after": tuple(axis.after for axis in axes),
        "groups": groups,
    }


def rearranged(
    state: Rewriter, node: Node, value: int, own: Dim, axes: Sequence[TransposedAxis]
) -> int:
    """[N, O, sizes..] of [N, groups * phases * O/G, sizes of a phase..]."""
    source, count = node.source, len(axes)
    batch, _, *sizes = state.shape_of(value)
    groups, wanted = node.integer("groups"), state.shape_of(node.results[0])
    if any(axis.stride > 1 for axis in axes):
        phases = [axis.stride for axis in axes]
        outer = (batch, groups) if groups > 1 else (batch,)
        value = in_shape(state, value, (*outer, *phases, own, *sizes), source)
        first = len(outer)
        pairs = [part for axis in range(count) for part in (first + count + 1 + axis, first + axis)]
        order = (*range(first), first + count, *pairs)
        value = state.emit("transpose", (value,), {"permutation": order}, source)
        whole = [dim_mul(size, axis.stride) for size, axis in zip(sizes, axes, strict=True)]
        value = in_shape(state, value, (batch, dim_mul(own, groups), *whole), source)
    return _cut(state, value, [axis.start for axis in axes], wanted[2:], source)


def _cut(
    state: Rewriter, value: int, starts: Sequence[int], sizes: Sequence[Dim], source: Sequence[int]
) -> int:
    """Some sizes of all spatial axes, from ``starts`` on."""
    shape = (*state.shape_of(value)[:2], *sizes)
    if state.shape_of(value) == shape:
        return value
    cut = {"starts": (0, 0, *starts), "sizes": shape, "steps": (1,) * len(shape)}
    return state.emit("slice", (value,), cut, source)
