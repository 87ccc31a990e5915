"""Rule ``join_libraries``: the support code of an image with the libraries of plug-ins, one object.

In: objects. Out: an object. Not done here: the image (``link``).
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

NamedObjects = tuple[tuple[str, tuple[tuple[str, Artifact[memoryview]], ...]], ...]
"""Plug-in -> name and content of objects."""


@dataclass(frozen=True, slots=True)
class JoinInputs:
    """``kernels``: those that each plug-in has lowered; what they call has to be in
    ``libraries`` or in ``support``."""

    support: Artifact[memoryview]
    libraries: NamedObjects
    kernels: NamedObjects
    target: str


def _compute(context: RuleContext, inputs: JoinInputs) -> Artifact[memoryview]:
    from ingot_compiler.plugins.join_libraries import join_libraries

    libraries, kernels = _contents(inputs.libraries), _contents(inputs.kernels)
    support = bytes(inputs.support.value())
    return context.keep_bytes(join_libraries(support, libraries, kernels, inputs.target))


def _contents(objects: NamedObjects) -> dict[str, list[tuple[str, bytes]]]:
    return {
        plugin: [(name, bytes(content.value())) for name, content in own] for plugin, own in objects
    }


JOIN_LIBRARIES = Rule(
    "join_libraries", 1, ("support", "libraries", "kernels", "target"), _compute, tools=("zig",)
)
