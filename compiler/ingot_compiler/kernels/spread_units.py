"""Cuts the units of a kernel into smaller ones, for machines that run thousands of them at once.

In: a loop program whose units are a row of an image, or all of a vector loop. Out: the same program
with more units, where its body is nothing but loops whose iterations do not depend on each other.
Not done here: contractions, which have units of tiles (``contraction``), sums along lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ingot_compiler.ir.dims import (
    SIZE_MAX,
    Dim,
    Sum,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    dim_mul,
    substitute,
    symbol,
    symbols_of,
)
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.groups.space import ceil_div
from ingot_compiler.lowering.loops.loop_values import Load
from ingot_compiler.lowering.loops.nested import nested
from ingot_compiler.lowering.loops.program import (
    Depthwise,
    For,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Statement,
)
from ingot_compiler.lowering.loops.substitute_indices import substitute_indices
from ingot_runtime.lazy_dataclass import dataclass

_UNITS_ENOUGH = 4096
_INDEX_SIZE_MAX = (
    SIZE_MAX // 64
)  # mentions of a unit become longer, and multiply inside of products


def spread_units(program: LoopProgram, lanes: int) -> LoopProgram:
    """Cut units until there are enough, or each has one vector of ``lanes``."""
    wanted = -(-_UNITS_ENOUGH // max(typical(program.extent), 1))
    largest = max((each.size for each in nested(program.body) if isinstance(each, Sum)), default=0)
    if wanted == 1 or largest > _INDEX_SIZE_MAX:
        return program
    match program.body:
        case (Depthwise() as statement,):
            return _spread_depthwise(program, statement, wanted, lanes)
        case body if _are_apart(program):
            return _spread_loops(program, body, wanted, lanes)
        case _:
            return program


def _spread_depthwise(
    program: LoopProgram, statement: Depthwise, wanted: int, lanes: int
) -> LoopProgram:
    """Some channels of some pixels of the row: parts of even size, so that none has a rest."""
    channels, pixels = statement.channels, statement.x_extent
    if not isinstance(channels, int) or not isinstance(pixels, int):
        return program
    across = _even_part(channels, lanes, wanted)
    beside = _even_part(pixels, 1, -(-wanted * across // channels))
    count = channels // across
    part = replace(statement, channels=across, x_extent=beside)
    part = replace(part, pixels=min(part.pixels, beside))
    bindings = {
        statement.channel: symbol(statement.channel)
        + dim_mul(dim_mod(symbol(program.index), count), across),
        statement.x: symbol(statement.x)
        + dim_mul(dim_mod(dim_floordiv(symbol(program.index), count), pixels // beside), beside),
    }
    cuts = count * (pixels // beside)
    return _cut(program, (substitute_indices(part, _of_units(program, cuts) | bindings),), cuts)


def _even_part(extent: int, least: int, wanted: int) -> int:
    """The largest divisor of ``extent`` of which there are as many as wanted, a multiple of
    ``least``; the whole where there is none."""
    parts = [size for size in range(least, extent + 1, least) if extent % size == 0]
    return max(
        (size for size in parts if extent // size >= wanted), default=min(parts, default=extent)
    )


def _are_apart(program: LoopProgram) -> bool:
    """Whether the body is vector loops that read nothing that another unit writes: one loop alone
    may read what it writes, as its iterations do not depend on each other."""
    loops = list(_vector_loops(program.body))
    written = {number for number, buffer in enumerate(program.buffers) if buffer.written}
    read = {each.buffer for each in nested(program.body) if isinstance(each, Load)}
    return bool(loops) and None not in loops and (len(program.body) == 1 or not read & written)


def _vector_loops(body: tuple[Statement, ...]) -> Iterator[For | None]:
    """The loops in lanes; None for any statement but these, names of values and conditions."""
    for statement in body:
        match statement:
            case For(kind="vector"):
                yield statement
            case If():
                yield from _vector_loops(statement.body)
            case Let() | LetIndex():
                pass
            case _:
                yield None


def _spread_loops(
    program: LoopProgram, body: tuple[Statement, ...], wanted: int, lanes: int
) -> LoopProgram:
    """Some iterations of each loop, the same for all."""
    longest: Dim = 0
    for loop in _vector_loops(body):
        assert loop is not None
        longest = dim_max(longest, loop.extent)
    if not set(symbols_of(longest)) <= set(program.scalars):
        return program
    size = -(-typical(longest) // (wanted * lanes)) * lanes
    count = ceil_div(longest, size)
    if count == 1:
        return program
    part = _Part(_of_units(program, count), program.index, count, size)
    return _cut(program, part.of_all(body), count)


@dataclass(frozen=True, slots=True)
class _Part:
    """``size`` iterations of each loop at most: those of one of ``count`` units that were one.
    ``own``: what stands for that one."""

    own: Mapping[str, Dim]
    index: str
    count: Dim
    size: int

    def of_all(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """Cut every statement of a body."""
        return tuple(map(self._of, body))

    def _of(self, statement: Statement) -> Statement:
        if isinstance(statement, If):
            condition = substitute_indices(statement.condition, self.own)
            return If(condition, self.of_all(statement.body))
        if not isinstance(statement, For):
            return substitute_indices(statement, self.own)
        whole = substitute(statement.extent, self.own)
        start = dim_mul(dim_mod(symbol(self.index), self.count), self.size)
        left = dim_min(self.size, dim_max(whole - start, 0))
        is_even = whole == dim_mul(self.count, self.size)
        bindings = {**self.own, statement.variable: symbol(statement.variable) + start}
        body = substitute_indices(statement.body, bindings)
        return replace(statement, extent=self.size if is_even else left, body=body)


def _of_units(program: LoopProgram, count: Dim) -> dict[str, Dim]:
    """The unit that was cut into ``count``, by the index of the smaller one."""
    return {program.index: dim_floordiv(symbol(program.index), count)}


def _cut(program: LoopProgram, body: tuple[Statement, ...], count: Dim) -> LoopProgram:
    return replace(program, extent=dim_mul(program.extent, count), body=body)
