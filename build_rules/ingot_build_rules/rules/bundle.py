"""Rule ``bundle``: every variant, the packed weights and the user's names to one file.

In: images, places of the packed weights and their tree, names, all stages for the reports. Out: ``BundleFrame``: the file without
its weights, and where they lie. Not done here: what is in it (``bundle_contents``), the format (``ingot_artifacts.bundle``), the
file itself (``bundle_file``). The weights' bytes are not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.artifact import Artifact
from ingot_build_rules.engine.rule import Context, Rule
from ingot_build_rules.rules.compile_options import CompileOptions
from ingot_build_rules.rules.interface import Interface
from ingot_build_rules.rules.packed_constant import PackedConstant
from ingot_build_rules.rules.variant import Variant
from ingot_compiler.placement.placed import PlacedGraph  # nothing else imports it: its code is in the key by this line

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Graph, Names, OptimizedGraph


@dataclass(frozen=True, slots=True)
class BundleInputs:
    """``graph``: the model before any pass; ``special``: the placed graph for ``sizes`` of ``--shape``; ``ranges``: what each
    variant reads of the weights; ``weights``: digests of the model's constants by number, for the lock; ``toolchain``: (name, version or digest)."""

    names: Artifact[Names]
    interface: Interface
    graph: Artifact[Graph]
    optimized: Artifact[OptimizedGraph]
    placed: Artifact[PlacedGraph]
    special: Artifact[PlacedGraph] | None
    sizes: tuple[tuple[str, int], ...]
    options: CompileOptions
    variants: tuple[Variant, ...]
    ranges: tuple[tuple[tuple[int, int], ...], ...]
    packed: tuple[PackedConstant, ...]
    tree: Artifact[memoryview]
    weights_bytes: int
    weights: tuple[str, ...]
    toolchain: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class BundleFrame:
    """``root``: the bundle's digest, 64 hex digits; ``prefix``: its bytes before the weights; bytes of the whole file."""

    root: str
    prefix: Artifact[memoryview]
    packed: tuple[PackedConstant, ...]
    size_bytes: int


def _compute(context: Context, inputs: BundleInputs) -> BundleFrame:
    from ingot_artifacts.bundle.write import frame_bundle
    from ingot_build_rules.rules.bundle_contents import bundle_contents

    frame = frame_bundle(bundle_contents(inputs), bytes(inputs.tree.value()))
    return BundleFrame(frame.root, context.keep_bytes(frame.prefix), inputs.packed, frame.size_bytes)


BUNDLE = Rule(
    "bundle",
    1,
    (
        "names", "interface", "graph", "optimized", "placed", "special", "sizes", "options", "variants", "ranges", "packed",
        "tree", "weights_bytes", "weights", "toolchain",
    ),
    _compute,
)  # fmt: skip
