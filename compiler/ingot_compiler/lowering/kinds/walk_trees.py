"""``walk_trees``: rows go down decision trees, several at a time.

In: a group of one ``walk_trees``. Out: its loop program: units are blocks of rows. Not done here:
what the leaves stand for.

A step waits for three loads, one after the other, so that ``TOGETHER`` ways are gone at a time:
of rows in one tree, whose nodes stay in the cache while a block of rows goes down it, and of the
rows that are left, each in several trees. The result holds where a way has come to.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min, dim_mod, dim_mul, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops import (
    Apply,
    Constant,
    For,
    If,
    LetIndex,
    Load,
    Local,
    LoopProgram,
    Reduce,
    Statement,
    Store,
    Value,
)
from ingot_compiler.lowering.space import ceil_div
from ingot_runtime.lazy_dataclass import dataclass

TOGETHER = 8
_ROWS = 64  # of a block: a tree's nodes are loaded into the cache once for all of them
_STEPS = 4  # before it is looked whether all ways have ended

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
    node_dtype: DType
    leaves: int
    depth: int

    def walk(self, ways: Callable[[Dim], _TreeAndRow], count: int) -> tuple[Statement, ...]:
        """Go down ``count`` ways together."""
        at = self.place(*ways(symbol("w")))
        begin = Store(self.result, at, self.root(ways(symbol("w"))[0]))
        reached = Reduce("reached", "max", "w", count, "i32", (), Load(self.result, at), lanes=True)
        goes_on = Apply("less", (Constant(self.leaves - 1, "i32"), Local("reached", "i32")), "bool")
        step = For("w", count, "unroll", self._step(at, ways(symbol("w"))[1]))
        steps = For("k", min(_STEPS, self.depth), "serial", (step,))
        again = For("s", ceil_div(self.depth, _STEPS), "serial", (reached, If(goes_on, (steps,))))
        return (For("w", count, "vector", (begin,)), again)

    def _step(self, at: Dim, row: Dim) -> tuple[Statement, ...]:
        node, feature = symbol("node"), symbol("feature")
        bits: Value = self.node(node, 1)
        threshold = Apply("bit_cast", (bits,), self.dtype)
        first = Apply("less_equal", (self.x(row, feature), threshold), "bool")
        following = Apply(
            "select", (first, self.node(node, 2), self.node(node, 3)), self.node_dtype
        )
        return (
            LetIndex("node", Load(self.result, at)),
            LetIndex("feature", self.node(node, 0)),
            Store(self.result, at, Apply("cast", (following,), "i32")),
        )


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

    return _Trees(
        lambda row, feature: element(x, row, feature),
        lambda node, field: element(nodes, node, field),
        lambda tree: element(roots, tree),
        buffers.number(result),
        lambda tree, row: element(result, tree, row).index,
        x.type.dtype,
        nodes.type.dtype,
        anchor.integer("leaves"),
        anchor.integer("depth"),
    )


WALK_TREES = Kind(
    "walk_trees", one_kernel(lower_walk_trees), ResultLayout.ROW_MAJOR, takes_followers=False
)
