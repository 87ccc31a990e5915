"""Checks that a loop program is well formed: what code generation may rely on.

In: a ``LoopProgram``; how many elements its buffers have, where that is known. Out: nothing, or
``InternalError`` that names the statement. Not done here: what the program computes
(``interpret_loops``).

Buffers and names exist and are bound once where they are seen; values have the types that they
state; only buffers that are written are stored to; loops in lanes are not inside one another.
Accesses lie in their buffers, tried at the first and last iteration of every loop whose range is
known, where the conditions around them hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ingot_compiler.ir.attributes import Attributes
from ingot_compiler.ir.dims import Dim, dim_add, dim_min, evaluate, is_symbol_name, symbols_of
from ingot_compiler.ir.op_type_error import AttributeNamesError, OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.problem import Path, Problem, require_none
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.interpret_scalars import BINARY, UNARY
from ingot_compiler.lowering.loops import (
    Apply,
    Attention,
    Buffer,
    Compare,
    Constant,
    Contraction,
    Depthwise,
    DepthwisePlane,
    For,
    FromIndex,
    If,
    Let,
    LetIndex,
    Load,
    Local,
    LoopProgram,
    Reduce,
    Require,
    Statement,
    Store,
    Transpose,
    Value,
    widened_to,
)

POINT_COUNT_MAX = 64  # iterations at which accesses are tried
Point = Mapping[str, int]


def verify_loops(program: LoopProgram, element_counts: Sequence[Dim] = ()) -> None:
    """Raise InternalError for the first problem; ``element_counts``: of the buffers, none where
    nothing is known of them."""
    require_none(find_loop_problems(program, element_counts), "statement", "loop program", "loops")


def find_loop_problems(
    program: LoopProgram, element_counts: Sequence[Dim] = ()
) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    names = (*program.scalars, program.index)
    for name in names:
        if not is_symbol_name(name) or names.count(name) > 1:
            yield Problem(
                (),
                "kernel",
                "names that differ and can be written down",
                name,
                "scalars and the index",
            )
    if program.grain < 1:
        yield Problem((), "kernel", "at least 1", str(program.grain), "units worth a thread")
    scope = _Scope(program.buffers, element_counts, frozenset(program.scalars), {}, ({},), ())
    yield from scope.sizes("kernel", program.extent, program.scratch_bytes)
    inside = scope.looped(program.index, program.extent)
    yield from inside.check(program.body)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a statement sees: buffers, symbols, named values, iterations to try, the path of its
    body."""

    buffers: Sequence[Buffer]
    counts: Sequence[Dim]
    symbols: frozenset[str]
    locals: Mapping[str, DType]
    points: tuple[Point, ...]
    path: Path
    vector: bool = False

    # ---- what a loop, a name or a condition changes ----------------------------------------------

    def looped(self, variable: str, extent: Dim, first: Dim = 0) -> _Scope:
        """Inside ``variable`` in ``first .. first + extent - 1``."""
        found: list[Point] = []
        for point in self.points:
            try:
                start, count = evaluate(first, point), evaluate(extent, point)
            except KeyError:
                found.append(point)  # how often it runs is not known
                continue
            ends = (start, start + count - 1) if count > 1 else (start,) if count == 1 else ()
            found += [{**point, variable: end} for end in ends]
        return replace(self, symbols=self.symbols | {variable}, points=_spread(found))

    def blocked(self, variable: str, count: Dim, start: Dim, block: int) -> _Scope:
        """Inside ``variable`` in ``start .. min(start + block, count) - 1``."""
        end = dim_min(dim_add(start, block), count)
        return self.looped(variable, end - start, start)

    def where(self, condition: Value, *, holds: bool = True) -> _Scope:
        """Where a condition is known to hold, or not to."""
        return replace(
            self, points=tuple(point for point in self.points if _truth(condition, point) is holds)
        )

    def named(self, name: str, dtype: DType) -> _Scope:
        """With a value of that name."""
        return replace(self, locals={**self.locals, name: dtype})

    def at(self, *path: int) -> _Scope:
        """Inside the statement at ``path``."""
        return replace(self, path=(*self.path, *path))

    # ---- statements ------------------------------------------------------------------------------

    def check(self, body: Sequence[Statement]) -> Iterator[Problem]:
        """The problems of some statements."""
        scope = self
        for index, statement in enumerate(body):
            here = scope.at(index)
            yield from here.statement(statement)
            if isinstance(statement, Let):
                scope = scope.named(statement.name, here.dtype_of(statement.value))
            elif isinstance(statement, Reduce):
                scope = scope.named(statement.name, statement.dtype)
            elif isinstance(statement, LetIndex):
                scope = replace(scope, symbols=scope.symbols | {statement.name})

    def statement(self, statement: Statement) -> Iterator[Problem]:
        """The problems of one statement."""
        match statement:
            case Let(name, value):
                yield from self.fresh("let", (), (name,))
                yield from self.value("let", value)
            case LetIndex(name, value):
                yield from self.fresh("index", (name,))
                yield from self.value("index", value)
                yield from self.of_type(
                    "index", value, ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
                )
            case Store(buffer, index, value):
                yield from self.access("store", buffer, index)
                yield from self.value("store", value)
                if buffer < len(self.buffers) and not self.buffers[buffer].written:
                    yield self.problem(
                        "store", "a buffer that is written", f"b{buffer}", "what a kernel stores to"
                    )
            case For():
                yield from self.loop(statement)
            case Require(number, condition):
                yield from self.value("require", condition)
                yield from self.of_type("require", condition, ("bool",))
                if number < 0:
                    yield self.problem(
                        "require", "at least 0", str(number), "numbers of requirements"
                    )
            case If(condition, body):
                yield from self.value("if", condition)
                yield from self.of_type("if", condition, ("bool",))
                yield from self.where(condition).check(body)
            case Reduce():
                yield from self.reduce(statement)
            case _:
                yield from self.block(statement)

    def loop(self, statement: For) -> Iterator[Problem]:
        """A loop; lanes are not inside lanes, copies have a number."""
        yield from self.fresh(statement.kind, (statement.variable,))
        yield from self.sizes(statement.kind, statement.extent)
        vector = statement.kind == "vector"
        if vector and self.vector:
            yield self.problem(
                "vector", "at most one around a statement", "one inside another", "loops in lanes"
            )
        if statement.kind == "unroll" and not isinstance(statement.extent, int):
            yield self.problem(
                "unroll",
                "an extent that is a number",
                str(statement.extent),
                "loops that are copied",
            )
        inside = self.looped(statement.variable, statement.extent)
        yield from replace(inside, vector=self.vector or vector).check(statement.body)

    def reduce(self, statement: Reduce) -> Iterator[Problem]:
        """A reduction; its value is seen by its body's names."""
        yield from self.fresh("reduce", (statement.variable,), (statement.name,))
        yield from self.sizes("reduce", statement.extent)
        if statement.lanes and self.vector:
            yield self.problem("reduce", "no loop in lanes around it", "one", "reductions in lanes")
        if statement.unroll and not isinstance(statement.extent, int):
            yield self.problem(
                "reduce",
                "an extent that is a number",
                str(statement.extent),
                "loops that are copied",
            )
        inside = self.looped(statement.variable, statement.extent)
        inside = replace(inside, vector=self.vector or statement.lanes)
        yield from inside.check(statement.body)
        behind = inside
        for index, inner in enumerate(statement.body):
            if isinstance(inner, Let | Reduce):
                dtype = (
                    inner.dtype
                    if isinstance(inner, Reduce)
                    else behind.at(index).dtype_of(inner.value)
                )
                behind = behind.named(inner.name, dtype)
            elif isinstance(inner, LetIndex):
                behind = replace(behind, symbols=behind.symbols | {inner.name})
        yield from behind.value("yield", statement.value)

    def block(
        self, s: Contraction | Depthwise | DepthwisePlane | Attention | Transpose
    ) -> Iterator[Problem]:
        """A block with a file of its own in code generation: its ranges, what it reads, its
        epilogue."""
        reads: tuple[tuple[_Scope, int, Dim], ...]
        limits: tuple[tuple[str, int], ...]
        match s:
            case Contraction():
                symbols = (s.row, s.column, *(name for name, _ in s.taps), s.depth)
                sizes = (
                    s.rows,
                    s.row_start,
                    s.columns,
                    s.column_start,
                    s.depth_extent,
                    *(size for _, size in s.taps),
                )
                inside = self.blocked(s.row, s.rows, s.row_start, s.row_block)
                inside = inside.blocked(s.column, s.columns, s.column_start, s.tile.vectors)
                reading = inside.over((*s.taps, (s.depth, s.depth_extent)))
                reads = ((reading, s.a, s.a_index), (reading, s.b, s.b_index))
                limits = (("row_block", s.row_block), ("tile", min(s.tile.rows, s.tile.vectors)))
            case Depthwise():
                symbols = (s.x, s.channel, *(name for name, _ in s.taps))
                sizes = (s.x_extent, s.channels)
                inside = self.over(((s.x, s.x_extent), (s.channel, s.channels)))
                reading = inside.over(s.taps)
                reads = ((reading, s.a, s.a_index), (reading, s.w, s.w_index))
                limits = (("pixels", s.pixels),)
            case DepthwisePlane():
                symbols = (s.y, s.x, s.row, s.column, *(name for name, _ in s.taps))
                sizes = ()
                inside = self.over(((s.y, s.extents[0]), (s.x, s.extents[1])))
                image = self.over(((s.row, s.image[0]), (s.column, s.image[1])))
                reads = ((image, s.a, s.a_index), (self.over(s.taps), s.w, s.w_index))
                limits = (("rows_together", s.rows_together), ("strides", min(s.strides)))
            case Attention():
                symbols = (s.query, s.key, s.depth, s.value)
                sizes = (s.queries, s.query_start, s.keys, s.group, s.causal_offset)
                queries = self.blocked(s.query, s.queries, s.query_start, s.query_block)
                keys, inside = (
                    queries.looped(s.key, s.keys),
                    queries.looped(s.value, s.value_extent),
                )
                reads = (
                    (queries.looped(s.depth, s.depth_extent), s.q, s.q_index),
                    (keys.looped(s.depth, s.depth_extent), s.k, s.k_index),
                    (keys.looped(s.value, s.value_extent), s.v, s.v_index),
                )
                limits = (("query_block", s.query_block),)
                if s.mask is not None:
                    yield from keys.value("attention", s.mask)
            case Transpose():
                symbols, sizes = (s.row, s.column), (s.rows, s.row_start, s.columns, s.column_start)
                inside = self.blocked(s.row, s.rows, s.row_start, s.row_block)
                inside = inside.blocked(s.column, s.columns, s.column_start, s.column_block)
                reads = tuple((inside, buffer, index) for _, buffer, index in s.values)
                limits = (("row_block", s.row_block), ("column_block", s.column_block))
        if isinstance(s, Contraction):
            yield from self.factors(s)
        yield from self.ranges(_name(s), symbols, sizes, limits)
        for scope, buffer, index in reads:
            yield from scope.access(_name(s), buffer, index)
        yield from self.epilogue(s, inside)

    def factors(self, s: Contraction) -> Iterator[Problem]:
        """The element types of A and B are the sums' or are widened to it."""
        allowed = widened_to(s.dtype)
        for side, buffer in (("A", s.a), ("B", s.b)):
            if buffer < len(self.buffers) and self.buffers[buffer].dtype not in allowed:
                rule = f"{side} of a contraction whose sums are {s.dtype}"
                yield self.problem(
                    _name(s), " or ".join(allowed) or "other sums", self.buffers[buffer].dtype, rule
                )

    def ranges(
        self,
        name: str,
        symbols: Sequence[str],
        sizes: Sequence[Dim],
        limits: Sequence[tuple[str, int]],
    ) -> Iterator[Problem]:
        """Names that a block binds, and the sizes that it states."""
        yield from self.fresh(name, symbols)
        yield from self.sizes(name, *sizes)
        for what, number in limits:
            if number < 1:
                yield self.problem(name, "at least 1", str(number), f"{what} of a block")

    def epilogue(
        self, s: Contraction | Depthwise | DepthwisePlane | Attention | Transpose, inside: _Scope
    ) -> Iterator[Problem]:
        """What is done with each result; its vector variable is the block's own."""
        made: list[tuple[str, DType]] = []
        if isinstance(s, Transpose):
            made = [
                (name, self.buffers[buffer].dtype)
                for name, buffer, _ in s.values
                if buffer < len(self.buffers)
            ]
        else:
            made = [(s.accumulator, "f32" if isinstance(s, Attention) else s.dtype)]
        yield from self.fresh(_name(s), (), [name for name, _ in made])
        if self.vector:
            yield self.problem(_name(s), "no loop in lanes around it", "one", "loops in lanes")
        for name, dtype in made:
            inside = inside.named(name, dtype)
        yield from replace(inside, vector=True).check(s.epilogue)

    def over(self, ranges: Iterable[tuple[str, Dim]]) -> _Scope:
        """Inside several loops."""
        scope = self
        for name, extent in ranges:
            scope = scope.looped(name, extent)
        return scope

    # ---- values and indices ----------------------------------------------------------------------

    def value(self, name: str, value: Value) -> Iterator[Problem]:
        """The problems of a value."""
        match value:
            case Load(buffer, index):
                yield from self.access(name, buffer, index)
            case FromIndex(index, _):
                yield from self.sizes(name, index)
            case Compare(_, left, right):
                yield from self.sizes(name, left, right)
            case Local(local, dtype):
                if local not in self.locals:
                    got = f"%{local}, seen are {' '.join(sorted(self.locals)) or 'none'}"
                    yield self.problem(name, "a value that is named before", got, "names of values")
                elif _register(self.locals[local]) != _register(dtype):
                    yield self.problem(
                        name,
                        f"%{local}:{self.locals[local]}",
                        dtype,
                        "a name has the type of its value",
                    )
            case Apply("select", (condition, left, right), _):
                yield from self.value(name, condition)
                yield from self.where(condition).value(name, left)
                yield from self.where(condition, holds=False).value(name, right)
                yield from self.apply(name, value)
            case Apply():
                for argument in value.arguments:
                    yield from self.value(name, argument)
                yield from self.apply(name, value)
            case Constant(number, dtype):
                if isinstance(number, bool) != (dtype == "bool"):
                    yield self.problem(
                        name, f"a literal of {dtype}", str(number), "types of literals"
                    )

    def apply(self, name: str, value: Apply) -> Iterator[Problem]:
        """Function, number and types of arguments, type of the result: as the core op of that name
        says."""
        arity = 2 if value.function in BINARY else 3 if value.function == "select" else 1
        if value.function not in (*UNARY, *BINARY, "cast", "select"):
            yield self.problem(name, "an elementwise core op", value.function, "names of functions")
            return
        if len(value.arguments) != arity:
            yield self.problem(
                name, str(arity), str(len(value.arguments)), f"arguments of {value.function}"
            )
            return
        op = next((op for known, op in OPS_BY_NAME.items() if known == value.function), None)
        types = [TensorType(self.dtype_of(argument), ()) for argument in value.arguments]
        attributes: Attributes = {"dtype": value.dtype} if value.function == "cast" else {}
        try:
            result = op.infer(types, attributes).results[0].dtype if op else value.dtype
        except AttributeNamesError:  # they are in the function's name
            return
        except OpTypeError as error:
            yield self.problem(
                name, str(error.expected), str(error.got), f"arguments of {value.function}"
            )
            return
        if result != value.dtype:
            yield self.problem(name, result, value.dtype, f"result of {value.function}")

    def dtype_of(self, value: Value) -> DType:
        """The type of a value; that of names is what they say."""
        match value:
            case Load(buffer, _):
                return self.buffers[buffer].dtype if buffer < len(self.buffers) else "f32"
            case Compare():
                return "bool"
            case _:
                return value.dtype

    def of_type(self, name: str, value: Value, dtypes: Sequence[DType]) -> Iterator[Problem]:
        """That a value has one of some types."""
        if (found := self.dtype_of(value)) not in dtypes:
            yield self.problem(
                name, f"a value of {' or '.join(dtypes)}", found, f"what {name} reads"
            )

    def access(self, name: str, buffer: int, index: Dim) -> Iterator[Problem]:
        """That an element of a buffer is there."""
        yield from self.sizes(name, index)
        if buffer >= len(self.buffers):
            yield self.problem(
                name, f"b0 to b{len(self.buffers) - 1}", f"b{buffer}", "buffers of the kernel"
            )
            return
        for point in self.points:
            try:
                element = evaluate(index, point)
                count = evaluate(self.counts[buffer], {}) if self.counts else None
            except KeyError:
                continue
            if element < 0 or (count is not None and element >= count):
                at = ", ".join(f"{name} = {value}" for name, value in point.items())
                most = "" if count is None else f" and below {count}"
                got = f"{element}{f' at {at}' if at else ''}"
                yield self.problem(
                    name,
                    f"an element of b{buffer}, at least 0{most}",
                    got,
                    "accesses lie in their buffers",
                )
                return

    def sizes(self, name: str, *dims: Dim) -> Iterator[Problem]:
        """That all symbols are bound."""
        for dim in dims:
            for free in sorted(set(symbols_of(dim)) - self.symbols):
                yield self.problem(
                    name,
                    "a scalar, a loop's variable or an index",
                    free,
                    "symbols are bound before",
                )

    def fresh(
        self, name: str, symbols: Sequence[str], values: Sequence[str] = ()
    ) -> Iterator[Problem]:
        """That names are new here, and can be written down."""
        for made, known in ((symbols, self.symbols), (values, self.locals)):
            for new in made:
                if new in known or made.count(new) > 1 or not is_symbol_name(new):
                    yield self.problem(
                        name, "a name that is new where it is bound", new, "names are bound once"
                    )

    def problem(self, name: str, expected: str, got: str, rule: str) -> Problem:
        """A problem of this statement."""
        return Problem(self.path, name, expected, got, rule)


