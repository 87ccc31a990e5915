"""``linear_attention``: a matrix for each head that every token changes.

In: a group of one ``linear_attention``. Out: its loop program: units are (sample, head). Not done
here: several tokens at once.

Columns of the matrix know nothing of each other, so they are in lanes, and all tokens pass over one
vector of columns, which stays in the first cache, before the next.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mod, dim_mul, symbol
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops import (
    Apply,
    Constant,
    For,
    Let,
    Load,
    Local,
    LoopProgram,
    Reduce,
    Statement,
    Store,
    Value,
)
from ingot_runtime.lazy_dataclass import dataclass

_TOKEN, _ROW, _COLUMN = symbol("t"), symbol("i"), symbol("j")


def lower_linear_attention(group: Group, target: KernelTarget) -> LoopProgram:
    """The state of a head goes to its result at once, and is changed there."""
    del target
    node = group.nodes[group.anchor]
    by_value = {operand.value: operand for operand in group.operands}
    operands = [by_value[value] for value in node.operands]
    head = _Head(GroupBuffers(group), *operands, *group.results)
    batch, tokens, count, columns = head.v.type.shape
    rows, at = head.k.type.shape[3], (head.sample, head.number, _ROW, _COLUMN)
    begin = head.store(head.last, at, head.load(head.past, *at))
    changes = head.changes(corrects=node.flag("corrects"))
    sums = head.results(node.real("scale"))
    body = (
        For("i", rows, "serial", (begin,)),
        For("t", tokens, "serial", (*changes, *sums)),
    )
    work = dim_mul(dim_mul(rows, columns), dim_mul(tokens, 4))
    unit = (For("j", columns, "vector", body),)
    return finish_program(head.buffers, unit, dim_mul(batch, count), grain_for(work))


@dataclass(frozen=True, slots=True)
class _Head:
    """One head of one sample: of a unit, the column in lanes, a token and a row in scope."""

    buffers: GroupBuffers
    q: Operand
    k: Operand
    v: Operand
    decay: Operand
    beta: Operand
    past: Operand
    result: Operand
    last: Operand

    @property
    def heads(self) -> int:
        """Heads of a state."""
        return _count(self.v)

    @property
    def sample(self) -> Dim:
        """Of the batch."""
        return dim_floordiv(symbol(INDEX), self.heads)

    @property
    def number(self) -> Dim:
        """Of the head."""
        return dim_mod(symbol(INDEX), self.heads)

    def load(self, operand: Operand, *at: Dim) -> Value:
        """An element."""
        return Load(self.buffers.number(operand), self._offset(operand, at))

    def store(self, operand: Operand, at: tuple[Dim, ...], value: Value) -> Statement:
        """Write an element."""
        return Store(self.buffers.number(operand), self._offset(operand, at), value)

    def changes(self, *, corrects: bool) -> tuple[Statement, ...]:
        """What a token adds to the state, and the state behind it."""
        at = self.sample, _TOKEN, self.number
        change = self.load(self.v, *at, _COLUMN)
        key = self.load(
            self.k, *at[:2], dim_floordiv(self.number, self.heads // _count(self.k)), _ROW
        )
        decay = self.load(self.decay, *at, 0 if self.decay.type.shape[3] == 1 else _ROW)
        place = self.sample, self.number, _ROW, _COLUMN
        kept = _apply("mul", decay, self.load(self.last, *place))
        found: tuple[Statement, ...] = ()
        if corrects:
            rows, product = self.k.type.shape[3], _apply("mul", key, kept)
            found = (Reduce("found", "sum", "i", rows, "f32", (), product),)
            change = _apply("sub", change, Local("found", "f32"))
            change = _apply("mul", self.load(self.beta, *at), change)
        following = _apply("add", kept, _apply("mul", key, Local("change", "f32")))
        stored = self.store(self.last, place, following)
        step = For("i", self.k.type.shape[3], "serial", (stored,))
        return (*found, Let("change", change), step)

    def results(self, scale: float) -> Iterator[Statement]:
        """What the queries of the head find in the state."""
        queries = max(1, _count(self.q) // self.heads)
        for query in range(queries):
            number = dim_add(dim_mul(self.number, queries), query)
            own = dim_floordiv(dim_mul(number, _count(self.q)), self.heads * queries)
            value = self.load(self.last, self.sample, self.number, _ROW, _COLUMN)
            product = _apply("mul", self.load(self.q, self.sample, _TOKEN, own, _ROW), value)
            name, rows = f"sum{query}", self.k.type.shape[3]
            yield Reduce(name, "sum", "i", rows, "f32", (), product)
            scaled = _apply("mul", Local(name, "f32"), Constant(scale, "f32"))
            yield self.store(self.result, (self.sample, _TOKEN, number, _COLUMN), scaled)

    def _offset(self, operand: Operand, at: tuple[Dim, ...]) -> Dim:
        offset = operand.view.offset
        for index, stride in zip(at, operand.view.strides, strict=True):
            offset = dim_add(offset, dim_mul(index, stride))
        return offset


def _count(operand: Operand) -> int:
    """Its heads."""
    count = operand.type.shape[2]
    assert isinstance(count, int)
    return count


def _apply(function: str, left: Value, right: Value) -> Value:
    return Apply(function, (left, right), "f32")


LINEAR_ATTENTION = Kind(
    "linear_attention", one_kernel(lower_linear_attention), takes_followers=False
)
