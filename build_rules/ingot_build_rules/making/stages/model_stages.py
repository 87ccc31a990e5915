"""The stages that a model has once, import to placement, each asked for when it is first needed.

In: a model's source, options, a ``Build``. Out: ``ModelStages``. Not done here: any stage's own
work (one rule each), what there is for each target (``target_stages``), the bundle
(``compilation``).
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.engine.actions.rule import AnyRule, Inputs, Output, Rule
from ingot_build_rules.making.options.compile_options import AUTO, CompileOptions
from ingot_build_rules.making.options.device_table import DeviceTable
from ingot_build_rules.making.options.memory_limit import MemoryLimit
from ingot_build_rules.making.options.op_option import OpOption
from ingot_build_rules.making.rules.claim import CLAIM, ClaimInputs
from ingot_build_rules.making.rules.import_model import IMPORT_MODEL, Imported, ImportInputs
from ingot_build_rules.making.rules.infer_types import INFER_TYPES, InferInputs, TypedGraph
from ingot_build_rules.making.rules.optimize import OPTIMIZE, OptimizeInputs
from ingot_build_rules.making.rules.place import PLACE, PlaceInputs
from ingot_build_rules.making.rules.rewrite import REWRITE, RewriteInputs
from ingot_build_rules.making.stages.model_source import ModelSource
from ingot_build_rules.making.stages.placing_option import with_placing_option
from ingot_build_rules.making.stages.plugin_table import OF_PLUGINS, PluginTable
from ingot_compiler.ir.errors import LimitError, UnsupportedError
from ingot_compiler.ir.in_names import error_in_names, refers, text_in_names
from ingot_compiler.ir.sizes.profile import named_profile
from ingot_compiler.ir.value_forms import of_tensors
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Graph, Names, OptimizedGraph
    from ingot_compiler.placement.placed import PlacedGraph

Value = TypeVar("Value")


class ModelStages:
    """Stages 2 to 5 of one compilation, and how every stage is asked for."""

    def __init__(
        self,
        build: Build,
        source: ModelSource,
        options: CompileOptions,
        max_bytes: int | None = None,
    ) -> None:
        """Ask for nothing yet."""
        self.build = build
        self.options = options
        self.limit = MemoryLimit(max_bytes)
        self.devices = DeviceTable(options.devices)
        self.plugins = PluginTable(options.plugins)
        self.plugin_actions: list[tuple[AnyRule, Any, Any]] = []
        self._source = source
        self._made: dict[str, Any] = {}

    async def imported(self) -> Imported:
        """Stage 2, its names and weights."""
        return await self.once("imported", self._import)

    async def source_paths(self) -> tuple[str, ...]:
        """The model's file, and those beside it that import has read; none for a model that came as
        bytes."""
        path = self._source.path
        beside = (await self.imported()).external
        return (
            (path, *(os.path.join(os.path.dirname(path), name) for name in beside)) if path else ()
        )

    async def names(self) -> Names:
        """What the user called things."""
        return await self.build.value((await self.imported()).names)

    async def full_names(self) -> Artifact[Names]:
        """The names of the model's tensors, where each tensor that an output is made of has a
        name."""
        names, forms = (await self.imported()).names, (await self.typed()).forms
        if not forms:
            return names
        return self.build.keep(of_tensors(await self.build.value(names), forms))

    async def graph(self) -> Artifact[Graph]:
        """Stage 3."""
        return (await self.typed()).graph

    async def typed(self) -> TypedGraph:
        """Stage 3, and what the model's file says wrongly of it."""
        imported = await self.imported()
        ops, files = self._op_files([each for each in self.options.ops if each.is_program])
        inputs = InferInputs(imported.model, imported.weights, ops, files)
        return await self.need(INFER_TYPES, inputs)

    async def optimized(self) -> Artifact[OptimizedGraph]:
        """Stage 4."""
        return await self.once("optimized", self._optimize)

    async def placed(self) -> Artifact[PlacedGraph]:
        """Stage 5."""
        return await self.once("placed", self._place)

    async def specialisations(self) -> tuple[Artifact[PlacedGraph], ...]:
        """Stage 5 once more for each profile of ``--shape``."""
        return await self.once("specialisations", self._place_specialisations)

    async def need(self, rule: Rule[Inputs, Output], inputs: Inputs, label: str = "") -> Output:
        """Return one rule's result."""
        return (await self.need_all(rule, (inputs,), (label,)))[0]

    async def need_all(
        self, rule: Rule[Inputs, Output], inputs: Sequence[Inputs], labels: Sequence[str] = ()
    ) -> tuple[Output, ...]:
        """Return a rule's results; stages after import refer to nodes by ordinal, their errors get
        the names here."""
        try:
            results = await self.build.need_all(rule, inputs, labels)
            if rule.name in OF_PLUGINS:
                self.plugin_actions += [(rule, *pair) for pair in zip(inputs, results, strict=True)]
            return results
        except IngotError as error:
            if isinstance(error, LimitError) and not error.where:
                raise error.at(next(filter(None, labels), rule.name)) from error
            if refers(error):
                raise error_in_names(error, await self.names()) from error
            raise

    async def once(self, name: str, make: Callable[[], Awaitable[Value]]) -> Value:
        """Return what ``make`` gave when ``name`` was first asked for."""
        if name not in self._made:
            self._made[name] = await make()
        return cast("Value", self._made[name])

    async def _import(self) -> Imported:
        source, options = self._source, self.options
        content = None if source.path else self.build.keep_bytes(source.content)
        inputs = ImportInputs(
            source.digest, options.shapes, options.place, source.name, source.path, source.state,
            content, self.limit.max_bytes, options.choices.strict_dims, *self._op_files(options.ops),
        )  # fmt: skip
        imported = await self.build.need(IMPORT_MODEL, inputs)
        if self.limit.max_bytes is not None:
            expanded_bytes = (await self.build.value(imported.model)).expanded_bytes
            what = "the expansion of the model's own functions"
            self.limit.check(expanded_bytes, what, f"model {source.name!r}")
        return imported

    def _op_files(
        self, options: Sequence[OpOption]
    ) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, Artifact[memoryview]], ...]]:
        """The user's ops with the digests of their files, and these."""
        ops = tuple((option.op, option.digest) for option in options)
        kept = tuple((option.file, self.build.keep_bytes(option.content)) for option in options)
        return ops, kept

    async def _optimize(self) -> Artifact[OptimizedGraph]:
        optimized = await self.need(OPTIMIZE, OptimizeInputs(await self.graph()))
        return (await self._rewritten((optimized,)))[0]

    async def _place(self) -> Artifact[PlacedGraph]:
        return (await self._place_all((await self.optimized(),)))[0]

    async def _place_all(
        self, optimized: Sequence[Artifact[OptimizedGraph]], labels: Sequence[str] = ()
    ) -> tuple[Artifact[PlacedGraph], ...]:
        try:
            inputs = list(map(self._place_inputs, optimized))
            return await self._claimed(await self.need_all(PLACE, inputs, labels), labels)
        except UnsupportedError as error:
            raise with_placing_option(error, await self.names(), self.options.place) from error

    def _place_inputs(self, optimized: Artifact[OptimizedGraph]) -> PlaceInputs:
        devices, options = self.devices, self.options
        is_auto = any(device == AUTO for _, device in options.place)
        return PlaceInputs(
            optimized,
            devices.declared(),
            devices.refusals(),
            devices.targets("")[1:],
            devices.costs() if is_auto and devices.others else (),
            devices.product_shares() if is_auto and devices.others else (),
            options.choices.fallback,
        )

    async def _rewritten(
        self, optimized: Sequence[Artifact[OptimizedGraph]], labels: Sequence[str] = ()
    ) -> tuple[Artifact[OptimizedGraph], ...]:
        """What plug-ins make of graphs before these are placed."""
        passes = self.plugins.passes()
        if not passes:
            return tuple(optimized)
        hooks, settings = zip(*passes, strict=True)
        inputs = [RewriteInputs(each, hooks, settings) for each in optimized]
        return await self.need_all(REWRITE, inputs, labels)

    async def _claimed(
        self, placed: Sequence[Artifact[PlacedGraph]], labels: Sequence[str] = ()
    ) -> tuple[Artifact[PlacedGraph], ...]:
        """Placed graphs with the composites of plug-ins."""
        claimers = self.plugins.claimers()
        if not claimers:
            return tuple(placed)
        hooks, settings = zip(*claimers, strict=True)
        inputs = [ClaimInputs(each, hooks, settings) for each in placed]
        return await self.need_all(CLAIM, inputs, labels)

    async def _place_specialisations(self) -> tuple[Artifact[PlacedGraph], ...]:
        typed = await self.typed()
        profiles, graph = typed.profiles, typed.graph
        if not profiles:
            return ()
        names = await self.names()
        labels = [text_in_names(named_profile(profile), names) for profile in profiles]
        inputs = [OptimizeInputs(graph, profile) for profile in profiles]
        optimized = await self._rewritten(await self.need_all(OPTIMIZE, inputs, labels), labels)
        return await self._place_all(optimized, labels)
