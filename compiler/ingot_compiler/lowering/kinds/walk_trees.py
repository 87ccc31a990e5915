"""``walk_trees``: rows go down decision trees, several at a time.

In: a group of one ``walk_trees``. Out: its loop program: units are blocks of rows. Not done here:
what the leaves stand for.

A step waits for two loads, one after the other, so that ``TOGETHER`` ways are gone at a time:
of rows in one tree, whose nodes stay in the cache while a block of rows goes down it, and of the
rows that are left, each in several trees. Places of nodes are names for a round of steps, so that
they stay in registers; from round to round, the result holds where a way has come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mod, dim_mul, symbol
from ingot_compiler.ir.ops.walk_trees import FIELDS
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.space import ceil_div
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, FromIndex, Load
from ingot_compiler.lowering.loops.program import For, If, LetIndex, LoopProgram, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

TOGETHER = 8
_ROWS = 64  # of a block: a tree's nodes are loaded into the cache once for all of them
_STEPS_MAX = 4  # before it is looked whether all ways have ended

_TreeAndRow = tuple[Dim, Dim]


@dataclass(frozen=True, slots=True)
class _Trees:
    """The buffers of a group and where an element of each lies."""

    x: Callable[[Dim, Dim], Load]
    node: Callable[[Dim, int], Load]
    root: Callable[[Dim], Load]
    result: int
    place: Callable[[Dim, Dim], Dim]
    dtype: DType
    leaves: int
    depth: int

    def walk(self, ways: Callable[[int], _TreeAndRow], count: int) -> tuple[Statement, ...]:
        """Go down ``count`` ways together; store what the leaves say."""
        own = [ways(way) for way in range(count)]
        rounds = max(1, _ceil_div(self.depth, _STEPS_MAX))
        begin = (Store(self.result, self.place(*at), self.root(at[0])) for at in own)
        again = For("s", rounds, "serial", self._round(own, _ceil_div(self.depth, rounds)))
        return (*begin, again, *(line for way in enumerate(own) for line in self._end(*way)))

    def _round(self, ways: Sequence[_TreeAndRow], steps: int) -> tuple[Statement, ...]:
        """Take ``steps`` steps, unless all ways have ended."""
        begin = (self._reached(way, at) for way, at in enumerate(ways))
        taken = (
            statement
            for step in range(steps)
            for way, (_, row) in enumerate(ways)
            for statement in self._step(way, step, row)
        )
        kept = (
            Store(self.result, self.place(*at), FromIndex(symbol(_name(way, steps)), self.dtype))
            for way, at in enumerate(ways)
        )
        places: list[Dim] = [symbol(_name(way, 0)) for way in range(len(ways))]
        farthest = reduce(dim_max, places)
        goes_on = Compare("less_equal", self.leaves * FIELDS, farthest)
        return (*begin, If(goes_on, (*taken, *kept)))

    def _reached(self, way: int, at: _TreeAndRow) -> Statement:
        return LetIndex(_name(way, 0), Load(self.result, self.place(*at)))

    def _step(self, way: int, step: int, row: Dim) -> tuple[Statement, ...]:
        node, feature = symbol(_name(way, step)), symbol(f"feature{way}_{step}")
        first = Apply("less_equal", (self.x(row, feature), self.node(node, 1)), "bool")
        following = Apply("select", (first, self.node(node, 2), self.node(node, 3)), self.dtype)
        return (
            LetIndex(f"feature{way}_{step}", self.node(node, 0)),
            LetIndex(_name(way, step + 1), following),
        )

    def _end(self, way: int, at: _TreeAndRow) -> tuple[Statement, ...]:
        says = self.node(symbol(_name(way, 0)), 1)
        return (self._reached(way, at), Store(self.result, self.place(*at), says))


def _ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def _name(way: int, step: int) -> str:
    """Where a way is in a round behind so many steps."""
    return f"node{way}_{step}"


def lower_walk_trees(group: Group, target: KernelTarget) -> LoopProgram:
    """Whole groups of rows go down each tree; then the rows that are left."""
    del target
    buffers, trees = GroupBuffers(group), _trees(group)
    tree_count, rows = group.results[0].type.shape
    assert isinstance(tree_count, int)
    start = dim_mul(symbol(INDEX), _ROWS)
    own = dim_min(_ROWS, rows - start)
    first = start + symbol("g") * TOGETHER
    groups = trees.walk(lambda w: (symbol("t"), first + w), TOGETHER)
    whole = For("g", dim_floordiv(own, TOGETHER), "serial", groups)
    alone = _alone(trees, tree_count, start + own - 1 - symbol("r"))
    body = (
        For("t", tree_count, "serial", (whole,)),
        For("r", dim_mod(own, TOGETHER), "serial", alone),
    )
    work = dim_mul(dim_min(rows, _ROWS), tree_count * (trees.depth + 1) * 4)
    return finish_program(buffers, body, ceil_div(rows, _ROWS), grain_for(work))


def _alone(trees: _Trees, tree_count: int, row: Dim) -> tuple[Statement, ...]:
    """One row goes down several trees."""
    count, tree = tree_count // TOGETHER, symbol("g") * TOGETHER
    groups = For("g", count, "serial", trees.walk(lambda w: (tree + w, row), TOGETHER))
    left = tree_count % TOGETHER
    last = trees.walk(lambda w: (count * TOGETHER + w, row), left) if left else ()
    return (groups, *last) if count else last


def _trees(group: Group) -> _Trees:
    anchor, buffers = group.nodes[group.anchor], GroupBuffers(group)
    x, nodes, roots = group.operands
    result = group.results[0]

    def element(operand: Operand, *indices: Dim) -> Load:
        view = operand.view
        offset = view.offset
        for index, stride in zip(indices, view.strides, strict=True):
            offset = offset + dim_mul(index, stride)
        return Load(buffers.number(operand), offset)

    def node(place: Dim, field: int) -> Load:
        if nodes.view.strides == (FIELDS, 1):
            return Load(buffers.number(nodes), nodes.view.offset + place + field)
        return element(nodes, dim_floordiv(place, FIELDS), field)

    return _Trees(
        lambda row, feature: element(x, row, feature),
        node,
        lambda tree: element(roots, tree),
        buffers.number(result),
        lambda tree, row: element(result, tree, row).index,
        x.type.dtype,
        anchor.integer("leaves"),
        anchor.integer("depth"),
    )


WALK_TREES = Kind(
    "walk_trees", one_kernel(lower_walk_trees), ResultLayout.ROW_MAJOR, takes_followers=False
)
