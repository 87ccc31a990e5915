"""``select_candidates``: the few least keys of each row. One pass over the keys leaves few
candidates.

In: a group of one ``argsort`` of few results, of how many only a run may know; workspace. Out: its
loop program: units are rows. Not done here: short rows (``rank_rows``), many results
(``radix_sort``).

A row is cut into groups, more of them than results are wanted, and each has a least key. As many of
these as are wanted say which keys are candidates: none above the greatest of them. Candidates are
ranked at the end, and before that where there may be no room for more, which takes keys in an
order that is unlucky.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min, dim_mul, symbol
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.space import ceil_div
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.lines import line_count, load_of_line
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.kinds.rank_sort import rank_each
from ingot_compiler.lowering.kinds.strided_lines import LINE, strided_loop, unit_count, work_of_unit
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

_KEYS_SORTED = 11  # in the time that one of the square of ``count`` adds to ranking
_PART = 32
OPEN_COUNT_MAX = 64  # results that are selected where only a run knows how many are wanted
_PLACE = symbol(INDEX)  # in workspace


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Keys of a row and their positions, in two buffers of [units, ``capacity``]."""

    keys: int
    positions: int
    capacity: int

    def put(self, place: Dim, key: Value, position: Value) -> tuple[Store, ...]:
        """Store a key and its position."""
        at = self._at(place)
        return Store(self.keys, at, key), Store(self.positions, at, position)

    def key(self, place: Dim) -> Load:
        """A key."""
        return Load(self.keys, self._at(place))

    def position(self, place: Dim) -> Load:
        """Where a key was."""
        return Load(self.positions, self._at(place))

    def _at(self, place: Dim) -> Dim:
        return dim_mul(_PLACE, self.capacity) + place


@dataclass(frozen=True, slots=True)
class _Selection:
    """Candidates, their order; the greatest key that is one, and how many there are, both [units].
    Of the first ``count`` of a row ``wanted`` are results."""

    candidates: _Pairs
    ordered: _Pairs
    limit: int
    found: int
    key_at: Callable[[Dim], Value]
    length: Dim
    count: int
    wanted: Dim
    dtype: DType
    lanes: int

    def set_limit(self) -> tuple[Statement, ...]:
        """The limit by the least keys of all groups; what is behind the last whole step of all
        groups is in none."""
        groups, g, s = _group_count(self.count), symbol("g"), symbol("s")
        key = self.key_at(dim_mul(s, groups) + g)
        steps = dim_floordiv(self.length, groups)
        least = Reduce("least", "min", "s", steps, self.dtype, (), key)
        stores = self.candidates.put(g, Local("least", self.dtype), FromIndex(g, "i64"))
        limit = Store(self.limit, _PLACE, self.ordered.key(self.count - 1))
        return (
            For("g", groups, "vector", (least, *stores)),
            self._rank(groups),
            limit,
            self._set_found(0),
        )

    def walk(self) -> For:
        """Find candidates, part by part."""
        part = self.candidates.capacity // 2
        start, j = symbol("b") * part, symbol("j")
        key = self.key_at(start + j)
        stores = self.candidates.put(0, Local("key", self.dtype), FromIndex(start + j, "i64"))
        limit = Load(self.limit, _PLACE)
        is_candidate = Apply(
            "less_equal", (Local("key", self.dtype), Local("limit", self.dtype)), "bool"
        )
        append = Filter(
            "end", "j", dim_min(part, self.length - start), symbol("at"),
            self.candidates.capacity, (Let("key", key),), is_candidate, stores,
        )  # fmt: skip
        body = (
            self._let_found("before"),
            If(Compare("less", part, symbol("before")), self._choose()),
            Let("limit", limit),
            self._let_found("at"),
            append,
            self._set_found(symbol("end")),
        )
        return For("b", ceil_div(self.length, part), "serial", body)

    def finish(self, result: int) -> tuple[Statement, ...]:
        """The first of the candidates are the result."""
        c = symbol("c")
        position = Store(result, dim_mul(LINE, self.wanted) + c, self.ordered.position(c))
        copied = For("c", self.wanted, "vector", (position,))
        return self._let_found("all"), self._rank(symbol("all")), copied

    def _choose(self) -> tuple[Statement, ...]:
        """The first of the candidates become all of them, in order; later ones are below."""
        c, one = symbol("c"), Constant(1, self.dtype)
        kept = self.candidates.put(c, self.ordered.key(c), self.ordered.position(c))
        last = Apply("max", (self.ordered.key(self.count - 1), one), self.dtype)
        return (
            self._rank(symbol("before")),
            For("c", self.count, "vector", kept),
            self._set_found(self.count),
            Store(self.limit, _PLACE, Apply("sub", (last, one), self.dtype)),
        )

    def _rank(self, length: Dim) -> For:
        """The first candidates in order."""

        def put(place: Dim, number: Dim) -> tuple[Store, ...]:
            position = self.candidates.position(number)
            return self.ordered.put(place, Local("own", self.dtype), position)

        return rank_each(self.candidates.key, length, self.dtype, put, self.lanes)

    def _set_found(self, value: Dim) -> Store:
        return Store(self.found, _PLACE, FromIndex(value, "i64"))

    def _let_found(self, name: str) -> LetIndex:
        found = Apply("max", (Load(self.found, _PLACE), Constant(0, "i64")), "i64")
        return LetIndex(name, found)


