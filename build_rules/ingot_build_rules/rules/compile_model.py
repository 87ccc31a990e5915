"""The chain of rules from a model to a bundle: who asks for what, lazily, so that ``--to`` stops early.

In: a model, options. Out: ``CompiledModel``: every stage, the bundle. Not done here: any stage's own work (one rule each).
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Sequence

from ingot_build_rules.engine.content import digest
from ingot_build_rules.engine.naive import Build, Observer
from ingot_build_rules.engine.rule import Inputs, Output, Rule
from ingot_build_rules.rules import bundle, stage_text
from ingot_build_rules.rules.codegen import CODEGEN, CodegenInputs, KernelObject
from ingot_build_rules.rules.codegen_main import CODEGEN_MAIN, MainInputs, MainObject
from ingot_build_rules.rules.codegen_support import CODEGEN_SUPPORT, SupportInputs
from ingot_build_rules.rules.constant_store import ConstantStore
from ingot_build_rules.rules.fuse import FUSE, FuseInputs
from ingot_build_rules.rules.fusion_report import Way, describe_fusion, describe_memory, describe_refusals, with_fusion
from ingot_build_rules.rules.import_model import IMPORT_MODEL, ImportInputs
from ingot_build_rules.rules.infer_types import INFER_TYPES, InferInputs
from ingot_build_rules.rules.interface import Interface, make_interface
from ingot_build_rules.rules.link import LINK, LinkInputs
from ingot_build_rules.rules.lower import LOWER, LowerInputs
from ingot_build_rules.rules.model_source import Model, open_model
from ingot_build_rules.rules.names import NAMES
from ingot_build_rules.rules.optimize import OPTIMIZE, OptimizeInputs
from ingot_build_rules.rules.options import HOST, CompileOptions
from ingot_build_rules.rules.output_file import check_output
from ingot_build_rules.rules.place import PLACE, PlaceInputs
from ingot_build_rules.rules.plan_memory import PLAN_MEMORY, PlanInputs
from ingot_build_rules.rules.registry import RULES
from ingot_build_rules.rules.variant import Variant, describe_launches, record_programs, variant_image
from ingot_build_rules.rules.weight_layout import WeightLayout, lay_out
from ingot_compiler.frontend.imported import ImportedModel
from ingot_compiler.frontend.name_nodes import name_nodes
from ingot_compiler.ir.errors import IngotError
from ingot_compiler.ir.graph import Graph, Names, OptimizedGraph
from ingot_compiler.ir.specialise import specialise
from ingot_compiler.lowering.alternatives import with_special
from ingot_compiler.lowering.fused import FusedGraph, Group, groups_of
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.lowering.plan_memory import MemoryPlan
from ingot_compiler.placement.place import PlacedGraph
from ingot_compiler.placement.virtual_device import HOST_TYPE, DeclaredDevice, VirtualDevice

HOST_ALONE = (DeclaredDevice(HOST, VirtualDevice(HOST_TYPE, 0)),)


class CompiledModel:
    """All stages of one compilation; each is made when it is first asked for."""

    def __init__(self, model: Model, options: CompileOptions, workers: int, observer: Observer | None) -> None:
        """Open the model; nothing is parsed yet."""
        self.options = options
        self.workers = workers
        self._build = Build(RULES, observer)
        self._store = ConstantStore()
        self._opened = open_model(model)

    @functools.cached_property
    def names(self) -> Names:
        """What the user called things."""
        return self._build.need(NAMES, self._import_inputs)

    @functools.cached_property
    def imported(self) -> ImportedModel:
        """Stage 2."""
        return self._build.need(IMPORT_MODEL, self._import_inputs).model

    @functools.cached_property
    def graph(self) -> Graph:
        """Stage 3."""
        return self.need(INFER_TYPES, InferInputs(self.imported, self._store.read))

    @functools.cached_property
    def optimized(self) -> OptimizedGraph:
        """Stage 4."""
        return self.need(OPTIMIZE, OptimizeInputs(self.graph))

    @functools.cached_property
    def placed(self) -> PlacedGraph:
        """Stage 5."""
        return self.need(PLACE, PlaceInputs(self.optimized, HOST_ALONE))

    @functools.cached_property
    def special(self) -> PlacedGraph | None:
        """Stage 5 once more, for the sizes of ``--shape``; None without them."""
        sizes = dict(self.imported.sizes)
        if not sizes:
            return None
        optimized = self.need(OPTIMIZE, OptimizeInputs(specialise(self.graph, sizes)))
        return self.need(PLACE, PlaceInputs(optimized, HOST_ALONE))

    @functools.cached_property
    def target_builds(self) -> tuple[TargetBuild, ...]:
        """Stages 6 to 10, for each target in the order of their names."""
        return tuple(TargetBuild(self, position) for position in range(len(self.options.targets)))

    @functools.cached_property
    def layout(self) -> WeightLayout:
        """Where every constant of every variant lies."""
        return lay_out([build.fused for build in self.target_builds], digest)

    @functools.cached_property
    def interface(self) -> Interface:
        """Inputs and outputs with the user's names."""
        fused = self.target_builds[0].fused
        return make_interface(fused.inputs, fused.outputs, self.names)

    @functools.cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Stage 10 of every target."""
        return tuple(build.variant for build in self.target_builds)

    def save(self, path: str) -> str:
        """Write the bundle; return its root digest, 64 hex digits.

        Raises:
            UserError: a bad place for the file. BuildError: no space. Every error of every stage.
        """
        check_output(path)
        return self.need(bundle.BUNDLE, self._bundle_inputs(path))

    def need(self, rule: Rule[Inputs, Output], inputs: Inputs) -> Output:
        """Return one rule's result."""
        return self.need_all(rule, (inputs,))[0]

    def need_all(self, rule: Rule[Inputs, Output], inputs: Sequence[Inputs]) -> tuple[Output, ...]:
        """Return a rule's results; stages after import know nodes by ordinal alone, their errors get the names here."""
        try:
            return self._build.need_all(rule, inputs)
        except IngotError as error:
            raise name_nodes(error, self.names) from error

    def read_constant(self, digest: str) -> memoryview:
        """Return the bytes of one of the model's constants."""
        return self._store.read(digest)

    def make(self) -> None:
        """Make everything but the file, so that errors of the model come now."""
        assert self.variants

    def to_bytes(self) -> bytes:
        """Return the bundle's bytes."""
        with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
            path = os.path.join(folder, "bundle.ingot")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    def summary(self) -> dict[str, object]:
        """Return what a report tells: targets, kernels, launches, bytes of weights and workspace per target."""
        return {
            "model": self.names.model,
            "targets": [str(variant.target) for variant in self.variants],
            "kernels": {str(variant.target): len(variant.kernels) for variant in self.variants},
            "launches": {str(variant.target): len(variant.programs) for variant in self.variants},
            "weights_bytes": self.layout.size_bytes,
            "workspace_bytes": {str(variant.target): variant.plan.pool_bytes for variant in self.variants},
        }

    def text(self, stage: str) -> str:
        """Return the text view of a stage of ``stages.STAGES``."""
        return stage_text.STAGE_TEXTS[stage](self)

    def counts(self) -> dict[str, dict[str, int]]:
        """How often each rule ran and how often its result was there already."""
        return {name: {"ran": count.ran, "hit": count.hit} for name, count in self._build.counts.items()}

    def seconds(self) -> dict[str, float]:
        """Seconds in each rule, with those of the rules that it asked for."""
        return {name: count.seconds for name, count in self._build.counts.items() if count.ran}

    @functools.cached_property
    def _import_inputs(self) -> ImportInputs:
        return ImportInputs(self._opened.source, self.options.shapes, self.options.place, self._opened, self._store)

    def _bundle_inputs(self, path: str) -> bundle.BundleInputs:
        return bundle.BundleInputs(
            names=self.names,
            interface=self.interface,
            graph=self.graph,
            options=self.options,
            images=tuple(map(variant_image, self.variants, self.layout.ranges)),
            launches=tuple((str(variant.target), self._launches(variant)) for variant in self.variants),
            programs=tuple((str(variant.target), record_programs(variant)) for variant in self.variants),
            report={
                "refusals": describe_refusals(self.optimized.refusals, self.names),
                "memory": {str(variant.target): describe_memory(variant.plan) for variant in self.variants},
            },
            layout=self.layout,
            read=self._store.read,
            path=path,
        )

    def _launches(self, variant: Variant) -> list[object]:
        ways = [Way(self.graph, self.placed.graph)]
        if self.special is not None:
            ways.append(Way(specialise(self.graph, dict(self.imported.sizes)), self.special.graph))
        return with_fusion(describe_launches(variant, self.names), describe_fusion(variant.fused, ways, self.names))


