"""Rule ``bundle``: every variant, the packed weights and the user's names to one file.

In: images, places of the packed weights and their tree, names, all stages for the reports. Out:
``BundleParts``: the file without its weights, and where they lie. Not done here: the texts of the
reports (``report``), the format (``ingot_artifacts.bundle``), the file itself (``bundle_file``).
The weights' bytes are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.options.compile_options import HOST, CompileOptions
from ingot_build_rules.making.options.option_rows import WARN
from ingot_build_rules.making.rules.variant import Alternative, Library, Variant
from ingot_build_rules.making.values.default_input import DefaultInput
from ingot_build_rules.making.values.interface import Interface, NamedTensor
from ingot_build_rules.making.values.packed_constant import PackedConstant

# Nothing else imports it: its code is in the key by this line.
from ingot_compiler.placement.placed import PlacedGraph
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_artifacts.bundle.contents import (
        AlternativeSpec,
        BundleContents,
        BundleTensor,
        DefaultValue,
        DeviceSpec,
        LibrarySpec,
        StatePair,
        VariantImage,
    )
    from ingot_build_rules.making.values.native_objects import KernelObject
    from ingot_compiler.ir.graph import Graph, Names, OptimizedGraph
    from ingot_compiler.ir.sizes.profile import Profile


@dataclass(frozen=True, slots=True)
class BundleInputs:
    """``graph``: the model before any pass; ``specialisations``: the placed graphs for
    ``profiles`` of ``--shape``; ``device_libraries``: of each device beside the host, the number of
    its library; ``ranges``: what each variant reads of the host's weights; ``weights_bytes``: per
    device; ``weights``: digests of the model's constants by number, for the lock; ``toolchain``:
    (name, version)."""

    names: Artifact[Names]
    interface: Interface
    graph: Artifact[Graph]
    optimized: Artifact[OptimizedGraph]
    placed: Artifact[PlacedGraph]
    specialisations: tuple[Artifact[PlacedGraph], ...]
    profiles: tuple[Profile, ...]
    options: CompileOptions
    variants: tuple[Variant, ...]
    libraries: tuple[Library, ...]
    device_libraries: tuple[int, ...]
    ranges: tuple[tuple[tuple[int, int], ...], ...]
    packed: tuple[PackedConstant, ...]
    tree: Artifact[memoryview]
    weights_bytes: tuple[int, ...]
    weights: tuple[str, ...]
    toolchain: tuple[tuple[str, str], ...]
    defaults: tuple[DefaultInput, ...] = ()
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class BundleParts:
    """``root``: the bundle's digest, 64 hex digits; ``prefix``: its bytes before the weights; bytes
    of the whole file."""

    root: str
    prefix: Artifact[memoryview]
    packed: tuple[PackedConstant, ...]
    size_bytes: int


def _compute(context: RuleContext, inputs: BundleInputs) -> BundleParts:
    from ingot_artifacts.bundle.write import make_skeleton

    if inputs.options.choices.fallback == WARN:
        _tell_fallbacks(context, inputs)
    _tell_floats(context, inputs)
    _tell_processor(context, inputs.options)
    skeleton = make_skeleton(_contents(inputs), bytes(inputs.tree.value()))
    return BundleParts(
        skeleton.root, context.keep_bytes(skeleton.prefix), inputs.packed, skeleton.size_bytes
    )


def _tell_fallbacks(context: RuleContext, inputs: BundleInputs) -> None:
    from ingot_build_rules.making.report.placement_report import fallen_back

    names = inputs.names.value()
    graphs = (inputs.placed, *inputs.specialisations)
    found = (fallen_back(each.value(), names) for each in graphs)
    for text in dict.fromkeys(text for each in found for text in each):
        context.warn(text)


def _tell_floats(context: RuleContext, inputs: BundleInputs) -> None:
    from ingot_build_rules.making.report.integer_report import products_in_floats_line

    refusals = inputs.optimized.value().refusals
    if line := products_in_floats_line(refusals, inputs.names.value()):
        context.warn(line)


def _tell_processor(context: RuleContext, options: CompileOptions) -> None:
    from ingot_build_rules.making.options.tuning_file import measured_on_one

    if options.tuning and (line := measured_on_one(options.tuning)):
        context.warn(line)


def _contents(inputs: BundleInputs) -> BundleContents:
    """Load every artifact and put together what goes into the file, but for the bytes of the
    weights."""
    from ingot_artifacts.bundle.contents import BundleContents

    names = _shown_names(inputs)
    return BundleContents(
        model=names.model,
        inputs=tuple(map(_tensor, inputs.interface.inputs)),
        outputs=tuple(map(_tensor, inputs.interface.outputs)),
        devices=_devices(inputs),
        libraries=tuple(map(_library, inputs.libraries)),
        alternatives=tuple(map(_alternative, inputs.alternatives)),
        variants=tuple(map(_image, inputs.variants, inputs.ranges)),
        weights_bytes=inputs.weights_bytes,
        defaults=tuple(map(_default, inputs.defaults)),
        states=_states(inputs.placed.value()),
        values=inputs.interface.values,
        lock=_lock(inputs),
        debug=_debug(inputs, names),
    )


def _shown_names(inputs: BundleInputs) -> Names:
    """The names that the bundle tells: stripped, a node's is its number in the model."""
    names = inputs.names.value()
    if not inputs.options.choices.strip:
        return names
    numbered = tuple((f"#{number}", op) for number, (_, op) in enumerate(names.nodes))
    return replace(names, nodes=numbered, plans=())


