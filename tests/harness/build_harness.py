"""A project in a folder: small models, edits of them, builds in this process.

In: a folder, a cache. Out: ``Workbench``, ONNX models. Not done here: assertions.
"""

from __future__ import annotations

import functools
import io
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ingot_artifacts.store.layout import versioned
from ingot_build_rules.engine.executors.pool import PoolExecutor
from ingot_build_rules.making.stages.open_build import BuildSettings, open_build
from ingot_build_rules.tools.workspace.build_report import Report
from ingot_build_rules.tools.workspace.build_request import BuildRequest
from ingot_build_rules.tools.workspace.cache_folder import cache_trust
from ingot_build_rules.tools.workspace.open_workspace import load_project
from ingot_build_rules.tools.workspace.run_build import run_build
from ingot_build_rules.tools.workspace.user_key import key_path, user_key

TARGET = "x86-64-v3"
TEST = '[test.a]\nbundle = "a"\ninputs = "x.npz"\noutputs = "y.npz"\n'
Edit = Callable[[onnx.ModelProto], object]


def chain(
    sizes: Sequence[int], activations: Sequence[str] = ("Relu",), seed: int = 1, rows: int = 2
) -> onnx.ModelProto:
    """Return a chain of ``Gemm`` layers, each with its activation (taken in turn): f32[rows,
    sizes[0]] to f32[rows, sizes[-1]]."""
    numbers = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value = "x"
    for index, (width, height) in enumerate(itertools.pairwise(sizes)):
        weights.append(
            numpy_helper.from_array(
                numbers.standard_normal((width, height)).astype(np.float32), f"w{index}"
            )
        )
        nodes.append(
            helper.make_node(
                "Gemm", [value, f"w{index}"], [f"g{index}"], name=f"/layer{index}/Gemm"
            )
        )
        value = "y" if index == len(sizes) - 2 else f"a{index}"
        kind = activations[index % len(activations)]
        nodes.append(helper.make_node(kind, [f"g{index}"], [value], name=f"/layer{index}/{kind}"))
    return model_of(nodes, [rows, sizes[0]], [rows, sizes[-1]], weights)


def convolution(stride: int = 1) -> onnx.ModelProto:
    """Return one convolution and an activation: f32[1, 3, 8, 8] in."""
    weight = numpy_helper.from_array(
        np.random.default_rng(2).standard_normal((4, 3, 3, 3)).astype(np.float32), "w"
    )
    nodes = [
        helper.make_node(
            "Conv", ["x", "w"], ["c"], name="/stem/Conv", pads=[1] * 4, strides=[stride, stride]
        ),
        helper.make_node("Relu", ["c"], ["y"], name="/stem/Relu"),
    ]
    return model_of(nodes, [1, 3, 8, 8], [1, 4, "height", "width"], [weight])


