"""Reads the text form of stage 7 of one group.

In: text, as ``print_lowered`` writes it or by hand. Out: a ``LoweredGroup`` that ``verify_lowered``
accepts, or ``ModelError`` with line and column. Not done here: the loops of a kernel
(``parse_loops``).
"""

from __future__ import annotations

from dataclasses import field

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.problem import Path
from ingot_compiler.ir.text.read_terms import read_dim, read_dtype
from ingot_compiler.ir.text.text_reader import Reader, Token
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.groups.group_steps import (
    Choice,
    GroupLaunch,
    GroupStep,
    GroupSteps,
    LoweredGroup,
    one_launch,
)
from ingot_compiler.lowering.groups.verify_lowered import find_lowered_problems
from ingot_compiler.lowering.loops.parse_loops import read_loops
from ingot_runtime.lazy_dataclass import dataclass


def parse_lowered(text: str) -> LoweredGroup:
    """The group that ``text`` writes down; ``parse_lowered(print_lowered(g)) == g``."""
    reader = Reader("loops", text)
    lowered = read_lowered(reader)
    reader.end()
    return lowered


def read_lowered(reader: Reader) -> LoweredGroup:
    """The group that comes next, verified: a kernel, or ``group { WORKSPACE STEPS }`` and the
    kernels that the steps launch."""
    if not reader.at("group"):
        return one_launch(read_loops(reader))
    parser = _Parser(reader, {(): reader.take()})
    reader.expect("{")
    start, workspace = reader.token, parser.workspace()
    steps = GroupSteps(parser.steps(()), tuple(size for _, size in workspace))
    for number, (written, _) in enumerate(workspace, steps.group_buffer_count):
        if written != number:
            first = steps.group_buffer_count
            raise reader.fail(
                f"expected workspace from b{first} on, which launches name, got b{written}", start
            )
    programs = [read_loops(reader) for _ in range(min(steps.program_count, parser.launch_count))]
    lowered = LoweredGroup(steps, tuple(programs))
    reader.check(find_lowered_problems(lowered), parser.places)
    return lowered


@dataclass(slots=True)
class _Parser:
    """Reads steps; remembers where each one stands."""

    reader: Reader
    places: dict[Path, Token] = field(default_factory=dict[Path, Token])
    launch_count: int = 0

    def workspace(self) -> list[tuple[int, tuple[DType, Dim]]]:
        """``workspace b2: f32 x DIM``, as often as there is one; the number of each, and what it
        is."""
        reader, found = self.reader, list[tuple[int, tuple[DType, Dim]]]()
        while reader.accept("workspace"):
            number = reader.buffer()
            reader.expect(":")
            dtype = read_dtype(reader)
            reader.expect("x")
            found.append((number, (dtype, read_dim(reader))))
        return found

    def steps(self, path: Path) -> tuple[GroupStep, ...]:
        """``STEP ... }``."""
        found: list[GroupStep] = []
        with self.reader.nested():
            while not self.reader.accept("}"):
                at = (*path, len(found))
                self.places[at] = self.reader.token
                found.append(self.step(at))
        return tuple(found)

    def step(self, path: Path) -> GroupStep:
        """One step; its first word says which."""
        is_launch = self.reader.choice(("launch", "if")) == "launch"
        return self.launch() if is_launch else self.branch(path)

    def launch(self) -> GroupLaunch:
        """``launch 0(b0, b1)``."""
        self.launch_count += 1
        program = self.reader.integer()
        self.reader.expect("(")
        return GroupLaunch(program, self.reader.items(self.reader.buffer, ")"))

    def branch(self, path: Path) -> Choice:
        """``if DIM { ... } else { ... }``."""
        condition = read_dim(self.reader)
        self.reader.expect("{")
        then = self.steps((*path, 0))
        self.reader.expect("else", "{")
        return Choice(condition, then, self.steps((*path, 1)))
