"""Gives sizes that an op's type rule takes to be equal one spelling, so that core ops see operands
whose shapes agree in the types.

In: a core op, its attributes and operand types. Out: what operands go through first, a ``reshape``
or ``broadcast_to`` that relies on another size. These two carry the run-time check (equal element
counts; equal or 1). Not done here: which sizes are equal or broadcast (the op's shape constraints),
sizes that contradict in numbers (the type rules refuse them).

Two different expressions over a common symbol are taken to be equal, unless some size of it makes
one of them 1 and the other not; over different symbols, either may be 1 at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from ingot_compiler.ir.attributes import Attributes
from ingot_compiler.ir.dims import Dim, dim_broadcast, evaluate, format_dim, symbols_of
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.shape_constraints import (
    BroadcastSizes,
    EqualSizes,
    Shape,
    ShapeConstraint,
    Size,
)
from ingot_compiler.ir.types import TensorType

Detour = tuple[Literal["reshape", "broadcast_to"], Shape]
"""("reshape" or "broadcast_to", shape) that an operand goes through first."""


def unify_sizes(
    op: OpName, attributes: Attributes, types: Sequence[TensorType]
) -> list[Detour | None]:
    """What each operand of ``op`` goes through; None where its shape agrees already. OpTypeError:
    numbers contradict."""
    shapes = [tensor.shape for tensor in types]
    if len(shapes) < 2 or all(isinstance(size, int) for shape in shapes for size in shape):
        return [None] * len(shapes)
    constraints = OPS_BY_NAME[op].infer(types, attributes).constraints
    unified = _unified(shapes, constraints)
    detours: list[Detour | None] = [
        None if shape == own else ("reshape", shape)
        for shape, own in zip(unified, shapes, strict=True)
    ]
    for constraint in constraints:
        if isinstance(constraint, BroadcastSizes):
            heads = zip(constraint.operands, constraint.shapes, strict=False)
            ranks = {operand: len(shape) for operand, shape in heads}
            for operand, detour in _broadcast(unified, ranks):
                detours[operand] = detour
    return detours


def _unified(shapes: Sequence[Shape], constraints: Sequence[ShapeConstraint]) -> list[Shape]:
    """The shapes where every size has the simplest spelling among those that it is equal to."""
    unified = [list(shape) for shape in shapes]
    for constraint in constraints:
        if isinstance(constraint, EqualSizes):
            now = [
                unified[size.operand][size.axis] if isinstance(size, Size) else size
                for size in constraint.sizes
            ]
            for size in constraint.sizes:
                if isinstance(size, Size):
                    unified[size.operand][size.axis] = min(now, key=_complexity)
    return [tuple(shape) for shape in unified]


def _complexity(dim: Dim) -> tuple[bool, int, str]:
    """Numbers before expressions, short ones before long ones."""
    text = format_dim(dim)
    return not isinstance(dim, int), len(text), text


def _broadcast(shapes: Sequence[Shape], ranks: Mapping[int, int]) -> Iterator[tuple[int, Detour]]:
    """Broadcast the first ``ranks[operand]`` axes of each operand together."""
    heads = {operand: shapes[operand][:rank] for operand, rank in ranks.items()}
    rank = max(ranks.values(), default=0)
    targets = [
        _target([head[axis - rank] for head in heads.values() if len(head) >= rank - axis])
        for axis in range(rank)
    ]
    for operand, head in heads.items():
        detour = _broadcast_detour(head, targets[rank - len(head) :], shapes[operand][len(head) :])
        if detour:
            yield operand, detour


def _target(dims: Sequence[Dim]) -> tuple[Dim, bool]:
    """The size of one axis of the result, and whether every size other than 1 is taken to be equal
    to it."""
    different = [dim for dim in dict.fromkeys(dims) if dim != 1]
    numbers = [dim for dim in different if isinstance(dim, int)]
    if numbers or not different:
        return (numbers[0] if numbers else 1), False
    target, equal = different[0], True
    for dim in different[1:]:
        equal = equal and _must_be_equal(target, dim)
        target = min(target, dim, key=_complexity) if equal else dim_broadcast(target, dim)
    return target, equal


def _must_be_equal(left: Dim, right: Dim) -> bool:
    """Whether one symbol is behind both, and no size of it makes one of them 1 and the other not;
    nothing at all is a size, too.

    What one broadcast to with another size may go on so. Of the sizes that
    are tried, those above 1
    decide: a size of 1 makes most sizes 1, and exporters do not write for it.
    """
    names = sorted({*symbols_of(left), *symbols_of(right)})
    if set(symbols_of(left)).isdisjoint(symbols_of(right)):
        return False
    if dim_broadcast(left, right) in (left, right):
        return False
    nothing = dict.fromkeys(names, 0)
    if {evaluate(left, nothing), evaluate(right, nothing)} == {0, 1}:
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


def _broadcast_detour(
    head: Shape, targets: Sequence[tuple[Dim, bool]], tail: Shape
) -> Detour | None:
    pairs = list(zip(head, targets, strict=True))
    if any(
        isinstance(size, int) and isinstance(to, int) and size not in (1, to)
        for size, (to, _) in pairs
    ):
        return None
    settled = tuple(to if equal and size != 1 else size for size, (to, equal) in pairs)
    if any(size not in (1, to) for size, (to, _) in zip(settled, targets, strict=True)):
        return "broadcast_to", (*(to for to, _ in targets), *tail)
    return None if settled == head else ("reshape", (*settled, *tail))