def selected_count(count: Dim) -> int:
    """How many results are selected where ``count`` are wanted."""
    return count if isinstance(count, int) else OPEN_COUNT_MAX


def least_length(count: int) -> int:
    """The length of rows from which on this is faster than sorting: the cost of ranking grows with
    the square of ``count``."""
    return max(4 * count, -(-count * count // _KEYS_SORTED))


def lower_select_candidates(group: Group, target: KernelTarget) -> LoopProgram:
    """Set the limit, walk, finish."""
    buffers, keys = GroupBuffers(group), group.operands[0]
    result, *own = group.results
    shape, wanted = keys.type.shape, result.type.shape[-1]
    count = selected_count(wanted)

    def key_at(index: Dim) -> Value:
        return load_of_line(buffers, keys, len(shape) - 1, index, LINE)

    candidates, positions, ordered, order, limit, found = (buffers.number(value) for value in own)
    capacity = _capacity(count)
    selection = _Selection(
        _Pairs(candidates, positions, capacity), _Pairs(ordered, order, capacity), limit, found,
        key_at, shape[-1], count, wanted, keys.type.dtype, target.f32_lanes,
    )  # fmt: skip
    body = (*selection.set_limit(), selection.walk(), *selection.finish(buffers.number(result)))
    lines = line_count(shape, len(shape) - 1)
    grain = grain_for(work_of_unit(lines, shape[-1]))
    return finish_program(buffers, (strided_loop(lines, body),), unit_count(lines), grain)


def workspaces(keys: TensorType, count: int) -> list[TensorType]:
    """Keys and positions of candidates, the same in order, the limit, how many there are: of a row
    for each unit."""
    units = unit_count(line_count(keys.shape, keys.rank - 1))
    pairs = (units, _capacity(count))
    buffers = [TensorType(keys.dtype, pairs), TensorType("i64", pairs)]
    return [*buffers, *buffers, TensorType(keys.dtype, (units,)), TensorType("i64", (units,))]


def _group_count(count: int) -> int:
    """The number of groups: with few groups many keys are candidates, with many the least keys take
    long to rank."""
    return 16 * -(-3 * count // 32)


def _capacity(count: int) -> int:
    """Room for the usual number of candidates, and for those of a part of the row."""
    return 4 * _PART * max(1, -(-count // _PART))


SELECT_CANDIDATES = Kind("select_candidates", one_kernel(lower_select_candidates))