def _tensor(tensor: NamedTensor) -> BundleTensor:
    from ingot_artifacts.bundle.contents import BundleTensor

    return BundleTensor(tensor.name, tensor.dtype, tensor.shape)


def _default(default: DefaultInput) -> DefaultValue:
    from ingot_artifacts.bundle.contents import DefaultValue

    return DefaultValue(default.position, default.shape, bytes(default.content.value()))


def _states(placed: PlacedGraph) -> tuple[StatePair, ...]:
    from ingot_artifacts.bundle.contents import StatePair
    from ingot_compiler.lowering.groups.states import states_of

    return tuple(
        StatePair(item.input, item.output, -item.axis - 1 if item.fixed else item.axis)
        for item in states_of(placed)
    )


def _devices(inputs: BundleInputs) -> tuple[DeviceSpec, ...]:
    """The host first; each other device with the number of the library that has its code; the
    host's pools."""
    from ingot_artifacts.bundle.contents import DeviceSpec

    pairs = zip(inputs.options.devices, inputs.device_libraries, strict=True)
    others = [
        DeviceSpec(item.name, item.kind, item.id, item.scope, library) for item, library in pairs
    ]
    pools = [DeviceSpec(name, HOST) for name, _ in inputs.options.pools]
    return (DeviceSpec(HOST), *others, *pools)


def _library(library: Library) -> LibrarySpec:
    from ingot_artifacts.bundle.contents import LibrarySpec

    symbols = tuple(kernel.symbol for kernel in library.kernels)
    image = bytes(library.image.value())
    return LibrarySpec(library.kind, library.target, library.features, symbols, image)


def _alternative(alternative: Alternative) -> AlternativeSpec:
    from ingot_artifacts.bundle.contents import AlternativeSpec

    return AlternativeSpec(_library(alternative.library), alternative.stands_for, alternative.ids)


def _image(variant: Variant, ranges: tuple[tuple[int, int], ...]) -> VariantImage:
    """The variant as the writer wants it; ``ranges``: (offset, bytes) of the weights that it
    reads."""
    from ingot_artifacts.bundle.contents import VariantImage

    return VariantImage(
        target=variant.target,
        features=variant.features,
        rank=variant.rank,
        image=bytes(variant.image.value()),
        program=bytes(variant.main.program.value()),
        weight_ranges=ranges,
        workspace_bytes=variant.main.workspace_bytes,
        kernels=tuple(kernel.symbol for kernel in variant.kernels),
        processors=variant.processors,
    )


def _lock(inputs: BundleInputs) -> dict[str, object]:
    """What the bundle was made from, by canonical digests: another machine can make it again,
    compare, and say who differs."""
    from ingot_compiler.ir.digest import graph_digest

    return {
        "graph": graph_digest(inputs.graph.value()),
        "weights": list(inputs.weights),
        "options": inputs.options.plain(),
        "toolchain": dict(inputs.toolchain),
        "stages": _stages(inputs),
    }


def _stages(inputs: BundleInputs) -> dict[str, object]:
    """Digest of each stage's result, in the order in which they are made."""
    return {
        "infer_types": inputs.graph.digest,
        "optimize": inputs.optimized.digest,
        "place": inputs.placed.digest,
        "targets": {variant.target: _variant_stages(variant) for variant in inputs.variants},
        "libraries": [
            {"link": library.image.digest, "kernels": _kernel_digests(library.kernels)}
            for library in inputs.libraries
        ],
        **_alternative_stages(inputs),
    }


def _alternative_stages(inputs: BundleInputs) -> dict[str, object]:
    """Digest of each stage of the alternatives, where there are any."""
    if not inputs.alternatives:
        return {}
    libraries = [alternative.library for alternative in inputs.alternatives]
    found = [{"link": it.image.digest, "kernels": _kernel_digests(it.kernels)} for it in libraries]
    return {"alternatives": found}


