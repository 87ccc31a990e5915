"""Rule ``codegen_claimed``: the loops of a claimed kernel to its object, by the plug-in's own code
generation.

In: a loop program, a target, the hook. Out: ``KernelObject``. Not done here: calling the hook
(``ingot_compiler.plugins``); plug-ins that leave this to the host (``codegen``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.values.native_objects import KernelObject
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.lowering.loops.program import LoopProgram
    from ingot_compiler.plugins.settings import PluginSettings


@dataclass(frozen=True, slots=True)
class CodegenClaimedInputs:
    """``hook``: ``Plugin.compile_kernel``."""

    program: Artifact[LoopProgram]
    hook: str
    settings: PluginSettings
    target: str


def _compute(context: RuleContext, inputs: CodegenClaimedInputs) -> KernelObject:
    from ingot_compiler.plugins.compile_claimed import compile_claimed

    hook, program = context.load(inputs.hook), inputs.program.value()
    symbol, content = compile_claimed(program, inputs.target, inputs.settings, hook)
    return KernelObject(symbol, context.keep_bytes(content), len(content))


CODEGEN_CLAIMED = Rule(
    "codegen_claimed",
    1,
    ("program", "hook", "settings", "target"),
    _compute,
    tools=("zig",),
    loads=("hook",),
)
