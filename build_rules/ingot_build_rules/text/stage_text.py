"""The text view of every stage, as ``--to`` prints it.

In: a compilation. Out: text, the same on every machine for the same stage. Not done here: making the stages.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ingot_artifacts.inspect.describe import describe_bundle
from ingot_compiler.frontend.imported import print_imported
from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.ir.print_graph import print_graph
from ingot_compiler.lowering.fused import (
    Copy,
    FusedGraph,
    Group,
    Grow,
    IfStep,
    LoopStep,
    Operand,
    Requirement,
    Step,
    SymbolRead,
    SymbolSet,
)
from ingot_compiler.lowering.print_loops import print_loops
from ingot_compiler.memory.memory_plan import MemoryPlan
from ingot_compiler.placement.placed import PlacedGraph
from ingot_runtime.format.describe import lines_of

if TYPE_CHECKING:
    from ingot_build_rules.compilation.compile_model import CompiledModel, TargetBuild


def _per_target(view: Callable[[TargetBuild], str]) -> Callable[[CompiledModel], str]:
    """Print a view of each target under the target's name."""

    def text(compiled: CompiledModel) -> str:
        return "\n".join(f"target {build.target}:\n{view(build)}" for build in compiled.target_builds)

    return text


def fused_text(fused: FusedGraph) -> str:
    """Print buffers, then steps; a view is ``offset + strides``."""
    return "\n".join([*_buffer_lines(fused), *_step_lines(fused), *_constant_lines(fused)])


def _buffer_lines(fused: FusedGraph) -> Iterator[str]:
    for index, buffer in enumerate(fused.buffers):
        place = f" {buffer.index}" if buffer.index >= 0 else ""
        device = f" on device {buffer.device}" if buffer.device else ""
        yield f"buffer b{index}: {buffer.dtype} x {format_dim(buffer.element_count)}, {buffer.kind}{place}{device}"


def _step_lines(fused: FusedGraph) -> Iterator[str]:
    for index, step in enumerate(fused.steps):
        yield from _step(f"step {index}: ", step)


def _step(head: str, step: Step) -> Iterator[str]:
    if isinstance(step, SymbolRead):
        yield f"{head}{step.symbol} = b{step.buffer}[{step.index}]"
    elif isinstance(step, SymbolSet):
        yield f"{head}{', '.join(step.symbols)} = {', '.join(map(format_dim, step.values))}"
    elif isinstance(step, Grow):
        kept = f", {format_dim(step.kept)} kept" if step.spare >= 0 else ""
        yield f"{head}b{step.buffer} holds {format_dim(step.element_count)}{kept}"
    elif isinstance(step, Requirement):
        yield f"{head}require {format_dim(step.difference)} = 0, {step.what} @{list(step.source)}"
    elif isinstance(step, Copy):
        yield f"{head}copy b{step.operand} to b{step.result} @{list(step.source)}"
    elif isinstance(step, IfStep):
        yield f"{head}if {step.condition}"
        yield from _part("then ", step.then)
        yield from _part("else ", step.otherwise)
    elif isinstance(step, LoopStep):
        condition = f" and {step.condition}" if step.condition else ""
        yield f"{head}while {step.counter} < {format_dim(step.count)}{condition}"
        yield from _part("body ", step.body)
    elif isinstance(step, Group):
        device = f" on device {step.device}" if step.device else ""
        yield f"{head}{step.kind}{device} @{list(step.source)}"
        for node in step.nodes:
            results = ", ".join(f"%{value}" for value in node.results)
            yield f"  {results} = {node.op}({', '.join(f'%{value}' for value in node.operands)})"
        yield from (f"  reads {_operand(operand)}" for operand in step.operands)
        yield from (f"  writes {_operand(operand)}" for operand in step.results)


def _part(head: str, steps: Sequence[Step]) -> Iterator[str]:
    for index, step in enumerate(steps):
        yield from (f"  {line}" for line in _step(f"{head}{index}: ", step))


def _operand(operand: Operand) -> str:
    strides = ", ".join(map(format_dim, operand.view.strides))
    offset = format_dim(operand.view.offset)
    return f"%{operand.value}: {operand.type} in b{operand.buffer} at {offset} + [{strides}]"


def _constant_lines(fused: FusedGraph) -> Iterator[str]:
    for index, expression in enumerate(fused.constants):
        yield f"constant {index}: {print_graph(expression)}"


def memory_text(plan: MemoryPlan) -> str:
    """Print where each buffer lies and which steps it lives for."""
    pools = (
        f"device {pool.device}: {pool.size_bytes} bytes (at least {pool.lower_bound_bytes})" for pool in plan.pools
    )
    head = f"planner {plan.planner}\n" + "\n".join(pools)
    return "\n".join(
        [
            head,
            *(
                f"buffer b{item.buffer}: {format_dim(item.size_bytes)} bytes, steps {item.first} to {item.last}, "
                + _placement(item.offset_bytes, item.after, late=item.late)
                for item in plan.placements
            ),
        ]
    )


def _placement(offset_bytes: Dim | None, after: tuple[int, ...], *, late: bool) -> str:
    if late:
        return "a block of its own"
    if offset_bytes is not None:
        return f"at {format_dim(offset_bytes)}"
    return f"above {', '.join(f'b{buffer}' for buffer in after)}" if after else "at 0"


def _loops(build: TargetBuild) -> str:
    return "\n".join(
        f"kernel of nodes {list(launch.group.source)}:\n{print_loops(build.programs[launch.program])}"
        for launch in build.launches
    )


def _library(build: TargetBuild) -> str:
    """List the kernels: symbol, how many launches share it, bytes of its object."""
    launches: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for kernel in (build.objects[launch.program] for launch in build.launches):
        launches[kernel.symbol] = launches.get(kernel.symbol, 0) + 1
        sizes[kernel.symbol] = kernel.size_bytes
    return "\n".join(f"{symbol}: {count} launches, {sizes[symbol]} bytes" for symbol, count in launches.items())


def _host(build: TargetBuild) -> str:
    return build.variant.main.listing.value()


def _bundle(compiled: CompiledModel) -> str:
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        path = os.path.join(folder, "bundle.ingot")
        compiled.save(path)
        return "\n".join(lines_of(describe_bundle(path)))


def placed_text(placed: PlacedGraph) -> str:
    """Print the device table, the graph, and where each value lives and why."""
    lines = [f"device {index}: {item.name} {item.device}" for index, item in enumerate(placed.devices)]
    lines.append(print_graph(placed.graph))
    for value, (device, reason) in enumerate(zip(placed.device_of, placed.reasons, strict=True)):
        lines.append(f"%{value} on {placed.devices[device].name}: {reason}")
    return "\n".join(lines)


STAGE_TEXTS: Mapping[str, Callable[[CompiledModel], str]] = {
    "imported": lambda compiled: print_imported(compiled.imported),
    "graph": lambda compiled: print_graph(compiled.graph),
    "optimized": lambda compiled: print_graph(compiled.optimized.graph),
    "placed": lambda compiled: placed_text(compiled.placed),
    "fused": _per_target(lambda build: fused_text(build.fused)),
    "loops": _per_target(_loops),
    "memory": _per_target(lambda build: memory_text(build.plan)),
    "library": _per_target(_library),
    "host": _per_target(_host),
    "bundle": _bundle,
}


def stage_text(compiled: CompiledModel, stage: str) -> str:
    """Return the text view of a stage of ``stages.STAGES``."""
    return STAGE_TEXTS[stage](compiled)
