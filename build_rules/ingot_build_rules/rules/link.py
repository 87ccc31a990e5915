"""Rule ``link``: the objects of one variant, or of one library, to an image.

In: objects of kernels, ``main`` and support code. Out: the image's bytes. Not done here: the linker's ways
(``ingot_compiler.backends.host.link``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Context, Rule

if TYPE_CHECKING:
    from ingot_compiler.targets.target import Target


@dataclass(frozen=True, slots=True)
class LinkInputs:
    """``kernels``: (symbol, object) in the order of the image's kernel table; ``main``: a library has none."""

    kernels: tuple[tuple[str, Artifact[memoryview]], ...]
    main: Artifact[memoryview] | None
    support: Artifact[memoryview]
    target: Target


def _compute(context: Context, inputs: LinkInputs) -> Artifact[memoryview]:
    from ingot_compiler.backends.host.link import link_image
    from ingot_compiler.backends.host.main.main import MAIN_EXPORTS
    from ingot_compiler.backends.host.support import SUPPORT_EXPORTS

    main = () if inputs.main is None else (("main", inputs.main),)
    exports = {**SUPPORT_EXPORTS, **(MAIN_EXPORTS if main else {})}
    parts = (*inputs.kernels, *main, ("support", inputs.support))
    objects = tuple((name, bytes(part.value())) for name, part in parts)
    symbols = [symbol for symbol, _ in inputs.kernels]
    return context.keep_bytes(link_image(objects, symbols, exports, inputs.target))


LINK = Rule("link", 1, ("kernels", "main", "support", "target"), _compute, tools=("zig",))