def model_of(
    nodes: Sequence[onnx.NodeProto],
    x: Sequence[int | str],
    y: Sequence[int | str],
    weights: Sequence[onnx.TensorProto],
) -> onnx.ModelProto:
    """Return a model with input ``x`` and output ``y`` of two shapes."""
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", x), ("y", y))
    ]
    graph = helper.make_graph(nodes, "small", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def with_external(model: onnx.ModelProto, folder: Path, location: str) -> onnx.ModelProto:
    """Move the model's first weight into the file ``location`` in ``folder``."""
    tensor = model.graph.initializer[0]
    (folder / location).parent.mkdir(parents=True, exist_ok=True)
    (folder / location).write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return model


def new_weight(model: onnx.ModelProto) -> None:
    """Make one element of the first weight another one."""
    tensor = model.graph.initializer[0]
    array = numpy_helper.to_array(tensor).copy()
    array.flat[0] += 0.125
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def npz(**arrays: np.ndarray[Any, Any]) -> bytes:
    """Return the bytes of an ``.npz`` file."""
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


@functools.cache
def _memory_of_tools(user_key: bytes) -> Mapping[str, bytes]:
    """Files of a cache that say what the sources of Ingot and the linker look like: to read these
    takes longer than a small build."""
    with tempfile.TemporaryDirectory(prefix="ingot-test-memory-") as folder:
        with open_build(BuildSettings(folder, cache_trust())) as build:
            assert build.keys.tool("zig")
        assert cache_trust().key == user_key
        memory = Path(versioned(folder))
        return {
            name: (memory / name).read_bytes()
            for name in ("code_digests", "file_digests")
            if (memory / name).exists()
        }


def make_cache(folder: Path) -> Path:
    """Make a cache without a result, which knows of the tools what any build would have to find out
    first."""
    inner = Path(versioned(str(folder)))
    for made in (folder, inner):
        made.mkdir(0o700)
    for name, content in _memory_of_tools(cache_trust().key).items():
        (inner / name).write_bytes(content)
    return folder


def make_home(folder: Path) -> Path:
    """Make a user's folder: the key of this test run, and a cache without a result."""
    key = folder / ".local/state/ingot/key"
    key.parent.mkdir(parents=True)
    user_key()
    shutil.copy(key_path(), key)
    (folder / ".cache").mkdir()
    make_cache(folder / ".cache/ingot")
    return folder


@dataclass
class Workbench:
    """A project's folder and the cache that it builds over; one that is not there is made, without
    a result."""

    folder: Path
    cache: Path

    def __post_init__(self) -> None:
        if not self.cache.exists():
            make_cache(self.cache)

    def write(self, path: str, content: bytes | str) -> Path:
        """Write a file of the project."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def project(
        self,
        models: Mapping[str, onnx.ModelProto],
        more: str = "",
        targets: Sequence[str] = (TARGET,),
    ) -> None:
        """Write models, each with a bundle of its name, and ``ingot.toml``."""
        texts = [f"[defaults]\ntargets = {list(targets)}\n"]
        for name, model in models.items():
            self.write(f"{name}.onnx", model.SerializeToString())
            texts.append(
                f'[model.{name}]\nsource = "{name}.onnx"\n[bundle.{name}]\nmodel = "{name}"\n'
            )
        self.write("ingot.toml", "\n".join([*texts, more]))

    def edit(self, name: str, change: Edit) -> None:
        """Change a model's file."""
        path = self.folder / f"{name}.onnx"
        model = onnx.ModelProto.FromString(path.read_bytes())
        change(model)
        path.write_bytes(model.SerializeToString())

    def data(self, model: onnx.ModelProto, shift: float = 0.0) -> None:
        """Write what ``TEST`` reads for a model; ``shift`` is what the expected output is off
        by."""
        shape = [size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim]
        x = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        evaluator: Any = ReferenceEvaluator(model)
        (y,) = evaluator.run(["y"], {"x": x})
        self.write("x.npz", npz(x=x))
        self.write("y.npz", npz(y=y + np.float32(shift)))

    def build(self, *words: str, config: Sequence[str] = (), **request: Any) -> Report:
        """Build in this process."""
        asked = BuildRequest(str(self.cache), cache_trust(), tuple(words), **request)
        return run_build(load_project(str(self.folder), config), asked)

    def bundle(self, name: str) -> bytes:
        """Bytes of a bundle."""
        return (self.folder / "dist" / f"{name}.ingot").read_bytes()


def ran(report: Report) -> dict[str, int]:
    """Return what ran, by rule; nothing of rules that did not."""
    failed = [item for item in report.results if item.error is not None]
    if failed:
        raise AssertionError(f"{failed[0].name}: {failed[0].error!r}") from failed[0].error
    return {name: count.ran for name, count in report.counts.items() if count.ran}


def age(*paths: Path) -> None:
    """Wait until files are as old as the no-op path wants its sources."""
    import time

    newest = max(max(os.stat(path).st_mtime_ns, os.stat(path).st_ctime_ns) for path in paths)
    time.sleep(max(0.0, 2.1 - (time.time_ns() - newest) / 1e9))


def all_in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let builds with several jobs run every action in a worker, however little there is to do."""

    def grown(_: object, pool: PoolExecutor, jobs: int, *__: object) -> PoolExecutor:
        pool.grow(jobs)
        return pool

    monkeypatch.setattr("ingot_build_rules.engine.executors.local.LocalExecutor", grown)