def _spread(points: Sequence[Point]) -> tuple[Point, ...]:
    """At most ``POINT_COUNT_MAX`` of some points, the first and the last among them."""
    count = len(points)
    if count <= POINT_COUNT_MAX:
        return tuple(points)
    return tuple(
        points[number * (count - 1) // (POINT_COUNT_MAX - 1)] for number in range(POINT_COUNT_MAX)
    )


def _register(dtype: DType) -> DType:
    """What holds a value of ``dtype`` between load and store."""
    return "f32" if dtype in ("f16", "bf16") else dtype


def _name(statement: object) -> str:
    return type(statement).__name__.lower()


def _truth(condition: Value, point: Point) -> bool | None:
    """Whether a condition holds; None where the data decide."""
    match condition:
        case Compare(function, left, right):
            try:
                a, b = evaluate(left, point), evaluate(right, point)
            except KeyError:
                return None
            return a < b if function == "less" else a <= b if function == "less_equal" else a == b
        case Constant(number, _):
            return bool(number)
        case Apply("logical_and", (left, right), _):
            both = _truth(left, point), _truth(right, point)
            return False if False in both else None if None in both else True
        case Apply("logical_or", (left, right), _):
            both = _truth(left, point), _truth(right, point)
            return True if True in both else None if None in both else False
        case Apply("logical_not", (inner,), _):
            found = _truth(inner, point)
            return None if found is None else not found
        case _:
            return None
