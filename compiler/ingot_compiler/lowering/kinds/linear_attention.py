"""``linear_attention``: a matrix for each head that every token changes.

In: a group of one ``linear_attention``, its workspace. Out: its loop program: units are (sample,
head). Not done
here: several tokens at once.

Columns of the matrix know nothing of each other, so they are in lanes, and some tokens pass over
a few of them before the next ones. These lie together meanwhile, in a workspace: rows that are
whole states apart would share few places of the first cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_min, dim_mod, dim_mul, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, choose, one_launch
from ingot_compiler.lowering.groups.space import ceil_div
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, LoopProgram, Reduce, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

_BLOCK, _COLUMN, _ROW = symbol("block"), symbol("j"), symbol("i")
_COLUMNS_TOGETHER, _TOKENS_TOGETHER = 64, 16
"""Columns of 128 rows fill a first cache, and four registers of 512 bits in a row."""
_ALL_DECAY = Local("decay", "f32")
"""Where rows have one: read once, for stores may change what is read again."""
_NEXT = Local("next", "f32")


def lower_linear_attention(group: Group, target: KernelTarget) -> LoweredGroup:
    """One token goes from state to state; more of them by way of the workspace."""
    del target
    node, tokens = group.nodes[group.anchor], group.results[0].type.shape[1]
    single = one_launch(_of_one_token(_head(group, is_single=True), node))
    if tokens == 1:
        return single
    many = one_launch(_of_tokens(_head(group, is_single=False), node, tokens))
    return many if isinstance(tokens, int) else choose(tokens - 1, many, single)


def _head(group: Group, *, is_single: bool) -> _Head:
    node, buffers = group.nodes[group.anchor], GroupBuffers(group)
    by_value = {operand.value: operand for operand in group.operands}
    operands = [by_value[value] for value in node.operands]
    return _Head(buffers, is_single, *operands, *group.results)


def _of_one_token(head: _Head, node: Node) -> LoopProgram:
    return head.finish((head.by_columns(*head.steps(node)),), 1)


def _of_tokens(head: _Head, node: Node, tokens: Dim) -> LoopProgram:
    """The columns of a state go to the workspace, are changed there, and go to the result."""
    begin = head.store(head.work, head.state(head.past))
    end = head.store(head.last, head.state(head.work))
    rest = dim_add(tokens, dim_mul(symbol("part"), -_TOKENS_TOGETHER))
    together = For("t", dim_min(rest, _TOKENS_TOGETHER), "serial", tuple(head.steps(node)))
    body = (
        head.by_columns(For("i", head.row_count, "serial", (begin,))),
        For("part", ceil_div(tokens, _TOKENS_TOGETHER), "serial", (head.by_columns(together),)),
        head.by_columns(For("i", head.row_count, "serial", (end,))),
    )
    return head.finish(body, tokens)


def workspace(state: TensorType) -> TensorType:
    """Columns of states [B, H, K, V], some of them together where those are whole."""
    batch, heads, rows, columns = state.shape
    width = columns if dim_mod(columns, _COLUMNS_TOGETHER) != 0 else _COLUMNS_TOGETHER
    blocks = dim_floordiv(columns, width) if width != columns else 1
    return TensorType("f32", (dim_mul(batch, heads), blocks, rows, width))


@dataclass(frozen=True, slots=True)
class _Head:
    """One head of one sample: a unit, with a column in lanes; unless ``is_single``, of a block that
    is in scope, as a token is."""

    buffers: GroupBuffers
    is_single: bool
    q: Operand
    k: Operand
    v: Operand
    decay: Operand
    beta: Operand
    past: Operand
    result: Operand
    last: Operand
    work: Operand

    @property
    def heads(self) -> int:
        """Heads of a state."""
        return _head_count(self.v)

    @property
    def row_count(self) -> Dim:
        """Rows of a state."""
        return self.k.type.shape[3]

    @property
    def at(self) -> tuple[Dim, Dim, Dim]:
        """The sample, the token, the head."""
        sample, number = (each(symbol(INDEX), self.heads) for each in (dim_floordiv, dim_mod))
        token = dim_add(dim_mul(symbol("part"), _TOKENS_TOGETHER), symbol("t"))
        return sample, 0 if self.is_single else token, number

    @property
    def column(self) -> Dim:
        """The index of a column among those of the head."""
        first = 0 if self.is_single else dim_mul(_BLOCK, self.work.type.shape[-1])
        return dim_add(first, _COLUMN)

    @property
    def places(self) -> tuple[Operand, Operand]:
        """Where the state lies before a token, and behind it."""
        return (self.past, self.last) if self.is_single else (self.work, self.work)

    def finish(self, body: Sequence[Statement], tokens: Dim) -> LoopProgram:
        """The program of all heads."""
        batch, _, count, columns = self.v.type.shape
        work = dim_mul(dim_mul(self.row_count, columns), dim_mul(tokens, 4))
        return finish_program(self.buffers, body, dim_mul(batch, count), grain_for(work))

    def by_columns(self, *body: Statement) -> Statement:
        """Run statements for all columns, block by block."""
        if self.is_single:
            return For("j", self.v.type.shape[3], "vector", body)
        _, blocks, _, width = self.work.type.shape
        return For("block", blocks, "serial", (For("j", width, "vector", body),))

    def place(self, operand: Operand) -> Dim:
        """The offset of an element of the state in the workspace, or in a state."""
        sample, _, number = self.at
        if operand is self.work:
            return _offset(operand, (symbol(INDEX), _BLOCK, _ROW, _COLUMN))
        return _offset(operand, (sample, number, _ROW, self.column))

    def steps(self, node: Node) -> Iterator[Statement]:
        """What a token does."""
        if self._has_one_decay:
            yield Let(_ALL_DECAY.name, self.load(self.decay, *self.at, 0))
        yield from self._change(corrects=node.flag("corrects"))
        yield from self._find(node.real("scale"))

    def load(self, operand: Operand, *place: Dim) -> Value:
        """An element."""
        return Load(self.buffers.number(operand), _offset(operand, place))

    def state(self, operand: Operand) -> Value:
        """An element of the state that lies there."""
        return Load(self.buffers.number(operand), self.place(operand))

    def store(self, operand: Operand, value: Value) -> Statement:
        """Write an element of the state."""
        return Store(self.buffers.number(operand), self.place(operand), value)

    def _change(self, *, corrects: bool) -> Iterator[Statement]:
        """``change``: what the token's key brings into the state, for each column."""
        change = self.load(self.v, *self.at, self.column)
        if corrects:
            yield self._sum("kept", self._expected())
            found: Value = Local("kept", "f32")
            if self._has_one_decay:
                found = _apply("mul", self._decay(), found)
            change = _apply("sub", change, found)
            change = _apply("mul", self.load(self.beta, *self.at), change)
        yield Let("change", change)

    def _find(self, scale: float) -> Iterator[Statement]:
        """What the queries of the head find in the state, which the first one changes on its way."""
        queries = max(1, _head_count(self.q) // self.heads)
        sample, token, head = self.at
        for query in range(queries):
            number, name = dim_add(dim_mul(head, queries), query), f"sum{query}"
            own = dim_floordiv(dim_mul(number, _head_count(self.q)), self.heads * queries)
            state = self.state(self.places[1]) if query else _NEXT
            product = _apply("mul", self.load(self.q, sample, token, own, _ROW), state)
            yield self._sum(name, product, () if query else self._changed())
            scaled = _apply("mul", Local(name, "f32"), Constant(scale, "f32"))
            place = _offset(self.result, (sample, token, number, self.column))
            yield Store(self.buffers.number(self.result), place, scaled)

    def _sum(self, name: str, product: Value, body: tuple[Statement, ...] = ()) -> Statement:
        """The sum of a product over all rows."""
        return Reduce(name, "sum", "i", self.row_count, "f32", body, product)

    def _changed(self) -> tuple[Statement, ...]:
        """``next`` of a row, and the state with it."""
        before, after = self.places
        kept = _apply("mul", self._decay(), self.state(before))
        added = _apply("mul", self._key(), Local("change", "f32"))
        return Let(_NEXT.name, _apply("add", kept, added)), self.store(after, _NEXT)

    def _expected(self) -> Value:
        """What a row adds to the value that the state has for the key; a decay that all have comes
        once, behind the sum."""
        product = _apply("mul", self._key(), self.state(self.places[0]))
        return product if self._has_one_decay else _apply("mul", self._decay(), product)

    @property
    def _has_one_decay(self) -> bool:
        return self.decay.type.shape[3] == 1

    def _decay(self) -> Value:
        return _ALL_DECAY if self._has_one_decay else self.load(self.decay, *self.at, _ROW)

    def _key(self) -> Value:
        sample, token, head = self.at
        own = dim_floordiv(head, self.heads // _head_count(self.k))
        return self.load(self.k, sample, token, own, _ROW)


def _offset(operand: Operand, place: tuple[Dim, ...]) -> Dim:
    offset = operand.view.offset
    for index, stride in zip(place, operand.view.strides, strict=True):
        offset = dim_add(offset, dim_mul(index, stride))
    return offset


def _head_count(operand: Operand) -> int:
    count = operand.type.shape[2]
    assert isinstance(count, int)
    return count


def _apply(function: str, left: Value, right: Value) -> Value:
    return Apply(function, (left, right), "f32")


LINEAR_ATTENTION = Kind("linear_attention", lower_linear_attention, takes_followers=False)
