"""What a bundle holds: images, names, where the weights lie, the lock, and reports of what every stage did.

In: the inputs of rule ``bundle``. Out: ``BundleContents``. Not done here: the file's bytes (``ingot_artifacts.bundle``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_artifacts.bundle.contents import BundleContents, DeviceSpec, TensorSpec
from ingot_build_rules.rules.bundle import BundleInputs
from ingot_build_rules.rules.compile_options import HOST
from ingot_build_rules.rules.fusion_report import Way, describe_fusion, describe_memory, describe_refusals, with_fusion
from ingot_build_rules.rules.interface import NamedTensor
from ingot_build_rules.rules.options_record import options_record
from ingot_build_rules.rules.variant import Variant
from ingot_build_rules.rules.variant_report import describe_launches, name_messages, record_programs, variant_image
from ingot_compiler.ir.digest import graph_digest
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.specialise import specialise


def bundle_contents(inputs: BundleInputs) -> BundleContents:
    """Load every artifact and put together what goes into the file, but for the bytes of the weights."""
    return BundleContents(
        model=inputs.names.value().model,
        inputs=tuple(map(_tensor, inputs.interface.inputs)),
        outputs=tuple(map(_tensor, inputs.interface.outputs)),
        devices=(DeviceSpec(HOST),),
        variants=tuple(map(variant_image, inputs.variants, inputs.ranges)),
        weights_bytes=(inputs.weights_bytes,),
        lock=_lock(inputs),
        debug=_debug(inputs),
    )


def _tensor(tensor: NamedTensor) -> TensorSpec:
    return TensorSpec(tensor.name, tensor.dtype, tensor.shape)


def _lock(inputs: BundleInputs) -> dict[str, object]:
    """What the bundle was made from, by canonical digests: another machine can make it again, compare, and say who differs."""
    return {
        "graph": graph_digest(inputs.graph.value()),
        "weights": list(inputs.weights),
        "options": options_record(inputs.options),
        "toolchain": dict(inputs.toolchain),
        "stages": _stages(inputs),
    }


def _stages(inputs: BundleInputs) -> dict[str, object]:
    """Digest of each stage's result, in the order in which they are made."""
    return {
        "infer_types": inputs.graph.digest,
        "optimize": inputs.optimized.digest,
        "place": inputs.placed.digest,
        "targets": {
            str(variant.target): {
                "fuse": variant.fused.digest,
                "plan_memory": variant.plan.digest,
                "codegen_main": variant.main.content.digest,
                "link": variant.image.digest,
                "kernels": {kernel.symbol: kernel.content.digest for kernel in variant.kernels},
            }
            for variant in inputs.variants
        },
    }


def _debug(inputs: BundleInputs) -> Mapping[str, object]:
    names = inputs.names.value()
    return {
        "launches": {str(variant.target): _launches(inputs, variant, names) for variant in inputs.variants},
        "programs": {str(variant.target): record_programs(variant) for variant in inputs.variants},
        "refusals": describe_refusals(inputs.optimized.value().refusals, names),
        "messages": name_messages(inputs.variants, names),
        "memory": {str(variant.target): describe_memory(variant.plan.value()) for variant in inputs.variants},
    }


def _launches(inputs: BundleInputs, variant: Variant, names: Names) -> list[object]:
    graph = inputs.graph.value()
    ways = [Way(graph, inputs.placed.value().graph)]
    if inputs.special is not None:
        ways.append(Way(specialise(graph, dict(inputs.sizes)), inputs.special.value().graph))
    return with_fusion(describe_launches(variant, names), describe_fusion(variant.fused.value(), ways, names))
