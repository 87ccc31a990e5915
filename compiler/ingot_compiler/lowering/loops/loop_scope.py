"""What a statement of a loop program can use: buffers, symbols, named values, iterations to try.

In: a scope; a loop, a name or a condition around a statement. Out: the scope in there; problems of
indices and names. Not done here: values (``verify_loop_values``), statements (``verify_loops``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_add, dim_min, evaluate, is_symbol_name, symbols_of
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.problem import Path, Problem
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.interpret_scalars import apply_function
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, Constant, Load, Value
from ingot_compiler.lowering.loops.program import Buffer
from ingot_runtime.lazy_dataclass import dataclass

POINT_COUNT_MAX = 64  # iterations at which accesses are tried
Point = Mapping[str, int]
_UNKNOWN = (KeyError, LimitError)
"""What ``evaluate`` raises: a symbol without a value; one so large that a size with it is none."""


@dataclass(frozen=True, slots=True)
class LoopScope:
    """``counts``: elements of each buffer, or empty; ``points``: values of the loops' variables;
    ``path``: of the statement; ``vector``: whether it stands in a loop in lanes."""

    buffers: Sequence[Buffer]
    counts: Sequence[Dim]
    symbols: frozenset[str]
    locals: Mapping[str, DType]
    points: tuple[Point, ...]
    path: Path
    vector: bool = False

    # ---- what a loop, a name or a condition changes ----------------------------------------------

    def looped(self, variable: str, extent: Dim, first: Dim = 0) -> LoopScope:
        """Inside ``variable`` in ``first .. first + extent - 1``."""
        found: list[Point] = []
        for point in self.points:
            try:
                start, count = evaluate(first, point), evaluate(extent, point)
            except _UNKNOWN:
                found.append(point)  # how often it runs is not known
                continue
            ends = (start, start + count - 1) if count > 1 else (start,) if count == 1 else ()
            found += [{**point, variable: end} for end in ends]
        return replace(self, symbols=self.symbols | {variable}, points=_spread(found))

    def blocked(self, variable: str, count: Dim, start: Dim, block: int) -> LoopScope:
        """Inside ``variable`` in ``start .. min(start + block, count) - 1``."""
        end = dim_min(dim_add(start, block), count)
        return self.looped(variable, end - start, start)

    def over(self, ranges: Iterable[tuple[str, Dim]]) -> LoopScope:
        """Inside several loops."""
        scope = self
        for name, extent in ranges:
            scope = scope.looped(name, extent)
        return scope

    def where(self, condition: Value, *, holds: bool = True) -> LoopScope:
        """Where a condition is known to hold, or not to."""
        return replace(
            self, points=tuple(point for point in self.points if _truth(condition, point) is holds)
        )

    def named(self, *values: tuple[str, DType]) -> LoopScope:
        """With values of those names."""
        return replace(self, locals={**self.locals, **dict(values)})

    def at(self, *path: int) -> LoopScope:
        """Inside the statement at ``path``."""
        return replace(self, path=(*self.path, *path))

    # ---- what is there ---------------------------------------------------------------------------

    def dtype_of(self, value: Value) -> DType:
        """The type of a value; that of names is what they say."""
        match value:
            case Load(buffer, _):
                return self.buffers[buffer].dtype if buffer < len(self.buffers) else "f32"
            case Compare():
                return "bool"
            case _:
                return value.dtype

    def sizes(self, name: str, *dims: Dim) -> Iterator[Problem]:
        """That all symbols are bound."""
        expected = "a scalar, a loop's variable or an index"
        for dim in dims:
            for free in sorted(set(symbols_of(dim)) - self.symbols):
                yield self.problem(name, expected, free, "symbols are bound before")

    def copied(self, name: str, extent: Dim) -> Iterator[Problem]:
        """That a loop whose body is copied has a number of iterations."""
        if not isinstance(extent, int):
            expected = "an extent that is a number"
            yield self.problem(name, expected, str(extent), "loops that are copied")

    def fresh(
        self, name: str, symbols: Sequence[str], values: Sequence[str] = ()
    ) -> Iterator[Problem]:
        """That names are new here, and can be written down."""
        expected = "a name that is new where it is bound"
        for made, known in ((symbols, self.symbols), (values, self.locals)):
            for new in made:
                if new in known or made.count(new) > 1 or not is_symbol_name(new):
                    yield self.problem(name, expected, new, "names are bound once")

    def access(self, name: str, buffer: int, index: Dim) -> Iterator[Problem]:
        """That an element of a buffer is there."""
        yield from self.sizes(name, index)
        if buffer >= len(self.buffers):
            expected = f"b0 to b{len(self.buffers) - 1}"
            yield self.problem(name, expected, f"b{buffer}", "buffers of the kernel")
            return
        for point in self.points:
            try:
                element = evaluate(index, point)
                count = evaluate(self.counts[buffer], {}) if self.counts else None
            except _UNKNOWN:
                continue
            if element < 0 or (count is not None and element >= count):
                most = "" if count is None else f" and below {count}"
                expected = f"an element of b{buffer}, at least 0{most}"
                got = f"{element}{_point_text(point)}"
                yield self.problem(name, expected, got, "accesses lie in their buffers")
                return

    def problem(self, name: str, expected: str, got: str, rule: str) -> Problem:
        """A problem of this statement."""
        return Problem(self.path, name, expected, got, rule)


def _point_text(point: Point) -> str:
    at = ", ".join(f"{name} = {value}" for name, value in point.items())
    return f" at {at}" if at else ""


def _spread(points: Sequence[Point]) -> tuple[Point, ...]:
    """At most ``POINT_COUNT_MAX`` of some points, the first and the last among them."""
    count = len(points)
    if count <= POINT_COUNT_MAX:
        return tuple(points)
    return tuple(
        points[number * (count - 1) // (POINT_COUNT_MAX - 1)] for number in range(POINT_COUNT_MAX)
    )


def _truth(condition: Value, point: Point) -> bool | None:
    """Whether a condition holds; None where the data decide."""
    match condition:
        case Compare(function, left, right):
            try:
                operands = evaluate(left, point), evaluate(right, point)
                return bool(apply_function(function, "i64", operands))
            except _UNKNOWN:
                return None
        case Constant(number, _):
            return bool(number)
        case Apply("logical_and" | "logical_or" as function, (left, right), _):
            decisive = function == "logical_or"  # what one operand alone decides
            both = _truth(left, point), _truth(right, point)
            return decisive if decisive in both else None if None in both else not decisive
        case Apply("logical_not", (inner,), _):
            found = _truth(inner, point)
            return None if found is None else not found
        case _:
            return None
