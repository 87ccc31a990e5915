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

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_mod, format_dim, is_symbol_name, substitute, symbol
from ingot_compiler.ir.problem import Problem, require_none
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_blocks import BlockParts, block_parts, lies_along_depth
from ingot_compiler.lowering.loops.loop_parts import (
    CarriedSums,
    PackedPanels,
    SplitFactors,
    StrassenTile,
    Team,
)
from ingot_compiler.lowering.loops.loop_scope import LoopScope
from ingot_compiler.lowering.loops.loop_values import Address
from ingot_compiler.lowering.loops.nested import bound_by, of_type
from ingot_compiler.lowering.loops.program import (
    Block,
    CallExtern,
    Contraction,
    Filter,
    For,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Reduce,
    Require,
    Statement,
    Store,
)
from ingot_compiler.lowering.loops.verify_loop_values import (
    EXTERN_NUMBERS,
    INTEGERS,
    find_value_problems,
)

_TEAM_VECTORS = (1, 2, 4, 8)
_TILE_ROWS, _TILE_HEIGHTS, _TILES_BESIDE = 16, (16, 32), 2


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
            expected = "names that differ and can be written down"
            yield Problem((), "kernel", expected, name, "scalars and the index")
    if program.grain < 1:
        yield Problem((), "kernel", "at least 1", str(program.grain), "units worth a thread")
    scope = LoopScope(program.buffers, element_counts, frozenset(program.scalars), {}, ({},), ())
    yield from scope.sizes("kernel", program.extent, program.scratch_bytes)
    yield from _body(scope.looped(program.index, program.extent), program.body)
    for number, statement in enumerate(program.body):
        if isinstance(statement, Contraction) and statement.team:
            yield from _team(scope.at(number), program, statement, statement.team)


def _body(scope: LoopScope, body: Sequence[Statement]) -> Iterator[Problem]:
    for index, statement in enumerate(body):
        yield from _statement(scope.at(index), statement)
        scope = _behind(scope, statement)


def _behind(scope: LoopScope, statement: Statement) -> LoopScope:
    """What the statements behind one see."""
    match statement:
        case Let(name, value):
            return scope.named((name, scope.dtype_of(value)))
        case Reduce():
            return scope.named((statement.name, statement.dtype))
        case LetIndex(name, _, _):
            return replace(scope, symbols=scope.symbols | {name})
        case Filter():
            return replace(scope, symbols=scope.symbols | {statement.name})
        case _:
            return scope


def _statement(scope: LoopScope, statement: Statement) -> Iterator[Problem]:
    match statement:
        case Let(name, value):
            yield from scope.fresh("let", (), (name,))
            yield from find_value_problems(scope, "let", value)
        case LetIndex(name, value, _):
            yield from scope.fresh("index", (name,))
            yield from find_value_problems(scope, "index", value, INTEGERS)
        case If(condition, body):
            yield from find_value_problems(scope, "if", condition, ("bool",))
            yield from _body(scope.where(condition), body)
        case Store():
            yield from _store(scope, statement)
        case For():
            yield from _loop(scope, statement)
        case Require():
            yield from _require(scope, statement)
        case CallExtern():
            yield from _call_extern(scope, statement)
        case Reduce():
            yield from _reduce(scope, statement)
        case Filter():
            yield from _filter(scope, statement)
        case _:
            yield from _block(scope, statement)


def _store(scope: LoopScope, statement: Store) -> Iterator[Problem]:
    buffer = statement.buffer
    yield from scope.access("store", buffer, statement.index)
    yield from find_value_problems(scope, "store", statement.value)
    if buffer < len(scope.buffers) and not scope.buffers[buffer].written:
        expected = "a buffer that is written"
        yield scope.problem("store", expected, f"b{buffer}", "what a kernel stores to")


def _require(scope: LoopScope, statement: Require) -> Iterator[Problem]:
    yield from find_value_problems(scope, "require", statement.condition, ("bool",))
    if statement.number < 0:
        got = str(statement.number)
        yield scope.problem("require", "at least 0", got, "numbers of requirements")


def _call_extern(scope: LoopScope, statement: CallExtern) -> Iterator[Problem]:
    """What it is given is there; a call is made once, not once per lane."""
    for argument in statement.arguments:
        if isinstance(argument, Address):
            yield from scope.access("extern", argument.buffer, argument.index)
        else:
            yield from find_value_problems(scope, "extern", argument, EXTERN_NUMBERS)
    if scope.vector:
        yield scope.problem("extern", "no loop in lanes around it", "one", "loops in lanes")
    if statement.number < 0:
        got = str(statement.number)
        yield scope.problem("extern", "at least 0", got, "numbers of requirements")


