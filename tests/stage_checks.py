"""Every stage that any test makes in this process is verified, and a quarter of them is what its own
text gives back.

In: the functions that make stages. Out: the same functions, which check what they return. Not done
here: stages that worker processes make; goldens; round trips of all stages of chosen graphs
(``properties/test_stage_round_trips.py``).
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

from ingot_compiler.backends.host import hooks
from ingot_compiler.backends.host.main.encode_program import encode_program
from ingot_compiler.frontend import import_model, infer_types
from ingot_compiler.frontend.infer_types import TypedModel
from ingot_compiler.frontend.model.imported import ImportedModel
from ingot_compiler.frontend.model.parse_imported import parse_imported
from ingot_compiler.frontend.model.print_imported import print_imported
from ingot_compiler.frontend.model.verify_imported import verify_imported
from ingot_compiler.host_program import main_program
from ingot_compiler.host_program.parse_program import parse_program
from ingot_compiler.host_program.print_program import print_program
from ingot_compiler.host_program.verify_program import verify_program
from ingot_compiler.ir.graph import Names, OptimizedGraph
from ingot_compiler.ir.message import Text
from ingot_compiler.ir.verify import verify
from ingot_compiler.kernels.kinds import KINDS
from ingot_compiler.lowering import fuse
from ingot_compiler.lowering.groups.fused import BufferSpec, FusedGraph, Group, launches_of
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.groups.parse_fused import parse_fused
from ingot_compiler.lowering.groups.parse_lowered import parse_lowered
from ingot_compiler.lowering.groups.print_fused import print_fused
from ingot_compiler.lowering.groups.print_lowered import print_lowered
from ingot_compiler.lowering.groups.verify_fused import verify_fused
from ingot_compiler.lowering.groups.verify_lowered import verify_lowered
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.lowering.loops.verify_loops import verify_loops
from ingot_compiler.memory import plan_memory
from ingot_compiler.memory.memory_plan import MemoryPlan
from ingot_compiler.memory.parse_memory import parse_memory
from ingot_compiler.memory.print_memory import print_memory
from ingot_compiler.memory.verify_memory import verify_memory
from ingot_compiler.passes import pipeline
from ingot_compiler.placement import place
from ingot_compiler.placement.parse_placed import parse_placed
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.print_placed import print_placed
from ingot_compiler.placement.verify_placed import verify_placed
from ingot_runtime.format.program import Program

EVERY = 4  # of so many texts of stages, one is read back
_READ: dict[str, object] = {}  # by their texts: networks and tests have the same ones many times
_verify_loops = functools.lru_cache(maxsize=1 << 14)(verify_loops)


def check_text(
    value: object,
    text: str,
    parse: Callable[[str], object],
    printed: Callable[[Any], str],
    every: int,
) -> None:
    """Reading the text of a stage gives the stage; NaN, which equals nothing, the same text.

    Of ``every`` so many texts, one is read, always the same ones: reading all that some test
    happens to make takes a tenth of the time of all tests. What equals one that was read once
    needs no reading either.
    """
    if zlib.crc32(text.encode()) % every or _READ.get(text) == value:
        return
    read = parse(text)
    assert printed(read) == text
    assert read == value or "nan" in text.lower()
    _READ[text] = value


def check_imported(model: ImportedModel, every: int = EVERY) -> None:
    """Stage 2."""
    verify_imported(model)
    check_text(model, print_imported(model), parse_imported, print_imported, every)


def check_placed(placed: PlacedGraph, every: int = EVERY) -> None:
    """Stage 5."""
    verify_placed(placed)
    check_text(placed, print_placed(placed), parse_placed, print_placed, every)


def check_fused(fused: FusedGraph, every: int = EVERY) -> None:
    """Stage 6."""
    verify_fused(fused, KINDS)
    parse = functools.partial(parse_fused, kinds=KINDS)
    check_text(fused, print_fused(fused), parse, print_fused, every)


def check_lowered(
    lowered: LoweredGroup,
    group: Group | None = None,
    buffers: Sequence[BufferSpec] = (),
    every: int = EVERY,
) -> None:
    """Stage 7 of a group; its text says nothing of ``group``."""
    verify_lowered(lowered, group, buffers)
    for program in lowered.programs:
        _verify_loops(program)
    check_text(lowered, print_lowered(lowered), parse_lowered, print_lowered, every)


def check_memory(plan: MemoryPlan, fused: FusedGraph, every: int = EVERY) -> None:
    """Stage 8; its text says nothing of the buffers that it is for."""
    verify_memory(plan, fused)
    check_text(plan, print_memory(plan), parse_memory, print_memory, every)


def check_program(program: Program, every: int = EVERY) -> None:
    """The instruction list of main."""
    verify_program(program)
    text = print_program(program)
    if zlib.crc32(text.encode()) % every == 0:
        assert encode_program(parse_program(text)) == encode_program(program)


def check_launches(expanded: FusedGraph, programs: Sequence[LoopProgram]) -> None:
    """Stage 6 with its groups expanded, and stage 7 within the buffers of it."""
    verify_fused(expanded, KINDS)
    for launch in launches_of(expanded):
        counts = [expanded.buffers[buffer].element_count for buffer in launch.buffers]
        _verify_loops(programs[launch.program], tuple(counts))


@contextmanager
def checked_stages() -> Generator[None]:
    """All stages made inside, by rules too, are checked."""

    def checked(module: ModuleType, name: str, check: Callable[..., object]) -> Any:
        make = getattr(module, name)

        @functools.wraps(make)
        def made(*inputs: Any, **options: Any) -> Any:
            result = make(*inputs, **options)
            check(result, *inputs)
            return result

        return patch.object(module, name, made)

    with (
        checked(import_model, "import_model", _imported),
        checked(infer_types, "infer_types", _typed),
        checked(pipeline, "optimize", _optimized),
        checked(place, "place", _placed),
        checked(fuse, "fuse", _fused),
        checked(hooks, "lower_group", _lowered),
        checked(plan_memory, "plan_memory", _planned),
        checked(main_program, "build_program", _built),
    ):
        yield


def _imported(imported: tuple[ImportedModel, Names], *_: object) -> None:
    check_imported(imported[0])


def _typed(typed: TypedModel, *_: object) -> None:
    verify(typed.graph)


def _optimized(optimized: OptimizedGraph, *_: object) -> None:
    verify(optimized.graph)


def _placed(placed: PlacedGraph, *_: object) -> None:
    check_placed(placed)


def _fused(fused: FusedGraph, *_: object) -> None:
    check_fused(fused)


def _lowered(lowered: LoweredGroup, *_: object) -> None:
    check_lowered(lowered)


def _planned(plan: MemoryPlan, fused: FusedGraph, *_: object) -> None:
    check_memory(plan, fused)


def _built(
    built: tuple[Program, tuple[Text, ...]],
    fused: FusedGraph,
    programs: Sequence[LoopProgram],
    *_: object,
) -> None:
    check_launches(fused, programs)
    check_program(built[0])