class TargetBuild:
    """Stages 6 to 10 of one compilation for one target."""

    def __init__(self, compiled: CompiledModel, position: int) -> None:
        """Take the target at ``position`` of the options."""
        self.target = compiled.options.targets[position]
        self._compiled = compiled
        self._position = position

    @functools.cached_property
    def fused(self) -> FusedGraph:
        """Stage 6; with ``--shape``, the special way beside the general one."""
        compiled = self._compiled
        general = compiled.need(FUSE, FuseInputs(compiled.placed, self.target))
        if compiled.special is None:
            return general
        special = compiled.need(FUSE, FuseInputs(compiled.special, self.target))
        return with_special(general, special, compiled.imported.sizes)

    @functools.cached_property
    def groups(self) -> tuple[Group, ...]:
        """The steps that are kernels, in order."""
        return groups_of(self.fused)

    @functools.cached_property
    def programs(self) -> tuple[LoopProgram, ...]:
        """Stage 7, one per group."""
        return self._compiled.need_all(LOWER, [LowerInputs(group, self.target) for group in self.groups])

    @functools.cached_property
    def plan(self) -> MemoryPlan:
        """Stage 8."""
        return self._compiled.need(PLAN_MEMORY, PlanInputs(self.fused, self._compiled.options.planner))

    @functools.cached_property
    def kernels(self) -> tuple[KernelObject, ...]:
        """Stage 9 before linking: one per group; equal kernels are the same object."""
        workers = self._compiled.workers
        return self._compiled.need_all(
            CODEGEN, [CodegenInputs(program, self.target, workers) for program in self.programs]
        )

    @functools.cached_property
    def variant(self) -> Variant:
        """Stage 10: the image and all that it was made from."""
        kernels = tuple({kernel.symbol: kernel for kernel in self.kernels}.values())
        numbers = {kernel.symbol: index for index, kernel in enumerate(kernels)}
        indices = tuple(numbers[kernel.symbol] for kernel in self.kernels)
        main = self._main(tuple(numbers), indices)
        support = self._compiled.need(CODEGEN_SUPPORT, SupportInputs(self.target))
        objects = tuple((kernel.symbol, kernel.content) for kernel in kernels)
        image = self._compiled.need(LINK, LinkInputs(objects, main.content, support, self.target))
        return Variant(self.target, self.fused, self.programs, kernels, indices, self.plan, main, image)

    def _main(self, symbols: tuple[str, ...], indices: tuple[int, ...]) -> MainObject:
        layout = self._compiled.layout
        inputs, outputs = self._compiled.interface.signatures()
        return self._compiled.need(
            CODEGEN_MAIN,
            MainInputs(
                fused=self.fused,
                programs=self.programs,
                kernel_indices=indices,
                symbols=symbols,
                plan=self.plan,
                constant_offsets=layout.offsets_bytes[self._position],
                weights_bytes=layout.size_bytes,
                inputs=inputs,
                outputs=outputs,
                device_count=1,
                target=self.target,
            ),
        )


def compile_model(
    model: Model, options: CompileOptions, workers: int = 1, observer: Observer | None = None
) -> CompiledModel:
    """Start a compilation of ``model``, by at most ``workers`` processes; the bundle does not depend on their number.

    Raises:
        UserError: the file is not there or not readable.
    """
    return CompiledModel(model, options, workers, observer)