def _variant_stages(variant: Variant) -> dict[str, object]:
    return {
        "fuse": variant.fused.digest,
        "plan_memory": variant.plan.digest,
        "codegen_main": variant.main.content.digest,
        "link": variant.image.digest,
        "kernels": _kernel_digests(variant.kernels),
    }


def _kernel_digests(kernels: Sequence[KernelObject]) -> dict[str, str]:
    return {kernel.symbol: kernel.content.digest for kernel in kernels}


def _debug(inputs: BundleInputs, names: Names) -> dict[str, object]:
    """What every stage did, for people: no bit of a result depends on it."""
    from ingot_build_rules.making.report.fusion_report import describe_memory, describe_refusals
    from ingot_build_rules.making.report.launch_report import name_messages

    variants = inputs.variants
    messages = (text for variant in variants for text in variant.main.messages)
    return {
        "launches": {variant.target: _launches(inputs, variant, names) for variant in variants},
        **_versions(inputs, names),
        **_placement(inputs, names),
        "programs": _programs(inputs),
        "refusals": describe_refusals(inputs.optimized.value().refusals, names),
        "messages": name_messages(messages, names),
        "memory": {variant.target: describe_memory(variant.plan.value()) for variant in variants},
    }


def _versions(inputs: BundleInputs, names: Names) -> dict[str, object]:
    """For which sizes each version is, where there are several."""
    from ingot_build_rules.making.report.version_report import describe_versions
    from ingot_compiler.lowering.groups.expand_groups import expand_groups

    if not inputs.profiles:
        return {}
    found = {
        variant.target: describe_versions(
            expand_groups(variant.fused.value(), variant.steps), names
        )
        for variant in inputs.variants
    }
    return {"versions": found}


def _placement(inputs: BundleInputs, shown_names: Names) -> dict[str, object]:
    """Where every value of each version lives and why, the general version first; nothing where
    there is the host alone."""
    from ingot_build_rules.making.report.placement_report import describe_devices, describe_values

    if not inputs.options.devices:
        return {}
    names, globs = inputs.names.value(), inputs.options.place
    return {
        "placement": [
            {
                **describe_devices(placed.value(), profile, names),
                "values": describe_values(placed.value(), names, shown_names, globs),
                "outputs": list(placed.value().graph.outputs),
            }
            for profile, placed in zip(
                ((), *inputs.profiles), (inputs.placed, *inputs.specialisations), strict=True
            )
        ]
    }


def _programs(inputs: BundleInputs) -> dict[str, dict[str, bytes]]:
    """What each kernel was made from, by target and symbol, as ``loop_record`` reads it; stripped,
    nothing."""
    from ingot_compiler.lowering.groups.expand_groups import expand_groups
    from ingot_compiler.lowering.groups.fused import launches_of

    found: dict[str, dict[str, bytes]] = {}
    if inputs.options.choices.strip:
        return found
    for variant in inputs.variants:
        targets = (variant.target, *(device.target for device in inputs.options.devices))
        for launch in launches_of(expand_groups(variant.fused.value(), variant.steps)):
            programs = found.setdefault(targets[launch.group.device], {})
            symbol = variant.symbols[launch.program]
            if symbol not in programs:
                programs[symbol] = variant.programs[launch.program].encoded()
    return found


def _launches(inputs: BundleInputs, variant: Variant, names: Names) -> list[object]:
    from ingot_build_rules.making.report.fusion_report import (
        ModelVersion,
        describe_fusion,
        with_fusion,
    )
    from ingot_build_rules.making.report.launch_report import describe_launches
    from ingot_compiler.ir.specialise import specialise
    from ingot_compiler.lowering.groups.expand_groups import expand_groups

    graph, fused = inputs.graph.value(), expand_groups(variant.fused.value(), variant.steps)
    versions = [ModelVersion(graph, inputs.placed.value().graph)]
    for profile, placed in zip(inputs.profiles, inputs.specialisations, strict=True):
        versions.append(ModelVersion(specialise(graph, profile), placed.value().graph))
    launches = describe_launches(fused, variant.symbols, names)
    return with_fusion(launches, describe_fusion(fused, versions, names))


BUNDLE = Rule(
    "bundle",
    1,
    (
        "names", "interface", "graph", "optimized", "placed", "specialisations", "profiles", "options",
        "variants", "libraries", "device_libraries", "alternatives", "ranges", "packed", "tree", "weights_bytes", "weights",
        "toolchain", "defaults",
    ),
    _compute,
)  # fmt: skip
