"""Makes sizes agree that may differ at run time, so that core ops see operands whose shapes agree in the types.

In: a core op, its attributes and operand shapes. Out: what operands go through first, a ``reshape`` or ``broadcast_to`` that
claims another size. These two carry the run-time check (equal element counts; equal or 1). Not done here: sizes that
contradict in numbers (the type rules refuse them).

Two different expressions over a common symbol are taken to be equal, unless some size of it makes one of them 1 and the other not;
over different symbols, either may be 1 at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, dim_max, dim_mul, evaluate, format_dim, symbols_of
from ingot_compiler.ir.ops import OPS_BY_NAME

Shape = tuple[Dim, ...]
Claim = tuple[str, Shape]
"""("reshape" or "broadcast_to", shape) that an operand goes through first."""

Attributes = Mapping[str, Attribute]


def claims(op: str, attributes: Attributes, shapes: Sequence[Shape]) -> list[Claim | None]:
    """What each operand of ``op`` goes through; None where its shape agrees already."""
    if len(shapes) < 2 or all(isinstance(size, int) for shape in shapes for size in shape):
        return [None] * len(shapes)
    if OPS_BY_NAME[op].elementwise:
        return _broadcast(shapes, 0)
    if op == "matmul":
        return _matmul(shapes)
    wanted = _UNIFIERS[op](shapes, attributes) if op in _UNIFIERS else list(shapes)
    return [None if shape == own else ("reshape", shape) for shape, own in zip(wanted, shapes, strict=True)]


def simpler(left: Dim, right: Dim) -> Dim:
    """The common value of two sizes that must be equal: a number, else the shorter expression."""
    return min(left, right, key=lambda dim: (not isinstance(dim, int), len(format_dim(dim)), format_dim(dim)))


def _broadcast(shapes: Sequence[Shape], kept: int) -> list[Claim | None]:
    """Broadcasting of all axes but the last ``kept``."""
    heads = [shape[: len(shape) - kept] for shape in shapes]
    rank = max(map(len, heads))
    targets = [_target([head[axis - rank] for head in heads if len(head) >= rank - axis]) for axis in range(rank)]
    return [
        _broadcast_claim(head, targets[rank - len(head) :], shape[len(head) :])
        for head, shape in zip(heads, shapes, strict=True)
    ]


def _target(dims: Sequence[Dim]) -> tuple[Dim, bool]:
    """The size of one axis of the result, and whether every size other than 1 is taken to be equal to it."""
    different = [dim for dim in dict.fromkeys(dims) if dim != 1]
    numbers = [dim for dim in different if isinstance(dim, int)]
    if numbers or not different:
        return (numbers[0] if numbers else 1), False
    target, equal = different[0], True
    for dim in different[1:]:
        equal = equal and _must_be_equal(target, dim)
        target = simpler(target, dim) if equal else dim_max(target, dim)
    return target, equal


def _must_be_equal(left: Dim, right: Dim) -> bool:
    """Whether one symbol is behind both, and no size of it makes one of them 1 and the other not.

    A maximum of one with another size came from broadcasting, and may go on so. Of the sizes that are tried, those above 1
    decide: a size of 1 makes most sizes 1, and exporters do not write for it.
    """
    names = sorted({*symbols_of(left), *symbols_of(right)})
    if set(symbols_of(left)).isdisjoint(symbols_of(right)):
        return False
    if any("max(" in format_dim(size) and dim_max(left, right) == size for size in (left, right)):
        return False
    tried = [(evaluate(left, sizes), evaluate(right, sizes)) for sizes in _sizes_above_1(names)]
    fitting = [pair for pair in tried if pair[0] == pair[1] or 1 in pair]
    if not fitting:
        small = dict.fromkeys(names, 1)
        fitting = [(evaluate(left, small), evaluate(right, small))]
    return all(first == second for first, second in fitting)


def _sizes_above_1(names: Sequence[str]) -> Iterator[dict[str, int]]:
    """A few sizes of each symbol: all the same, and each its own."""
    for step in range(2, 14):
        yield dict.fromkeys(names, step)
        yield {name: 2 + (step * 7 + position * 5) % 23 for position, name in enumerate(names)}


def _broadcast_claim(head: Shape, targets: Sequence[tuple[Dim, bool]], tail: Shape) -> Claim | None:
    pairs = list(zip(head, targets, strict=True))
    if any(isinstance(size, int) and isinstance(to, int) and size not in (1, to) for size, (to, _) in pairs):
        return None
    settled = tuple(to if equal and size != 1 else size for size, (to, equal) in pairs)
    if any(size not in (1, to) for size, (to, _) in zip(settled, targets, strict=True)):
        return "broadcast_to", (*(to for to, _ in targets), *tail)
    return None if settled == head else ("reshape", (*settled, *tail))


def _matmul(shapes: Sequence[Shape]) -> list[Claim | None]:
    """The inner sizes are equal, the sizes before the matrices broadcast."""
    if any(len(shape) < 2 for shape in shapes):
        return [None, None]
    inner = simpler(shapes[0][-1], shapes[1][-2])
    same = (*shapes[0][:-1], inner), (*shapes[1][:-2], inner, shapes[1][-1])
    merged = _broadcast(same, 2)
    return [
        claim or (None if shape == own else ("reshape", shape))
        for claim, shape, own in zip(merged, same, shapes, strict=True)
    ]


def _common(rows: Sequence[Shape]) -> Shape:
    """Per position, the simplest of sizes that must be equal."""
    common = list(rows[0])
    for row in rows[1:]:
        common = [simpler(left, right) for left, right in zip(common, row, strict=True)]
    return tuple(common)


def _concat(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    axis = attributes["axis"]
    if not isinstance(axis, int) or len({len(shape) for shape in shapes}) > 1:
        return list(shapes)
    common = _common([(*shape[:axis], *shape[axis + 1 :]) for shape in shapes])
    return [(*common[:axis], shape[axis], *common[axis:]) for shape in shapes]


def _channels(shapes: Sequence[Shape], _: Attributes) -> list[Shape]:
    """Let x[N, C, ..] and vectors [C]."""
    if len(shapes[0]) < 2 or any(len(shape) != 1 for shape in shapes[1:]):
        return list(shapes)
    common = _common([(shapes[0][1],), *shapes[1:]])
    return [(shapes[0][0], *common, *shapes[0][2:]), *[common] * (len(shapes) - 1)]


def _tail(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    """Let x agree with parameters of shape x[axis:]."""
    axis = attributes["axis"]
    if not isinstance(axis, int) or any(len(shape) != len(shapes[0]) - axis for shape in shapes[1:]):
        return list(shapes)
    common = _common([shapes[0][axis:], *shapes[1:]])
    return [(*shapes[0][:axis], *common), *[common] * (len(shapes) - 1)]


def _convolution(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    """Let x have the channels as the weights have them."""
    x, w, groups = shapes[0], shapes[1], attributes["groups"]
    if len(x) < 3 or len(w) < 3 or not isinstance(groups, int):
        return list(shapes)
    return [(x[0], simpler(x[1], dim_mul(w[1], groups)), *x[2:]), *shapes[1:]]


def _convolution_transpose(shapes: Sequence[Shape], _: Attributes) -> list[Shape]:
    x, w = shapes[0], shapes[1]
    return list(shapes) if len(x) < 3 or len(w) < 3 else [(x[0], simpler(x[1], w[0]), *x[2:]), *shapes[1:]]


def _attention(shapes: Sequence[Shape], _: Attributes) -> list[Shape]:
    """q[B, H, S, D], k[B, G, T, D], v[B, G, T, E]."""
    if any(len(shape) != 4 for shape in shapes[:3]):
        return list(shapes)
    q, k, v = shapes[:3]
    (batch,) = _common([q[:1], k[:1], v[:1]])
    (depth,) = _common([q[3:], k[3:]])
    groups, rows = _common([k[1:3], v[1:3]])
    return [(batch, q[1], q[2], depth), (batch, groups, rows, depth), (batch, groups, rows, v[3]), *shapes[3:]]


def _scatter(shapes: Sequence[Shape], _: Attributes) -> list[Shape]:
    """Let updates have the shape indices[:-1] + x[indices[-1]:], so that none is read from behind them."""
    x, indices, updates = shapes
    depth = indices[-1] if indices else None
    if not isinstance(depth, int) or not 0 <= depth <= len(x):
        return list(shapes)
    wanted = (*indices[:-1], *x[depth:])
    pairs = list(zip(wanted, updates, strict=False))
    if len(wanted) != len(updates) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        return list(shapes)  # the type rule says what is wrong
    return [x, indices, wanted]


_UNIFIERS: dict[str, Callable[[Sequence[Shape], Attributes], list[Shape]]] = {
    "attention": _attention,
    "batch_norm": _channels,
    "concat": _concat,
    "conv": _convolution,
    "conv_transpose": _convolution_transpose,
    "group_norm": _channels,
    "layer_norm": _tail,
    "rms_norm": _tail,
    "scatter_nd": _scatter,
}
