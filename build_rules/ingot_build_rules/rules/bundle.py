"""Rule ``bundle``: every variant, the packed weights and the user's names to one file.

In: images, the layout of weights, names. Out: the file, and its root digest. Not done here: the format
(``ingot_artifacts.bundle``). Weights are packed one at a time while the file is written: none is held twice.
"""

from __future__ import annotations

import functools
import importlib.metadata
from dataclasses import dataclass

from ingot_artifacts.bundle.contents import BundleContents, DeviceSpec, TensorSpec, VariantImage
from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.engine.content import digest
from ingot_build_rules.engine.rule import Context, Rule
from ingot_build_rules.rules.interface import Interface, NamedTensor
from ingot_build_rules.rules.options import HOST, CompileOptions
from ingot_build_rules.rules.pack_constant import PACK_CONSTANT, PackInputs
from ingot_build_rules.rules.weight_layout import PlacedConstant, WeightLayout
from ingot_compiler.codegen.support.host import HostDigests
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.digest import graph_digest
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.graph import Graph, Names
from ingot_runtime import __version__

_TOOLS = ("llvmlite", "ziglang")


@dataclass(frozen=True, slots=True)
class BundleInputs:
    """``graph``: the model as it was before any pass, whose digest the bundle records; ``launches``: by target, what each
    launch runs; ``programs``: by target and symbol, what each kernel was made from; ``report``: more of the debug section, by name;
    ``read``: the leaves of constants."""

    names: Names
    interface: Interface
    graph: Graph
    options: CompileOptions
    images: tuple[VariantImage, ...]
    launches: tuple[tuple[str, list[object]], ...]
    programs: tuple[tuple[str, dict[str, object]], ...]
    report: dict[str, object]
    layout: WeightLayout
    read: ConstantReader
    path: str


def _compute(context: Context, inputs: BundleInputs) -> str:
    contents = BundleContents(
        model=inputs.names.model,
        inputs=tuple(map(_tensor, inputs.interface.inputs)),
        outputs=tuple(map(_tensor, inputs.interface.outputs)),
        devices=(DeviceSpec(HOST),),
        variants=inputs.images,
        weights=[
            (constant.offset_bytes, functools.partial(_pack, context, inputs.read, constant))
            for constant in inputs.layout.constants
        ],
        weights_bytes=inputs.layout.size_bytes,
        lock=_lock(inputs),
        debug={"launches": dict(inputs.launches), "programs": dict(inputs.programs), **inputs.report},
    )
    return write_bundle(contents, inputs.path, HostDigests().mib_tree_entry)


def _tensor(tensor: NamedTensor) -> TensorSpec:
    return TensorSpec(tensor.name, tensor.dtype, tensor.shape)


def _pack(context: Context, read: ConstantReader, constant: PlacedConstant) -> memoryview:
    content = context.need(PACK_CONSTANT, PackInputs(constant.expression, read))
    if content.nbytes != constant.size_bytes:
        raise InternalError(
            "a packed constant has the wrong size",
            where=f"constant {constant.digest[:16]}",
            why=f"expected {constant.size_bytes} bytes, got {content.nbytes}",
        )
    return content.cast("B") if content.nbytes else memoryview(b"")


def _lock(inputs: BundleInputs) -> dict[str, object]:
    """Record what the bundle was made from by canonical digests: another machine can make it again and compare."""
    options = inputs.options
    return {
        "graph": graph_digest(inputs.graph),
        "weights": digest(tuple(constant.digest for constant in inputs.layout.constants)),
        "options": {
            "targets": [str(target) for target in options.targets],
            "shapes": {name: list(sizes) for name, sizes in options.shapes},
            "devices": dict(options.devices),
            "place": [list(pair) for pair in options.place],
            "planner": options.planner,
        },
        "toolchain": {"ingot": __version__} | {name: importlib.metadata.version(name) for name in _TOOLS},
    }


BUNDLE = Rule(
    "bundle",
    1,
    ("names", "interface", "graph", "options", "images", "launches", "programs", "report", "layout"),
    _compute,
    transient=True,
)