def _loop(scope: LoopScope, statement: For) -> Iterator[Problem]:
    """A loop; lanes are not inside lanes, copies have a number."""
    kind, vector = statement.kind, statement.kind in ("vector", "vector_down")
    yield from scope.fresh(kind, (statement.variable,))
    yield from scope.sizes(kind, statement.extent)
    if vector and scope.vector:
        expected = "at most one around a statement"
        yield scope.problem("vector", expected, "one inside another", "loops in lanes")
    if kind == "unroll":
        yield from scope.copied("unroll", statement.extent)
    inside = scope.looped(statement.variable, statement.extent)
    yield from _body(replace(inside, vector=scope.vector or vector), statement.body)


def _reduce(scope: LoopScope, statement: Reduce) -> Iterator[Problem]:
    """A reduction; its value sees the names of its body."""
    yield from scope.fresh("reduce", (statement.variable,), (statement.name,))
    yield from scope.sizes("reduce", statement.extent)
    if statement.lanes and scope.vector:
        yield scope.problem("reduce", "no loop in lanes around it", "one", "reductions in lanes")
    if statement.unroll:
        yield from scope.copied("reduce", statement.extent)
    inside = scope.looped(statement.variable, statement.extent)
    inside = replace(inside, vector=scope.vector or statement.lanes)
    yield from _body(inside, statement.body)
    for inner in statement.body:
        inside = _behind(inside, inner)
    yield from find_value_problems(inside, "yield", statement.value)


def _filter(scope: LoopScope, statement: Filter) -> Iterator[Problem]:
    """A filter; its stores see the names of its body, their indices do not."""
    yield from scope.fresh("filter", (statement.variable, statement.name))
    yield from scope.sizes("filter", statement.extent, statement.start, statement.limit)
    if scope.vector:
        yield scope.problem("filter", "no loop in lanes around it", "one", "loops in lanes")
    inside = scope.looped(statement.variable, statement.extent)
    inside = replace(inside, vector=True)
    yield from _body(inside, statement.body)
    for inner in statement.body:
        if not isinstance(inner, Let):
            got = type(inner).__name__.lower()
            yield scope.problem("filter", "only names of values", got, "what a filter runs")
        inside = _behind(inside, inner)
    yield from find_value_problems(inside, "filter", statement.condition, ("bool",))
    for store in statement.stores:
        yield from scope.sizes("filter", store.index)
        yield from _store(replace(inside, points=()), store)


def _block(scope: LoopScope, block: Block) -> Iterator[Problem]:
    """What a block reads, the names and sizes of its ranges, its epilogue."""
    parts = block_parts(scope, block)
    name = "contraction" if isinstance(block, Contraction) else type(block).__name__.lower()
    for seen, mask in parts.masks:
        yield from find_value_problems(seen, name, mask)
    if isinstance(block, Contraction):
        yield from _factors(scope, block)
        if block.team and len(scope.path) > 1:
            yield scope.problem(name, "no statement around it", "one", "teams, who wait together")
    yield from _ranges(scope, name, block, parts)
    if isinstance(block, Contraction) and block.b_panels:
        yield from _panels(scope, block, block.b_panels)
    if isinstance(block, Contraction) and lies_along_depth(block):
        yield from _along_depth(scope, block)
    if isinstance(block, Contraction) and block.turned:
        yield from _turned(scope, block)
    if isinstance(block, Contraction) and block.in_matrix_tiles:
        yield from _matrix_tiles(scope, block)
    if isinstance(block, Contraction) and block.split:
        yield from _split(scope, block, block.split)
    if isinstance(block, Contraction) and block.carried:
        yield from _carried(scope, block, block.carried)
    if isinstance(block, Contraction) and block.strassen:
        yield from _strassen(scope, block, block.strassen)
    for seen, buffer, index in parts.reads:
        yield from seen.access(name, buffer, index)
    yield from scope.fresh(name, (), [made for made, _ in parts.made])
    if scope.vector:
        yield scope.problem(name, "no loop in lanes around it", "one", "loops in lanes")
    # The vector variable of an epilogue is the block's own.
    yield from _body(replace(parts.inside.named(*parts.made), vector=True), block.epilogue)


def _ranges(scope: LoopScope, name: str, block: Block, parts: BlockParts) -> Iterator[Problem]:
    """Names that a block binds, and the sizes that it states."""
    yield from scope.fresh(name, tuple(bound_by(block)))
    yield from scope.sizes(name, *of_type(block, Dim))
    for what, number in parts.limits:
        if number < 1:
            yield scope.problem(name, "at least 1", str(number), f"{what} of a block")


def _widened_to(dtype: DType) -> tuple[DType, ...]:
    """What A and B of a contraction may hold whose sums have ``dtype``; nothing where there are no
    such sums."""
    narrow: dict[DType, tuple[DType, ...]] = {
        "f32": ("f16", "bf16"),
        "i32": ("i8", "u8", "i16", "u16"),
    }
    is_sum = dtype in ("f32", "f64", "i32", "u32", "i64", "u64")
    return (dtype, *narrow.get(dtype, ())) if is_sum else ()


