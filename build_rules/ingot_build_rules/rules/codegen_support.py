"""Rule ``codegen_support``: the native code that every image of a target needs.

In: a target. Out: one relocatable object. Not done here: the functions (``ingot_compiler.backends.host.support``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Context, Rule

if TYPE_CHECKING:
    from ingot_compiler.targets.target import Target


@dataclass(frozen=True, slots=True)
class SupportInputs:
    """The target alone decides."""

    target: Target


def _compute(context: Context, inputs: SupportInputs) -> Artifact[memoryview]:
    from ingot_compiler.backends.host.support.compile_support import compile_support

    return context.keep_bytes(compile_support(inputs.target))


CODEGEN_SUPPORT = Rule("codegen_support", 1, ("target",), _compute, tools=("zig",))
