"""Checks that a fused graph is well formed: what the stages behind it may rely on.

In: a ``FusedGraph``. Out: nothing, or ``InternalError`` that names the step. Not done here: what it
computes.

Buffers exist, have one device, and are written before they are read; views lie in their buffers,
where the sizes are known; a kernel touches buffers of its own device alone, a copy joins two; sizes
are the host's, and bound before they are used; kinds are known; constants are expressions of their
buffer's type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ingot_compiler.ir.dims import dim_add, symbol, symbol_set
from ingot_compiler.ir.problem import Path, Problem, require_none
from ingot_compiler.ir.sizes.ranges import less
from ingot_compiler.lowering.groups.fused import (
    Copy,
    FusedGraph,
    Group,
    Grow,
    HoldState,
    IfStep,
    Launch,
    LoopStep,
    Requirement,
    Step,
    SymbolRead,
    SymbolSet,
)
from ingot_compiler.lowering.groups.fused_scope import FusedScope
from ingot_compiler.lowering.groups.verify_fused_buffers import (
    find_buffer_problems,
    find_constant_problems,
    find_unwritten_outputs,
)
from ingot_compiler.lowering.groups.verify_group import find_group_problems, find_launch_problems
from ingot_compiler.lowering.groups.versions import versions_of


def verify_fused(fused: FusedGraph, kinds: Collection[str] = ()) -> None:
    """Raise InternalError for the first problem; ``kinds``: of kernels that there are, none where
    nobody knows."""
    require_none(find_fused_problems(fused, kinds), "step", "fused graph", "fused")


def find_fused_problems(fused: FusedGraph, kinds: Collection[str] = ()) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    sizes = _sizes_of_inputs(fused)
    wrong = list(_specialisations(fused, sizes))
    yield from wrong
    if wrong:
        return
    yield from find_buffer_problems(fused, sizes)
    for version in versions_of(fused):
        if version.steps:  # a version that has nothing to write has no steps
            scope = FusedScope(fused, kinds, set(sizes), _given(fused), set())
            yield from _steps(scope, version.steps, (), version.first_step)
            for operand, result in sorted(scope.begun):
                got = f"b{operand} to b{result} without an end"
                yield Problem((), "version", "copies that end", got, "what begins ends")
            if not version.refuses:
                yield from find_unwritten_outputs(fused, scope.written)
    for number in range(len(fused.constants)):
        yield from find_constant_problems(fused, number)


def _specialisations(fused: FusedGraph, sizes: frozenset[str]) -> Iterator[Problem]:
    """Where they begin, and that their profiles are of sizes of inputs."""
    start = 0
    for each in fused.specialisations:
        if not start <= each.first_step <= len(fused.steps):
            expected, got = f"{start} to {len(fused.steps)}", str(each.first_step)
            rule = "the first step of the specialisation"
            yield Problem((), "specialisation", expected, got, rule)
            return
        start = each.first_step
        for item in each.profile:
            if item.symbol not in sizes:
                expected, rule = "a size of an input", "what is specialised"
                yield Problem((), "specialisation", expected, item.symbol, rule)
            elif not 0 <= item.least <= item.most:
                expected, rule = "a range from 0 on", "what is specialised"
                yield Problem((), "specialisation", expected, str(item), rule)


def _sizes_of_inputs(fused: FusedGraph) -> frozenset[str]:
    dims = {dim for tensor_type in fused.inputs for dim in tensor_type.shape}
    return frozenset(name for dim in dims for name in symbol_set(dim) if dim == symbol(name))


def _given(fused: FusedGraph) -> set[int]:
    """What is there before the first step."""
    return {
        number for number, spec in enumerate(fused.buffers) if spec.kind in ("input", "constant")
    }


# ---- steps ---------------------------------------------------------------------------------------


def _steps(
    scope: FusedScope, steps: Sequence[Step], path: Path, first: int = 0
) -> Iterator[Problem]:
    """The problems of some steps, in the order in which they run."""
    for index, step in enumerate(steps, first):
        scope.path = (*path, index)
        scope.name = step.kind if isinstance(step, Group) else type(step).__name__.lower()
        if isinstance(step, Group | SymbolRead | Copy | Requirement):
            yield from scope.source(step.source)
        yield from _step(scope, step, scope.path)


def _step(scope: FusedScope, step: Step, path: Path) -> Iterator[Problem]:
    """The problems of one step; what it binds and writes is noted."""
    match step:
        case Group():
            yield from find_group_problems(scope, step)
        case Launch():
            yield from find_launch_problems(scope, step)
        case Copy():
            yield from _copy(scope, step)
        case SymbolRead():
            yield from _read(scope, step)
        case SymbolSet():
            yield from scope.sizes(step.values)
            yield from scope.bind(step.symbols)
        case HoldState():
            yield from _hold(scope, step)
        case Grow():
            yield from _grow(scope, step)
        case Requirement():
            yield from scope.sizes((step.difference,))
        case IfStep():
            yield from scope.sizes((symbol(step.condition),))
            yield from _steps(scope, step.then, (*path, 0))
            yield from _steps(scope, step.otherwise, (*path, 1))
        case LoopStep():
            yield from _loop(scope, step, path)


def _loop(scope: FusedScope, step: LoopStep, path: Path) -> Iterator[Problem]:
    condition = (symbol(step.condition),) if step.condition else ()
    yield from scope.sizes((step.count, *condition))
    for buffer in step.held:
        yield from scope.may_be_written(buffer, "what is kept from one iteration to the next")
    yield from scope.bind((step.counter,))
    yield from _steps(scope, step.body, (*path, 0))


def _copy(scope: FusedScope, step: Copy) -> Iterator[Problem]:
    """Bytes from one device to another."""
    operand, result = scope.spec(step.operand), scope.spec(step.result)
    if operand is None or result is None:
        yield scope.no_buffer(step.result if operand else step.operand)
        return
    if operand.device == result.device:
        got = f"device {result.device} twice"
        yield scope.problem("buffers of two devices", got, "a copy crosses between devices")
    if (operand.dtype, operand.element_count) != (result.dtype, result.element_count):
        expected = f"{operand.dtype} x {operand.element_count}"
        got = f"{result.dtype} x {result.element_count}"
        yield scope.problem(expected, got, "a copy is of a whole buffer")
    yield from scope.holds_something(step.operand, "what is copied")
    yield from scope.may_be_written(step.result, "what a copy writes")
    if step.part != "whole":
        yield from _part_of_copy(scope, step)
    if step.part != "begin":
        scope.written.add(step.result)


def _part_of_copy(scope: FusedScope, step: Copy) -> Iterator[Problem]:
    """A copy from or to the host, which begins and then ends."""
    devices = [spec.device for spec in map(scope.spec, (step.operand, step.result)) if spec]
    if all(devices):
        got = " to ".join(f"device {device}" for device in devices)
        yield scope.problem("a copy from or to the host", got, "what begins early")
    same = step.operand, step.result
    if step.part == "begin":
        scope.begun.add(same)
    elif same not in scope.begun:
        got = f"none of b{step.operand} to b{step.result}"
        yield scope.problem("a copy that has begun", got, "what ends has begun")
    else:
        scope.begun.remove(same)


def _read(scope: FusedScope, step: SymbolRead) -> Iterator[Problem]:
    """A size that a kernel has made."""
    yield from scope.sizes((step.index,))
    yield from scope.bind((step.symbol,))
    spec = scope.spec(step.buffer)
    if spec is None:
        yield scope.no_buffer(step.buffer)
        return
    yield from scope.is_on_host(step.buffer, "sizes are the host's")
    if spec.dtype != step.dtype:
        yield scope.problem(spec.dtype, step.dtype, "a buffer has one element type")
    yield from scope.holds_something(step.buffer, "what sizes are read from")
    if less(step.index, 0) or less(step.index, spec.element_count) is False:
        expected = f"0 to {dim_add(spec.element_count, -1)}"
        yield scope.problem(expected, str(step.index), f"elements of b{step.buffer}")


def _hold(scope: FusedScope, step: HoldState) -> Iterator[Problem]:
    """Pairs of an input and an output, which exist."""
    fused = scope.fused
    yield from scope.sizes((step.rows, step.past, *(pair.row_bytes for pair in step.pairs)))
    for pair in step.pairs:
        if not (0 <= pair.input < len(fused.inputs) and 0 <= pair.output < len(fused.outputs)):
            expected = f"input 0 to {len(fused.inputs) - 1}, output 0 to {len(fused.outputs) - 1}"
            got = f"{pair.input}, {pair.output}"
            yield scope.problem(expected, got, "pairs that share memory")
    yield from scope.bind(step.symbols)


def _grow(scope: FusedScope, step: Grow) -> Iterator[Problem]:
    """Room for a buffer, by way of another."""
    yield from scope.sizes((step.element_count, step.kept))
    buffers = [step.buffer] if step.spare == -1 else [step.buffer, step.spare]
    for buffer in buffers:
        yield from scope.may_be_written(buffer, "buffers that grow")
        yield from scope.is_on_host(buffer, "grown buffers are the host's")
    if len({spec.dtype for buffer in buffers if (spec := scope.spec(buffer))}) > 1:
        got = f"b{step.buffer} and b{step.spare}"
        yield scope.problem("one element type", got, "buffers that grow")
