"""A compilation that begins with the text of a stage instead of a model: ``--from graph`` and
``--from placed``.

In: the text, options, weights. Out: ``TextCompilation``. Not done here: loops, which are no whole
model (``text.loops_file``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.configure import configure, device_options
from ingot_build_rules.making.rules.bundle import BundleParts
from ingot_build_rules.making.rules.import_model import Imported
from ingot_build_rules.making.rules.infer_types import TypedGraph
from ingot_build_rules.making.stages.compilation import Compilation
from ingot_build_rules.making.stages.model_source import ModelSource
from ingot_build_rules.making.stages.stage_names import names_of
from ingot_build_rules.making.stages.stage_weights import StageWeights, check_weights
from ingot_build_rules.making.stages.toolchain import Toolchain
from ingot_build_rules.making.values.model_file import opened_model
from ingot_compiler.frontend.model.imported import ImportedModel
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph, OptimizedGraph
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.placement.parse_placed import parse_placed
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_runtime.option_ref import OptionRef


def read_text(path: str) -> str:
    """Return the text of a stage.

    Raises:
        UserError: no such file. ModelError: it is no text.
    """
    with opened_model(path) as file:
        content = file.read()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ModelError(
            "not a text",
            path,
            f"expected UTF-8, got another byte at {error.start}",
            ("give a file that ", OptionRef("to"), " wrote"),
        ) from None


class TextCompilation(Compilation):
    """The chain of rules from stage 3 or 5 on; what a text does not say (names, weights) is in the
    file beside it."""

    def __init__(
        self,
        build: Build,
        stage: Graph | PlacedGraph,
        options: CompileOptions,
        toolchain: Toolchain,
        given: StageWeights,
        files: tuple[str, ...],
        max_bytes: int | None = None,
    ) -> None:
        """Ask for nothing yet; ``files``: the text's, perhaps that of its weights.

        Raises:
            UserError: names or weights of another graph. ModelError: constants without numbers.
        """
        path = files[0]
        super().__init__(build, ModelSource("", path), options, toolchain, max_bytes)
        self._stage_graph = stage.graph if isinstance(stage, PlacedGraph) else stage
        self._given, self._path, self._files = given, path, files
        names = names_of(self._stage_graph, given, path)
        if given.weights:
            check_weights(self._stage_graph, given.weights, path)
        missing = [b""] * (len(names.weights) - len(given.weights))
        weights = tuple(map(build.keep_bytes, (*given.weights, *missing)))
        self._imported = Imported(
            build.keep(ImportedModel((), (), (), (), (), ())), build.keep(names), weights
        )
        self._typed = TypedGraph(build.keep(self._stage_graph), build.keep(()))
        self._placed = build.keep(stage) if isinstance(stage, PlacedGraph) else None

    async def imported(self) -> Imported:
        """Names and weights; there is no model."""
        return self._imported

    async def source_paths(self) -> tuple[str, ...]:
        """The text's file, and that of its weights where it is known."""
        return self._files

    async def typed(self) -> TypedGraph:
        """Stage 3: the text's; that of a placed graph has its copies."""
        return self._typed

    async def optimized(self) -> Artifact[OptimizedGraph]:
        """Stage 4; a placed graph is one already."""
        if self._placed is None:
            return await super().optimized()
        return self.build.keep(OptimizedGraph(self._stage_graph))

    async def placed(self) -> Artifact[PlacedGraph]:
        """Stage 5."""
        return self._placed or await super().placed()

    async def _bundle(self) -> BundleParts:
        check_weights(self._stage_graph, self._given.weights, self._path)
        return await super()._bundle()


def read_stage(stage: str, path: str) -> Graph | PlacedGraph:
    """Read the text of a graph or a placed graph.

    Raises:
        UserError: no such file. ModelError: it does not parse, or is not valid; says line, column
            and rule.
    """
    return parse_graph(read_text(path)) if stage == "graph" else parse_placed(read_text(path))


def placed_options(placed: PlacedGraph, options: CompileOptions) -> CompileOptions:
    """The options with the devices of a placed graph's own table.

    Raises:
        UserError, UnsupportedError: there is no code for one of them.
    """
    texts = {item.name: device_text(item.device) for item in placed.devices[1:]}
    return replace(options, devices=device_options(configure(options.targets, texts)))


def device_text(device: VirtualDevice) -> str:
    """A device as ``--device`` says it behind the name."""
    parts = [f"{device.device_type}:{max(device.id, 0)}"]
    parts += [f"target={device.target.partition(':')[2]}"] if device.target else []
    parts += [f"scope={device.memory_scope}"] if device.memory_scope else []
    return ",".join(parts)
