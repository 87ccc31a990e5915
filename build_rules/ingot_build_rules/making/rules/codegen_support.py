"""Rule ``codegen_support``: the native support code of a target, which every image contains.

In: a target and its back end. Out: one object. Not done here: the functions
(``ingot_compiler.backends``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.backends.backend import CompileSupport


@dataclass(frozen=True, slots=True)
class SupportInputs:
    """The target and the back end decide; ``hook``: ``Backend.compile_support``."""

    hook: str
    target: str


def _compute(context: RuleContext, inputs: SupportInputs) -> Artifact[memoryview]:
    compile_support: CompileSupport = context.load(inputs.hook)
    return context.keep_bytes(compile_support(inputs.target))


CODEGEN_SUPPORT = Rule(
    "codegen_support", 1, ("hook", "target"), _compute, tools=("zig",), loads=("hook",)
)
