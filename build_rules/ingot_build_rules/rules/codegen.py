"""Rule ``codegen``: LoopProgram to one kernel's object, named by its content.

In: a loop program, a target. Out: ``KernelObject``. Not done here: IR text and LLVM (``ingot_compiler.backends.host``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Context, Rule
from ingot_build_rules.rules.kernel_object import KernelObject

if TYPE_CHECKING:
    from ingot_compiler.lowering.loops import LoopProgram
    from ingot_compiler.targets.target import Target


@dataclass(frozen=True, slots=True)
class CodegenInputs:
    """A kernel depends on its program and the target alone."""

    program: Artifact[LoopProgram]
    target: Target


def _compute(context: Context, inputs: CodegenInputs) -> KernelObject:
    from ingot_compiler.backends.host.emit.kernel import kernel_module
    from ingot_compiler.backends.host.object import compile_object

    module = kernel_module(inputs.program.value(), inputs.target)
    content = compile_object(module.text, inputs.target)
    return KernelObject(module.symbol, context.keep_bytes(content), len(content))


CODEGEN = Rule("codegen", 1, ("program", "target"), _compute)