def _factors(scope: LoopScope, s: Contraction) -> Iterator[Problem]:
    """The element types of A and B are the sums' or are widened to it; bytes only those of B, to
    f32."""
    both = _widened_to(s.dtype)
    of_b: tuple[DType, ...] = (*both, "i8", "u8") if s.dtype == "f32" else both
    for side, buffer, allowed in (("A", s.a, both), ("B", s.b, of_b)):
        if buffer < len(scope.buffers) and scope.buffers[buffer].dtype not in allowed:
            expected, got = " or ".join(allowed) or "other sums", scope.buffers[buffer].dtype
            rule = f"{side} of a contraction whose sums are {s.dtype}"
            yield scope.problem("contraction", expected, got, rule)
    yield from _addends(scope, s)


def _addends(scope: LoopScope, s: Contraction) -> Iterator[Problem]:
    """Integers are added to bytes, by units that share no memory."""
    addends = s.b_panels.addends if s.b_panels else None
    if addends is None:
        return
    dtypes = [scope.buffers[at].dtype for at in (s.b, addends) if at < len(scope.buffers)]
    if dtypes not in (["i8", "i32"], ["u8", "i32"]) or s.dtype != "f32" or s.team:
        got = f"sums of {s.dtype}, {' and '.join(dtypes)}"
        yield scope.problem("contraction", "f32, bytes and i32", got, "what is added to B")


def _team(scope: LoopScope, program: LoopProgram, s: Contraction, team: Team) -> Iterator[Problem]:
    """Units of a team follow one another, and each has one tile."""
    if team.units < 1:
        return
    place = dim_mod(symbol(program.index), team.units)
    if team.place != place:
        yield scope.problem(
            "contraction", format_dim(place), format_dim(team.place), "places of a team"
        )
    if dim_mod(program.extent, team.units) != 0:
        extent = format_dim(program.extent)
        yield scope.problem("contraction", f"a multiple of {team.units}", extent, "units of teams")
    if s.row_block != s.tile.rows or s.tile.vectors not in _TEAM_VECTORS:
        expected = f"one tile of rows, of {' or '.join(map(str, _TEAM_VECTORS))} vectors"
        got = f"row_block={s.row_block} tile={s.tile.rows}x{s.tile.vectors}"
        yield scope.problem("contraction", expected, got, "tiles of a team")
    is_together = s.b_panels is not None and s.b_panels.together > 1
    if s.dtype != "f32" or is_together or not isinstance(s.columns, int):
        got = f"{s.dtype}, columns={format_dim(s.columns)}"
        yield scope.problem("contraction", "f32, a number of columns", got, "sums of a team")


def _panels(scope: LoopScope, s: Contraction, panels: PackedPanels) -> Iterator[Problem]:
    """The index of a packed B steps as its panels say."""
    if panels.columns < 1:
        yield scope.problem("contraction", "at least 1", str(panels.columns), "columns of a panel")
        return
    if panels.together < 1:
        yield scope.problem("contraction", "at least 1", str(panels.together), "elements together")
        return
    for name, distance, wanted, rule in (
        (s.column, panels.columns, panels.step, "the index of B steps from panel to panel"),
        (s.column, 1, panels.together, "columns of B lie beside each other"),
        (
            s.depth,
            panels.together,
            panels.together * panels.columns,
            "rows of B lie in their panel",
        ),
    ):
        first, second = (substitute(s.b_index, {name: at}) for at in (0, distance))
        if second - first != wanted:
            yield scope.problem("contraction", format_dim(wanted), format_dim(second - first), rule)


def _along_depth(scope: LoopScope, s: Contraction) -> Iterator[Problem]:
    """Products of one element are in lanes: of f32, as many as are known, for rows that one tile
    has."""
    beside = coefficient(s.a_index, s.depth)
    if s.dtype != "f32" or beside != 1 or not isinstance(s.depth_extent, int):
        got = f"{s.dtype}, A {format_dim(s.a_index)}, depth {format_dim(s.depth_extent)}"
        yield scope.problem("contraction", "f32 side by side, a number", got, "summands in lanes")
    if (s.rows, s.row_start, s.row_block) != (s.tile.rows, 0, s.tile.rows):
        got = f"rows={format_dim(s.rows)} row_start={format_dim(s.row_start)}"
        yield scope.problem("contraction", f"{s.tile.rows} from 0 on", got, "rows of such sums")


