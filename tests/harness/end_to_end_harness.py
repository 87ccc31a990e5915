"""From a small ONNX model to a saved bundle to its outputs, in every way of running.

In: nodes, inputs, constants, arrays. Out: the outputs; differences are assertions. Not done here:
kernels on their own (``test_lowering``), the command line (``test_cli``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.c_loader import CBundle, find_opencl, options
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import assert_close

import ingot
import ingot_runtime
from ingot_build_rules.engine.actions.naive import NaiveBuild
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.rules.import_model import Imported
from ingot_build_rules.making.rules.infer_types import TypedGraph
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_build_rules.making.stages.compilation import Compilation
from ingot_build_rules.making.stages.compile_model import CompiledModel
from ingot_build_rules.making.stages.model_source import ModelSource
from ingot_compiler.frontend.model.imported import ImportedModel
from ingot_compiler.ir.graph import Graph, Names
from ingot_compiler.ir.sizes.profile import Profile
from ingot_runtime.executor.session import Session

Feed = Mapping[str, Array]
WAYS = ((1, "aot"), (2, "aot"), (1, "vm"), (2, "vm"))  # threads, executor
OPSET = 20


def tensor(
    name: str, shape: Sequence[int | str] | None, dtype: int = TensorProto.FLOAT
) -> ValueInfoProto:
    """A graph input or output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def make_model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Mapping[str, Array] | None = None,
) -> ModelProto:
    """A model of one graph."""
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node; names are separated by blanks, "-" is an absent input."""
    return helper.make_node(
        op, ["" if name == "-" else name for name in inputs.split()], outputs.split(), **attributes
    )


def assert_same_bits(left: Mapping[str, Array], right: Mapping[str, Array]) -> None:
    """Equal to the last bit, NaN included."""
    assert list(left) == list(right)
    for name, array in left.items():
        assert (array.shape, array.dtype) == (right[name].shape, right[name].dtype)
        assert array.tobytes() == right[name].tobytes(), name


def run_all_ways(path: Path, feeds: Sequence[Feed]) -> list[dict[str, Array]]:
    """The outputs for each feed, bit-equal for 1 and 2 threads, native and stepped, in one session
    or a fresh one, by the loader in C where it has the devices."""
    sessions = [
        ingot_runtime.load(path, threads=threads, executor=executor) for threads, executor in WAYS
    ]
    results: list[dict[str, Array]] = []
    kinds = {device.partition(":")[0] for device in sessions[0].devices.values()}
    if "opencl" in kinds:
        find_opencl()
    # In C, values are the tensors in them; what stands in for NVIDIA's driver is a module of Python.
    is_in_c = sessions[0].loaded.plan.values is None and "cuda" not in kinds
    in_c = CBundle(path, options(threads=2)) if is_in_c else None
    for feed in feeds:
        before = {name: array.tobytes() for name, array in feed.items()}
        first, *others = [dict(session.run(dict(feed))) for session in sessions]
        for other in others:
            assert_same_bits(first, other)
        assert_same_bits(first, sessions[0].run(dict(feed)))
        if in_c is not None:
            assert_same_bits(first, in_c.run(feed))
        assert {name: array.tobytes() for name, array in feed.items()} == before, (
            "a call changed its inputs"
        )
        results.append(first)
    assert_same_bits(results[0], _fresh(path).run(dict(feeds[0])))
    if in_c is not None:
        in_c.close()
    return results


def _fresh(path: Path) -> Session:
    return ingot_runtime.load(path)


def reference(model: ModelProto, feed: Feed) -> dict[str, Array]:
    """What ONNX's own reference gives."""
    names = [output.name for output in model.graph.output]
    with np.errstate(all="ignore"):
        results: Any = ReferenceEvaluator(model).run(None, dict(feed))  # pyright: ignore[reportUnknownMemberType]  # half typed
    return {name: np.asarray(result) for name, result in zip(names, results, strict=True)}


def check_model(
    model: ModelProto,
    feeds: Sequence[Feed],
    folder: Path,
    relative: float = 1e-5,
    targets: Sequence[str] = ("native",),
    floor: float = 0.0,
) -> list[dict[str, Array]]:
    """Compile, save, load, run in every way, compare with ONNX's reference; return the outputs."""
    path = folder / "model.ingot"
    ingot.compile(model, targets=targets).save(path)
    results = run_all_ways(path, feeds)
    for feed, result in zip(feeds, results, strict=True):
        expected = reference(model, feed)
        assert list(result) == list(expected)
        for name, array in expected.items():
            assert_close(array, result[name], relative, floor)
    return results


class _GraphCompilation(Compilation):
    """A chain of rules whose first stages are given."""

    def __init__(
        self, graph: Graph, constants: Sequence[bytes], profiles: Sequence[Profile]
    ) -> None:
        build = NaiveBuild(RULEBOOK)
        super().__init__(build, ModelSource("", ""), make_options(), ())
        inputs = tuple(f"x{index}" for index in range(len(graph.inputs)))
        outputs = tuple(f"y{index}" for index in range(len(graph.outputs)))
        keep = build.keep
        self._typed = TypedGraph(keep(graph), keep(()), tuple(profiles))
        model = ImportedModel((), (), (), (), (), (), tuple(profiles))
        names = Names("graph", inputs, outputs, (), ())
        weights = tuple(map(build.keep_bytes, constants))
        self._imported = Imported(keep(model), keep(names), weights)

    async def imported(self) -> Imported:
        return self._imported

    async def typed(self) -> TypedGraph:
        return self._typed


class GraphModel(CompiledModel):
    """A compilation that starts with a graph instead of an ONNX file; ``profiles``
    make specialisations beside."""

    def __init__(
        self, graph: Graph, constants: Sequence[bytes], profiles: Sequence[Profile] = ()
    ) -> None:
        super().__init__(_GraphCompilation(graph, constants, profiles))
