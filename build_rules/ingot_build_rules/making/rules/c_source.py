"""Rule ``c_source``: a model in C: its kernels, and the function that runs them in order.

In: a fused graph, its kernels as C, where everything lies, shapes of the inputs. Out: ``CSource``.
Not done here: kernels (``codegen``), the header and the weights (``export.c_source``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Names
    from ingot_compiler.lowering.groups.fused import FusedGraph
    from ingot_compiler.lowering.groups.group_steps import GroupSteps
    from ingot_compiler.lowering.loops.program import LoopProgram
    from ingot_compiler.memory.memory_plan import MemoryPlan


@dataclass(frozen=True, slots=True)
class CSourceInputs:
    """``steps``: of each group; ``programs`` and ``kernel_indices``: those of all groups, in order;
    ``symbols`` and ``kernels``: names and texts of the kernels, each once; ``shapes``: of the
    inputs; ``identifiers``: of the model, its inputs and its outputs; ``names``: for messages;
    ``tensors_inside``: the plan has places of inputs and outputs."""

    fused: Artifact[FusedGraph]
    steps: tuple[GroupSteps, ...]
    programs: tuple[Artifact[LoopProgram], ...]
    kernel_indices: tuple[int, ...]
    symbols: tuple[str, ...]
    kernels: tuple[Artifact[memoryview], ...]
    plan: Artifact[MemoryPlan]
    constant_offsets: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    identifiers: tuple[tuple[str, ...], ...]
    names: Artifact[Names]
    tensors_inside: bool = False


@dataclass(frozen=True, slots=True)
class CSource:
    """``text``: of the file; ``shapes``: of the outputs; ``stack_bytes``: of a call, on processors
    of 32 bits; how many kernels are called how often."""

    text: Artifact[memoryview]
    shapes: tuple[tuple[int, ...], ...]
    workspace_bytes: int
    scratch_bytes: int
    stack_bytes: int
    kernel_count: int
    call_count: int


def _compute(context: RuleContext, inputs: CSourceInputs) -> CSource:
    from ingot_compiler.backends.c.model_text import ModelText, model_text
    from ingot_compiler.backends.c.stack_need import call_stack_need, read_kernel
    from ingot_compiler.backends.c.straight_line import straight_line, with_tensors
    from ingot_compiler.host_program.main_program import build_program
    from ingot_compiler.ir.errors import UserError
    from ingot_compiler.ir.in_names import error_in_names, text_in_names
    from ingot_compiler.lowering.groups.expand_groups import expand_groups

    names = inputs.names.value()
    fused = expand_groups(inputs.fused.value(), inputs.steps)
    programs = tuple(program.value() for program in inputs.programs)
    plan, offsets = inputs.plan.value(), inputs.constant_offsets
    program, messages = build_program(fused, programs, inputs.kernel_indices, plan, offsets)
    ranks = [len(tensor_type.shape) for tensor_type in fused.outputs]
    try:
        line = straight_line(program, messages, inputs.shapes, ranks)
    except UserError as error:
        raise error_in_names(error, names) from error
    if inputs.tensors_inside:
        line = with_tensors(line, plan, fused)
    kernels = tuple(
        read_kernel(symbol, bytes(kernel.value()))
        for symbol, kernel in zip(inputs.symbols, inputs.kernels, strict=True)
    )
    called, given, made = inputs.identifiers
    texts = tuple(text_in_names(text, names) for text in messages)
    text = model_text(ModelText(called[0], given, made, kernels, line, texts))
    return CSource(
        context.keep_bytes(text.encode("ascii")),
        line.shapes,
        line.workspace_bytes,
        line.scratch_bytes,
        call_stack_need(line, kernels),
        len({call.kernel for call in line.calls}),
        len(line.calls),
    )


C_SOURCE = Rule(
    "c_source",
    3,
    (
        "fused", "steps", "programs", "kernel_indices", "symbols", "kernels", "plan",
        "constant_offsets", "shapes", "identifiers", "names", "tensors_inside",
    ),
    _compute,
)  # fmt: skip
