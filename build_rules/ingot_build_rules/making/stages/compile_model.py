"""One compilation in the order of a program: a model goes in, every stage can be looked at, a
bundle comes out.

In: a model, options, a ``Build``. Out: ``CompiledModel``. Not done here: the chain of rules
(``compilation``), the texts of stages (``text.stage_text``).
"""

from __future__ import annotations

import os
import tempfile
from functools import cached_property

from ingot_artifacts.store.atomic import sync_folders
from ingot_build_rules.engine.actions.naive import NaiveBuild, Observer
from ingot_build_rules.engine.cache.file_digests import file_digest
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.plugins import with_plugins
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_build_rules.making.rules.variant import Variant
from ingot_build_rules.making.stages.bundle_file import write_bundle_file
from ingot_build_rules.making.stages.compilation import Compilation
from ingot_build_rules.making.stages.describe_placement import describe_placement
from ingot_build_rules.making.stages.model_source import Model, open_model
from ingot_build_rules.making.stages.output_file import check_output
from ingot_build_rules.making.stages.target_build import TargetBuild
from ingot_build_rules.making.stages.toolchain import toolchain
from ingot_build_rules.making.stages.weight_layout import WeightLayout
from ingot_build_rules.making.values.interface import Interface
from ingot_compiler.frontend.model.imported import ImportedModel
from ingot_compiler.ir.graph import Graph, Names, OptimizedGraph
from ingot_compiler.lowering.groups.group_steps import launch_count
from ingot_compiler.placement.placed import PlacedGraph


class CompiledModel:
    """All stages of one compilation; each is made when it is first asked for."""

    def __init__(self, compilation: Compilation) -> None:
        """Nothing is parsed yet."""
        self.compilation = compilation
        self.options = compilation.options
        self._run = compilation.build.run

    @cached_property
    def names(self) -> Names:
        """What the user called things."""
        return self._run(self.compilation.names())

    @cached_property
    def imported(self) -> ImportedModel:
        """Stage 2."""
        return self._run(self.compilation.imported()).model.value()

    @cached_property
    def graph(self) -> Graph:
        """Stage 3."""
        return self._run(self.compilation.graph()).value()

    @cached_property
    def optimized(self) -> OptimizedGraph:
        """Stage 4."""
        return self._run(self.compilation.optimized()).value()

    @cached_property
    def placed(self) -> PlacedGraph:
        """Stage 5."""
        return self._run(self.compilation.placed()).value()

    @cached_property
    def specialisations(self) -> tuple[PlacedGraph, ...]:
        """Stage 5 once more for each profile of ``--shape``."""
        return tuple(each.value() for each in self._run(self.compilation.specialisations()))

    @cached_property
    def target_builds(self) -> tuple[TargetBuild, ...]:
        """Stages 6 to 10, for each target in the order of their names."""
        return tuple(TargetBuild(self.compilation, each) for each in self.compilation.targets)

    @cached_property
    def layout(self) -> WeightLayout:
        """Where every constant of every variant lies."""
        return self._run(self.compilation.layout())

    @cached_property
    def interface(self) -> Interface:
        """Inputs and outputs with the user's names."""
        return self._run(self.compilation.interface())

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Stage 10 of every target."""
        return self._run(self.compilation.variants())

    @cached_property
    def kernel_counts(self) -> tuple[int, ...]:
        """For each device beside the host, how many kernels its library has."""
        return self._run(self.compilation.kernel_counts())

    def save(self, path: str) -> str:
        """Write the bundle, and wait until it is on the disk; return its root digest, 64 hex
        digits.

        Raises:
            UserError: a bad place for the file. BuildError: no space. Every error of every stage.
        """
        check_output(path)
        self._run(write_bundle_file(self.compilation, path))
        sync_folders([os.path.dirname(os.path.abspath(path))])
        return self._run(self.compilation.bundle_parts()).root

    def read_constant(self, weight: str) -> memoryview:
        """Return the bytes of one of the model's constants, by its number."""
        return self._run(self.compilation.imported()).weights[int(weight)].value()

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
        """Return what a report tells: bytes of weights; where nodes run, if there is more than the
        host; of each variant its kernels, launches and planned workspace, where open dimensions
        count as 64."""
        return {
            "model": self.names.model,
            "weights_bytes": self.layout.size_bytes,
            "placement": self._run(describe_placement(self.compilation)),
            "variants": [
                {
                    "target": variant.target,
                    "kernel_count": len(variant.kernels),
                    "launch_count": launch_count(variant.steps),
                    "planned_bytes": sum(pool.size_bytes for pool in variant.plan.value().pools),
                    "fixed": all(pool.is_fixed for pool in variant.plan.value().pools),
                }
                for variant in self.variants
            ],
        }

    def counts(self) -> dict[str, dict[str, int]]:
        """How often each rule ran and how often its result was there already."""
        counts = self.compilation.build.counts
        return {name: {"ran": count.ran, "hit": count.hit} for name, count in counts.items()}

    def seconds(self) -> dict[str, float]:
        """Seconds in each rule that ran."""
        return {
            name: count.seconds
            for name, count in self.compilation.build.counts.items()
            if count.ran
        }


def compile_model(
    model: Model, options: CompileOptions, observer: Observer | None = None
) -> CompiledModel:
    """Start a compilation of ``model`` in memory, without cache and processes.

    Raises:
        UserError: the file is not there or not readable.
    """
    build = NaiveBuild(with_plugins(RULEBOOK, options.plugins), observer)
    source = open_model(model, file_digest)
    return CompiledModel(Compilation(build, source, options, toolchain()))
