"""Checks that stage 7 of one group is well formed: its launches fit their kernels, and nothing is
used before it is there.

In: a ``LoweredGroup``; the group and its buffers, where they are known. Out: nothing, or
``InternalError`` that names the step.
Not done here: the loops of the kernels (``verify_loops``).

Every program is launched, with a buffer of its element type for each that it names, none twice.
Workspace is written before it is read, on every way; a symbol that is read is new, and is used
behind its read alone. Of a known group: its operands are not written, and every way writes its
results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ingot_compiler.ir.dims import Dim, is_symbol_name, symbols_of
from ingot_compiler.ir.problem import Path, Problem, require_none
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.fused import BufferSpec, Group, buffers_of
from ingot_compiler.lowering.group_steps import (
    Choice,
    GroupLaunch,
    GroupRead,
    GroupStep,
    LoweredGroup,
    launches_in,
    reads_in,
)
from ingot_compiler.lowering.loops import LoopProgram


def verify_lowered(
    lowered: LoweredGroup, group: Group | None = None, buffers: Sequence[BufferSpec] = ()
) -> None:
    """Raise InternalError for the first problem; ``buffers``: those of the fused graph that has
    ``group``."""
    require_none(find_lowered_problems(lowered, group, buffers), "step", "group", "loops")


def find_lowered_problems(
    lowered: LoweredGroup, group: Group | None = None, buffers: Sequence[BufferSpec] = ()
) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    steps, programs = lowered.steps, lowered.programs
    own = buffers_of(group) if group else range(steps.group_buffer_count)
    dtypes: dict[int, DType] = {}
    if group:
        dtypes |= {number: buffers[buffer].dtype for number, buffer in enumerate(own)}
    dtypes |= {number: dtype for number, (dtype, _) in enumerate(steps.workspace, len(own))}
    scope = _Scope(
        programs,
        len(own),
        len(own) + len(steps.workspace),
        frozenset(_symbols_read(steps.steps)),
        dtypes,
    )
    if group:
        results = {result.buffer for result in group.results}
        scope.read_only = frozenset(
            number for number, buffer in enumerate(own) if buffer not in results
        )
    yield from scope.check(steps.steps, ())
    launched = {launch.program for launch in launches_in(steps.steps)}
    if launched != set(range(len(programs))) or not programs:
        got = f"{len(programs)} kernels and launches of {sorted(launched)}"
        yield Problem(
            (),
            "group",
            "kernels that are counted from 0, each launched",
            got,
            "launches of a group",
        )
    for number, buffer in enumerate(own):
        if group and number not in scope.read_only | scope.written:
            yield Problem(
                (),
                "group",
                f"a launch on every way that writes b{number}",
                "none",
                f"result b{buffer}",
            )


@dataclass(slots=True)
class _Scope:
    """What a step finds: kernels, numbers of buffers, what was written and read before it."""

    programs: Sequence[LoopProgram]
    own_count: int
    buffer_count: int
    symbols_read: frozenset[str]  # anywhere in the group: every other symbol is a size of the graph
    dtypes: dict[int, DType]
    read_only: frozenset[int] = frozenset()
    written: set[int] = field(default_factory=set[int])
    known: set[str] = field(default_factory=set[str])

    def check(self, steps: Sequence[GroupStep], path: Path) -> Iterator[Problem]:
        """The problems of some steps, one after the other."""
        for index, step in enumerate(steps):
            at = (*path, index)
            if isinstance(step, GroupLaunch):
                yield from self.launch(step, at)
            elif isinstance(step, GroupRead):
                yield from self.read(step, at)
            else:
                yield from self.choice(step, at)

    def launch(self, step: GroupLaunch, at: Path) -> Iterator[Problem]:
        """Number and element types of buffers; workspace that is read; what the kernel's scalars
        are."""
        if not 0 <= step.program < len(self.programs):
            yield Problem(
                at,
                "launch",
                f"a kernel below {len(self.programs)}",
                str(step.program),
                "kernels of a group",
            )
            return
        program = self.programs[step.program]
        if len(step.buffers) != len(program.buffers) or len(set(step.buffers)) != len(step.buffers):
            got = ", ".join(f"b{buffer}" for buffer in step.buffers) or "none"
            yield Problem(
                at, "launch", f"{len(program.buffers)} that differ", got, "buffers of a launch"
            )
            return
        for scalar in program.scalars:
            yield from self.sizes("launch", at, scalar)
        for number, buffer in zip(step.buffers, program.buffers, strict=True):
            yield from self.typed("launch", at, number, buffer.dtype)
            if not buffer.written:
                yield from self.there("launch", at, number)
            elif number in self.read_only:
                yield Problem(
                    at,
                    "launch",
                    "a kernel that only reads it",
                    f"b{number} written",
                    "operands of a group",
                )
        pairs = zip(step.buffers, program.buffers, strict=True)
        self.written |= {number for number, buffer in pairs if buffer.written}

    def read(self, step: GroupRead, at: Path) -> Iterator[Problem]:
        """A new name for an element that is there."""
        if step.symbol in self.known or not is_symbol_name(step.symbol):
            yield Problem(at, "read", "a name that is new", step.symbol, "names are bound once")
        yield from self.sizes("read", at, *symbols_of(step.index))
        yield from self.typed("read", at, step.buffer, step.dtype)
        yield from self.there("read", at, step.buffer)
        self.known.add(step.symbol)

    def choice(self, step: Choice, at: Path) -> Iterator[Problem]:
        """Behind it is there what both ways have made."""
        yield from self.sizes("choice", at, *_symbols(step.condition))
        written, known = set(self.written), set(self.known)
        yield from self.check(step.then, (*at, 0))
        then_written, then_known = self.written, self.known
        self.written, self.known = written, known
        yield from self.check(step.otherwise, (*at, 1))
        self.written, self.known = self.written & then_written, self.known & then_known

    def sizes(self, name: str, at: Path, *symbols: str) -> Iterator[Problem]:
        """That each is a size of the graph, or was read."""
        for symbol in symbols:
            if symbol in self.symbols_read and symbol not in self.known:
                yield Problem(
                    at,
                    name,
                    "a symbol that is read before, on every way",
                    symbol,
                    "symbols are bound before",
                )

    def typed(self, name: str, at: Path, number: int, dtype: DType) -> Iterator[Problem]:
        """That a buffer exists and has one element type everywhere."""
        if number >= self.buffer_count:
            yield Problem(
                at, name, f"a buffer below b{self.buffer_count}", f"b{number}", "buffers of a group"
            )
        elif self.dtypes.setdefault(number, dtype) != dtype:
            yield Problem(
                at, name, f"b{number} of {self.dtypes[number]}", dtype, "element types of buffers"
            )

    def there(self, name: str, at: Path, number: int) -> Iterator[Problem]:
        """That workspace holds what a step reads."""
        if number >= self.own_count and number not in self.written:
            yield Problem(
                at,
                name,
                "a launch before it that writes it, on every way",
                f"b{number}",
                "workspace",
            )


def _symbols_read(steps: Sequence[GroupStep]) -> Iterator[str]:
    return (read.symbol for read in reads_in(steps))


def _symbols(dim: Dim) -> tuple[str, ...]:
    return tuple(sorted(symbols_of(dim)))
