"""Rule ``codegen``: LoopProgram to one kernel's object, named by its content.

In: a loop program, a target and its back end. Out: ``KernelObject``. Not done here: the code
(``ingot_compiler.backends``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.values.native_objects import KernelObject
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.backends.backend import CompileKernel
    from ingot_compiler.lowering.loops.program import LoopProgram


@dataclass(frozen=True, slots=True)
class CodegenInputs:
    """A kernel depends on its program, the target and the back end alone; ``hook``:
    ``Backend.compile_kernel``."""

    program: Artifact[LoopProgram]
    hook: str
    target: str


def _compute(context: RuleContext, inputs: CodegenInputs) -> KernelObject:
    compile_kernel: CompileKernel = context.load(inputs.hook)
    symbol, content = compile_kernel(inputs.program.value(), inputs.target)
    return KernelObject(symbol, context.keep_bytes(content), len(content))


CODEGEN = Rule("codegen", 1, ("program", "hook", "target"), _compute, loads=("hook",))
