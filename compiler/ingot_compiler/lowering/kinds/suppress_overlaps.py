"""Greedy suppression: every candidate, best first, against the boxes kept before it.

In: a group of one ``suppress_overlaps``; workspace. Out: its loop program: units are rows of
scores; kept boxes in lanes. Not done here: what two boxes share (``overlapping_box``).

Candidates are sorted as they are needed: the best some hundred of them, and twice as many in every
further round while boxes are wanted. What is kept is often decided by the first of many thousands.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul, dim_product, symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.space import point
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.key_range import PARTS, KeyRange
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.overlapping_box import SHARED, Box
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.row_sort import DIGITS, ROW, DigitCounts, KeyPairs, RowSort
from ingot_compiler.lowering.loops.loop_values import (
    Apply,
    Compare,
    Constant,
    FromIndex,
    Load,
    Local,
    Value,
)
from ingot_compiler.lowering.loops.program import (
    Filter,
    For,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Reduce,
    Statement,
    Store,
)
from ingot_runtime.lazy_dataclass import dataclass

_FIRST_CHUNK = 256
_ROUNDS = 48  # more than there can be of chunks, each at least twice as large as the one before
_TABLES = 5  # of counts: one for each byte of a key, one for its part of the range
_ZERO, _ONE = Constant(0, "i64"), Constant(1, "i64")
_KEY = Local("key", "u32")
_DONE, _FROM = (
    0,
    1,
)  # numbers of a row's state: candidates of earlier rounds, the first part of this
_STATES = 2


def _key(score: Value) -> Value:
    """Greater scores have less keys; of NaN 0, the least."""
    zero = Constant(0.0, "f32")
    bits = Apply("bit_cast", (Apply("add", (score, zero), "f32"),), "u32")
    is_below = Apply("less", (score, zero), "bool")
    flipped = Apply("select", (is_below, Constant(0, "u32"), Constant(2**31 - 1, "u32")), "u32")
    key = Apply("bitwise_xor", (bits, flipped), "u32")
    is_number = Apply("logical_not", (Apply("isnan", (score,), "bool"),), "bool")
    return Apply("select", (is_number, key, Constant(0, "u32")), "u32")


def _index(dim: Dim) -> Value:
    return FromIndex(dim, "i64")


def _clamped(value: Value) -> Value:
    return Apply("max", (value, _ZERO), "i64")


@dataclass(frozen=True, slots=True)
class _Suppression:
    """One row: operands, results and workspace by their buffers."""

    group: Group
    buffers: GroupBuffers
    lanes: int

    def lower(self) -> LoopProgram:
        """Candidates, rounds, and zeros behind what is kept."""
        batches, classes, n = self.scores.type.shape
        total = symbol("total")
        rest = self._keep(total + symbol("c"), _ZERO)
        body = (
            Store(self._number(self.kept), self._row, _ZERO),
            *(Store(self._number(self.state), ROW * _STATES + at, _ZERO) for at in range(_STATES)),
            self._candidates(),
            *self._parts.statements(self._key_at, symbol("found")),
            If(Compare("less", _FIRST_CHUNK, symbol("found")), self._counted()),
            For("round", _ROUNDS, "serial", (If(self._is_open(), self._round()),)),
            LetIndex("total", _clamped(self._length)),
            For("c", self._count - total, "vector", (rest,)),
        )
        rows, work = dim_mul(batches, classes), dim_product((n, _FIRST_CHUNK))
        return finish_program(self.buffers, body, rows, grain_for(work))

    # ---- candidates ------------------------------------------------------------------------------

    def _candidates(self) -> Filter:
        """Keys and numbers of the boxes that may be kept."""
        i, n = symbol("i"), self.scores.type.shape[2]
        node, score = self.group.nodes[0], Local("score", "f32")
        body = (
            Let("score", self._load(self.scores, self._batch, self._class, i)),
            Let("key", _key(score)),
        )
        is_above = Apply("less", (self._load(self._operand(2)), score), "bool")
        condition = is_above if node.flag("is_limited") else Constant(True, "bool")
        return Filter("found", "i", n, 0, n, body, condition, self._all.kept(_index(i), "u32"))

    def _counted(self) -> tuple[Statement, ...]:
        """How many candidates are in each part of the range, or before it."""
        part = Apply("cast", (self._parts.part(_KEY),), "i64")
        key = self._key_at(symbol("i"))
        return self._table.prepare({_TABLES - 1: part}, symbol("found"), key)

    # ---- rounds ----------------------------------------------------------------------------------

    def _is_open(self) -> Value:
        """Whether boxes are wanted, and candidates left."""
        wanted = Apply("less", (self._length, self._load(self._operand(4))), "bool")
        left = Apply("less", (self._state(_DONE), _index(symbol("found"))), "bool")
        return Apply("logical_and", (wanted, left), "bool")

    def _round(self) -> tuple[Statement, ...]:
        """Take the candidates of some parts, sort them, and try each."""
        i, d, found = symbol("i"), symbol("d"), symbol("found")
        chunk = Apply("shift_left", (Constant(_FIRST_CHUNK, "i64"), _index(symbol("round"))), "i64")
        is_short = Apply("less", (self._table.at(d, _TABLES - 1), Local("enough", "i64")), "bool")
        short = Reduce(
            "short", "sum", "d", DIGITS, "u32", (), Apply("cast", (is_short,), "u32"), lanes=True
        )
        few = Compare("less_equal", found, _FIRST_CHUNK)
        last = Apply("select", (few, Constant(PARTS - 1, "u32"), Local("short", "u32")), "u32")
        key, position = self._all.get(i)
        part = self._parts.part(_KEY)
        is_next = Apply(
            "logical_and",
            (
                Apply("less_equal", (Local("from", "u32"), part), "bool"),
                Apply("less_equal", (part, Local("last", "u32")), "bool"),
            ),
            "bool",
        )
        picked = self._pairs[0].kept(position, "u32")
        size = symbol("chunk")
        return (
            Let("enough", Apply("add", (self._state(_DONE), chunk), "i64")),
            short,
            Let("from", Apply("cast", (self._state(_FROM),), "u32")),
            Let("last", last),
            Filter("chunk", "i", found, 0, found, (Let("key", key),), is_next, picked),
            *self._sort.order(self._pairs[0], size),
            For("i", size, "serial", self._tried()),
            self._set(
                _FROM, Apply("add", (Apply("cast", (Local("last", "u32"),), "i64"), _ONE), "i64")
            ),
            self._set(_DONE, Apply("add", (self._state(_DONE), _index(size)), "i64")),
        )

    def _tried(self) -> tuple[Statement, ...]:
        """Compare a candidate with the boxes that are kept, and keep it if none overlaps."""
        length, own, j = symbol("length"), symbol("own"), symbol("j")
        ordered = Load(
            self._number(self.order), dim_mul(ROW, self.order.type.shape[2]) + symbol("i")
        )
        box = Box(*(Local(f"side{side}", "f32") for side in range(4)))
        corners = [self._load(self._operand(0), self._batch, own, at) for at in range(4)]
        is_centered = self.group.nodes[0].flag("is_centered")
        read = Box.centred(*corners) if is_centered else Box.between(*corners)
        sides = tuple(Let(f"side{side}", value) for side, value in enumerate(read.sides))
        other = Box(*(Load(self._number(self.sides), self._side(side, j)) for side in range(4)))
        met = Apply("cast", (box.meets(other, self._load(self._operand(3))),), "i32")
        common = Let(SHARED.name, box.shared_area(other))
        found = Reduce("met", "max", "j", length, "i32", (common,), met, lanes=True)
        # Of no earlier box the greatest flag is the least integer.
        free = Apply("less", (Local("met", "i32"), Constant(1, "i32")), "bool")
        kept: tuple[Statement, ...] = (
            *(
                Store(self._number(self.sides), self._side(at, length), side)
                for at, side in enumerate(box.sides)
            ),
            self._keep(length, _index(own)),
            Store(self._number(self.kept), self._row, _index(length + 1)),
        )
        is_wanted = Apply("less", (_index(length), self._load(self._operand(4))), "bool")
        has_free_place = Apply(
            "logical_and", (Compare("less", length, self._count), is_wanted), "bool"
        )
        tried: tuple[Statement, ...] = (
            LetIndex("own", _clamped(ordered)), *sides, found, If(free, kept),
        )  # fmt: skip
        return LetIndex("length", _clamped(self._length)), If(has_free_place, tried)

    # ---- where things are ------------------------------------------------------------------------

    @property
    def kept(self) -> Operand:
        """The result."""
        return self.group.results[0]

    @property
    def sides(self) -> Operand:
        """Workspace: f32[B, C, 4, count] of the boxes that are kept."""
        return self.group.results[1]

    @property
    def state(self) -> Operand:
        """Workspace: ``_STATES`` numbers for each row."""
        return self.group.results[2]

    @property
    def order(self) -> Operand:
        """Workspace: candidates of a round, best first."""
        return self.group.results[3]

    @property
    def scores(self) -> Operand:
        """The second operand."""
        return self._operand(1)

    @property
    def _batch(self) -> Dim:
        return dim_floordiv(ROW, self.scores.type.shape[1])

    @property
    def _class(self) -> Dim:
        return ROW - dim_mul(self._batch, self.scores.type.shape[1])

    @property
    def _parts(self) -> KeyRange:
        return KeyRange("u32")

    @property
    def _table(self) -> DigitCounts:
        return DigitCounts(self._number(self.group.results[4]), _TABLES)

    @property
    def _all(self) -> KeyPairs:
        return self._pair(0)

    @property
    def _pairs(self) -> tuple[KeyPairs, ...]:
        return self._pair(1), self._pair(2)

    @property
    def _sort(self) -> RowSort:
        n, result = self.scores.type.shape[2], self._number(self.order)
        return RowSort(self._table, self._pairs, self._key_at, n, "u32", result, n, self.lanes)

    def _key_at(self, index: Dim) -> Value:
        """The key of a candidate."""
        return self._all.get(index)[0]

    @property
    def _length(self) -> Value:
        return Load(self._number(self.kept), self._row)

    @property
    def _count(self) -> Dim:
        return dim_add(self.kept.type.shape[2], -1)

    @property
    def _row(self) -> Dim:
        return dim_mul(ROW, self.kept.type.shape[2])

    def _keep(self, place: Dim, value: Value) -> Store:
        return Store(self._number(self.kept), self._row + 1 + place, value)

    def _pair(self, number: int) -> KeyPairs:
        keys, positions = self.group.results[5 + 2 * number : 7 + 2 * number]
        row = dim_mul(ROW, self.scores.type.shape[2])
        return KeyPairs(self._number(keys), self._number(positions), row)

    def _state(self, number: int) -> Value:
        return Load(self._number(self.state), ROW * _STATES + number)

    def _set(self, number: int, value: Value) -> Store:
        return Store(self._number(self.state), ROW * _STATES + number, value)

    def _side(self, side: int, index: Dim) -> Dim:
        return dim_mul(ROW * 4 + side, self._count) + index

    def _number(self, operand: Operand) -> int:
        return self.buffers.number(operand)

    def _operand(self, position: int) -> Operand:
        value = self.group.nodes[0].operands[position]
        return next(operand for operand in self.group.operands if operand.value == value)

    def _load(self, operand: Operand, *index: Dim) -> Load:
        place = point(operand.type.shape, index).offset(operand.view)
        return Load(self._number(operand), place)


def lower_suppress_overlaps(group: Group, target: KernelTarget) -> LoopProgram:
    """The kept boxes of a row lie together in workspace: a candidate is compared with them
    alone."""
    return _Suppression(group, GroupBuffers(group), target.f32_lanes).lower()


def workspaces(scores: TensorType, size: Dim) -> list[TensorType]:
    """What the kernel needs beside its result, in the order in which it finds it; ``size``: of a row
    of the result."""
    rows, n = scores.shape[:2], scores.shape[2]
    keys, positions = TensorType("u32", (*rows, n)), TensorType("i64", (*rows, n))
    return [
        TensorType("f32", (*rows, 4, dim_add(size, -1))),
        TensorType("i64", (*rows, _STATES)),
        positions,
        TensorType("i64", (*rows, _TABLES, DIGITS)),
        *[keys, positions] * 3,
    ]


SUPPRESS_OVERLAPS = Kind("suppress_overlaps", one_kernel(lower_suppress_overlaps))
