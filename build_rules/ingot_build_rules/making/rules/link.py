"""Rule ``link``: the objects of one variant, or of one library, to an image.

In: objects of kernels, ``main`` and support code, their back end. Out: the image's bytes. Not done
here: the linker's ways (``ingot_compiler.backends``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.backends.backend import LinkImage


@dataclass(frozen=True, slots=True)
class LinkInputs:
    """``kernels``: (symbol, object) in the order of the image's kernel table; ``main``: a library
    has none; ``hook``: ``Backend.link_image``."""

    kernels: tuple[tuple[str, Artifact[memoryview]], ...]
    main: Artifact[memoryview] | None
    support: Artifact[memoryview]
    hook: str
    target: str


def _compute(context: RuleContext, inputs: LinkInputs) -> Artifact[memoryview]:
    link_image: LinkImage = context.load(inputs.hook)
    kernels = [(symbol, bytes(kernel.value())) for symbol, kernel in inputs.kernels]
    main = None if inputs.main is None else bytes(inputs.main.value())
    return context.keep_bytes(
        link_image(kernels, main, bytes(inputs.support.value()), inputs.target)
    )


LINK = Rule(
    "link",
    1,
    ("kernels", "main", "support", "hook", "target"),
    _compute,
    tools=("zig",),
    loads=("hook",),
)
