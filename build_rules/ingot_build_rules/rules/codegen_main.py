"""Rule ``codegen_main``: the instruction list of one variant, and the native ``main`` made from it.

In: a fused graph, its kernels and where everything lies. Out: ``MainObject``. Not done here: the list itself
(``ingot_compiler.host_program.main_program``), its machine code (``ingot_compiler.backends.host.main.main``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Context, Rule
from ingot_build_rules.rules.main_object import MainObject

if TYPE_CHECKING:
    from ingot_compiler.lowering.fused import FusedGraph
    from ingot_compiler.lowering.loops import LoopProgram
    from ingot_compiler.memory.memory_plan import MemoryPlan
    from ingot_compiler.targets.target import Target
    from ingot_runtime.format.interface import DeviceSignature, LibrarySignature, Signature
    from ingot_runtime.format.program import Program


@dataclass(frozen=True, slots=True)
class MainInputs:
    """``programs`` and ``kernel_indices``: one per group; ``symbols``: the image's kernels; ``inputs``, ``outputs``, ``devices``,
    ``libraries``: as the bundle's plan states them, for the digest that the loader compares."""

    fused: Artifact[FusedGraph]
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
    target: Target


def _compute(context: Context, inputs: MainInputs) -> MainObject:
    from ingot_compiler.backends.host.main.main import MAIN_LEVEL, main_module
    from ingot_compiler.backends.host.object import compile_object
    from ingot_compiler.host_program.main_program import build_program
    from ingot_compiler.host_program.workspace_bytes import workspace_bytes
    from ingot_runtime.format.program import encode_program

    programs = tuple(program.value() for program in inputs.programs)
    program, messages = build_program(
        inputs.fused.value(), programs, inputs.kernel_indices, inputs.plan.value(), inputs.constant_offsets
    )
    text = main_module(
        program,
        inputs.symbols,
        inputs.target,
        inputs=inputs.inputs,
        outputs=inputs.outputs,
        weights_bytes=inputs.weights_bytes,
        devices=inputs.devices,
        libraries=inputs.libraries,
    )
    return MainObject(
        context.keep_bytes(compile_object(text, inputs.target, level=MAIN_LEVEL)),
        context.keep_bytes(encode_program(program)),
        context.keep(_listing(program)),
        messages,
        workspace_bytes(inputs.fused.value(), programs, inputs.plan.value(), len(inputs.devices)),
    )


def _listing(program: Program) -> str:
    """Print the instruction list, one instruction a line."""
    from ingot_runtime.format.program import OPCODES

    lines = [f"registers {program.register_count}, buffers {program.buffer_count}"]
    lines += [f"message {index}: {text}" for index, text in enumerate(program.messages)]
    for index, (opcode, operands) in enumerate(program.instructions):
        texts = (str(list(operand)) if isinstance(operand, tuple) else str(operand) for operand in operands)
        lines.append(f"{index}: {OPCODES[opcode][0]} {', '.join(texts)}".rstrip())
    return "\n".join(lines)


CODEGEN_MAIN = Rule(
    "codegen_main",
    1,
    (
        "fused", "programs", "kernel_indices", "symbols", "plan", "constant_offsets", "weights_bytes", "inputs", "outputs",
        "devices", "libraries", "target",
    ),
    _compute,
)  # fmt: skip
