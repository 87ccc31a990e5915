"""Rule ``codegen_main``: the instruction list of one variant, and the native ``main`` made from it.

In: a fused graph, its kernels and where everything lies. Out: ``MainObject``. Not done here: the
list itself (``ingot_compiler.host_program.main_program``), its machine code
(``ingot_compiler.backends.host.main.main``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.values.native_objects import MainObject
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.lowering.groups.fused import FusedGraph
    from ingot_compiler.lowering.groups.group_steps import GroupSteps
    from ingot_compiler.lowering.loops.program import LoopProgram
    from ingot_compiler.memory.memory_plan import MemoryPlan
    from ingot_runtime.format.interface import DeviceSignature, LibrarySignature, Signature
    from ingot_runtime.format.program import Program


@dataclass(frozen=True, slots=True)
class MainInputs:
    """``steps``: of each group; ``programs`` and ``kernel_indices``: those of all groups, in order;
    ``symbols``: the image's kernels; ``inputs``, ``outputs``, ``devices``, ``libraries``: as the
    bundle's plan states them, for the digest that the loader compares."""

    fused: Artifact[FusedGraph]
    steps: tuple[GroupSteps, ...]
    programs: tuple[Artifact[LoopProgram], ...]
    kernel_indices: tuple[int, ...]
    symbols: tuple[str, ...]
    plan: Artifact[MemoryPlan]
    constant_offsets: tuple[int, ...]
    weights_bytes: int
    inputs: tuple[Signature, ...]
    outputs: tuple[Signature, ...]
    devices: tuple[DeviceSignature, ...]
    libraries: tuple[LibrarySignature, ...]
    target: str


def _compute(context: RuleContext, inputs: MainInputs) -> MainObject:
    from ingot_compiler.backends.host.main.encode_program import encode_program
    from ingot_compiler.host_program.main_program import build_program
    from ingot_compiler.host_program.print_program import print_program
    from ingot_compiler.host_program.workspace_bytes import workspace_bytes
    from ingot_compiler.lowering.groups.expand_groups import expand_groups

    programs = tuple(program.value() for program in inputs.programs)
    fused, plan = expand_groups(inputs.fused.value(), inputs.steps), inputs.plan.value()
    program, messages = build_program(
        fused, programs, inputs.kernel_indices, plan, inputs.constant_offsets
    )
    return MainObject(
        context.keep_bytes(_machine_code(program, inputs)),
        context.keep_bytes(encode_program(program)),
        context.keep(print_program(program)),
        messages,
        workspace_bytes(fused, programs, plan, len(inputs.devices)),
    )


def _machine_code(program: Program, inputs: MainInputs) -> bytes:
    """Compile the native ``main`` of an instruction list."""
    from ingot_compiler.backends.host.main.main import MAIN_LEVEL, main_module
    from ingot_compiler.codegen.object import compile_object
    from ingot_compiler.targets.target import parse_target

    target = parse_target(inputs.target)
    text = main_module(
        program,
        inputs.symbols,
        target,
        inputs=inputs.inputs,
        outputs=inputs.outputs,
        weights_bytes=inputs.weights_bytes,
        devices=inputs.devices,
        libraries=inputs.libraries,
    )
    return compile_object(text, target, level=MAIN_LEVEL)


CODEGEN_MAIN = Rule(
    "codegen_main",
    1,
    (
        "fused", "steps", "programs", "kernel_indices", "symbols", "plan", "constant_offsets",
        "weights_bytes", "inputs", "outputs", "devices", "libraries", "target",
    ),
    _compute,
)  # fmt: skip