def _turned(scope: LoopScope, s: Contraction) -> Iterator[Problem]:
    """Blocks are turned of f32 that lie together along the depth."""
    beside, dtypes = (
        coefficient(s.b_index, s.depth),
        {each.dtype for each in scope.buffers[s.b :][:1]},
    )
    if (s.b_panels, beside) != (None, 1) or {s.dtype, *dtypes} != {"f32"}:
        got = f"{s.dtype}, B {format_dim(s.b_index)}"
        yield scope.problem("contraction", "f32 side by side", got, "a turned B")


def _matrix_tiles(scope: LoopScope, s: Contraction) -> Iterator[Problem]:
    """Tiles have 16 rows, one or two of them lie above and beside each other, and what lies
    together of a depth is whole."""
    is_tile = s.tile.rows in _TILE_HEIGHTS and s.tile.vectors <= _TILES_BESIDE
    if not is_tile or s.row_block % s.tile.rows:
        got = f"row_block={s.row_block} tile={s.tile.rows}x{s.tile.vectors}"
        expected = "16 or 32 rows by 1 or 2 vectors, and blocks of them"
        yield scope.problem("contraction", expected, got, "matrix tiles")
    panels = s.b_panels
    if panels is None or panels.columns != _TILE_ROWS or panels.together == 1:
        got = "none" if panels is None else f"{panels.columns} together={panels.together}"
        yield scope.problem("contraction", "panels of 16, pairs or fours", got, "matrix tiles")
    elif not isinstance(s.depth_extent, int) or s.depth_extent % panels.together:
        expected, got = f"a multiple of {panels.together}", format_dim(s.depth_extent)
        yield scope.problem("contraction", expected, got, "the depth of matrix tiles")


def _strassen(scope: LoopScope, s: Contraction, tile: StrassenTile) -> Iterator[Problem]:
    """Halves of the rows, of the columns and of the depth are whole, and lie as the sums read them."""
    beside, deep, rows = 2 * tile.vectors, 2 * tile.depth, s.tile.rows
    if rows < 1 or rows % 2 or s.row_block % rows or not beside or s.tile.vectors % beside:
        got = f"row_block={s.row_block} tile={rows}x{s.tile.vectors}"
        yield scope.problem("contraction", f"even rows, {beside} vectors", got, "halves of a tile")
    depth = s.depth_extent
    if not isinstance(depth, int) or not deep or depth % deep:
        expected = f"a multiple of {deep}"
        yield scope.problem("contraction", expected, format_dim(depth), "halves of the depth")
    if len(s.taps) > 1:
        got = f"{len(s.taps)} loops"
        yield scope.problem("contraction", "one loop of taps at most", got, "halves of the depth")
    plain = isinstance(s.columns, int) and s.b_panels is not None
    if s.dtype != "f32" or not plain or coefficient(s.a_index, s.depth) != 1:
        got = f"{s.dtype}, A {format_dim(s.a_index)}"
        yield scope.problem("contraction", "f32 in rows, panels, numbers", got, "halves of factors")


def _carried(scope: LoopScope, s: Contraction, carried: CarriedSums) -> Iterator[Problem]:
    """Sums of parts lie in rows of whole tiles."""
    pitch, beside = (coefficient(carried.index, name) for name in (s.row, s.column))
    is_whole = isinstance(s.columns, int) and s.columns % (_TILE_ROWS * _TILES_BESIDE) == 0
    if s.split is None or not isinstance(pitch, int) or beside != 1 or not is_whole:
        got = f"{format_dim(s.columns)} columns at {format_dim(carried.index)}"
        yield scope.problem("contraction", "sums of parts, in whole tiles", got, "carried sums")
    found = [each.dtype for each in scope.buffers[carried.buffer :][:1]]
    if found != ["f32"]:
        yield scope.problem("contraction", "f32", f"b{carried.buffer}", "carried sums")


def _split(scope: LoopScope, s: Contraction, split: SplitFactors) -> Iterator[Problem]:
    """Parts of f32 are two or three bf16 that lie alike, and are multiplied in tiles."""
    counts = len(split.a), len(split.b)
    if counts not in ((1, 1), (2, 2)):
        got = f"{counts[0]}, {counts[1]}"
        yield scope.problem("contraction", "1 or 2 of both", got, "parts of factors")
    if not s.in_matrix_tiles or s.dtype != "f32":
        yield scope.problem("contraction", "tiles of f32", s.dtype, "sums of parts of factors")
    wanted: dict[DType, tuple[int, ...]] = {
        "bf16": (s.a, s.b, *split.a, *split.b), "f32": (split.plain,), "bool": (split.fits,)
    }  # fmt: skip
    for dtype, buffers in wanted.items():
        for buffer in buffers:
            if buffer < len(scope.buffers) and scope.buffers[buffer].dtype != dtype:
                got = f"b{buffer} of {scope.buffers[buffer].dtype}"
                yield scope.problem("contraction", dtype, got, "parts of factors")
