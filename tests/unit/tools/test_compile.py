"""Compilation as a whole: the same bundle everywhere, weights once, names beside, errors in the
user's words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.harness.build_harness import make_home

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_artifacts.store.blobs import BlobMissing
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.message_pack import pack
from ingot_build_rules.engine.actions.values import MemoryBlobs
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_build_rules.making.values.artifact_types import ARTIFACT_TYPES
from ingot_build_rules.tools.text.loop_record import read_program
from ingot_compiler.ir.errors import UserError
from ingot_runtime.ingot_error import IngotError

MSGPACK: Any = msgpack  # the package has no types
CODEC = Codec(ARTIFACT_TYPES)
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


def two_layers(
    batch: int | str = 3, names: tuple[str, str] = ("first", "second")
) -> onnx.ModelProto:
    """x[batch, 20] @ a[20, 33] + b -> relu -> @ c[33, 7]."""
    random = np.random.RandomState(5)
    arrays = {"a": (20, 33), "b": (33,), "c": (33, 7)}
    weights = {
        name: random.standard_normal(shape).astype(np.float32) for name, shape in arrays.items()
    }
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "a"], ["h0"], name=names[0]),
            helper.make_node("Add", ["h0", "b"], ["h1"], name="bias"),
            helper.make_node("Relu", ["h1"], ["h2"], name="activation"),
            helper.make_node("MatMul", ["h2", "c"], ["y"], name=names[1]),
        ],
        "two_layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 20])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 7])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def expected(model: onnx.ModelProto, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The answer in float64."""
    a, b, c = (
        numpy_helper.to_array(tensor).astype(np.float64) for tensor in model.graph.initializer
    )
    answer: npt.NDArray[np.float64] = np.maximum(x @ a + b, 0) @ c
    return answer


def some_input(batch: int = 3) -> npt.NDArray[np.float32]:
    """Numbers for ``x``."""
    return np.random.RandomState(1).standard_normal((batch, 20)).astype(np.float32)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two layers with three variants."""
    path = tmp_path_factory.mktemp("compile") / "m.ingot"
    ingot.compile(two_layers(), targets=LEVELS).save(path)
    return path


@pytest.mark.broad
def test_facade_takes_path_bytes_and_message(tmp_path: Path) -> None:
    """A path, bytes and a message give the same bundle, saved or as bytes."""
    model = two_layers()
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    contents = {
        ingot.compile(source, targets=["x86-64-v2"]).to_bytes()
        for source in (
            model,
            model.SerializeToString(),
            str(tmp_path / "m.onnx"),
            tmp_path / "m.onnx",
        )
    }
    assert len(contents) == 1
    x = some_input()
    outputs = ingot_runtime.load(contents.pop()).run({"x": x})
    np.testing.assert_allclose(outputs["y"], expected(model, x), rtol=1e-5, atol=1e-5)


def test_each_variant_gives_the_answer(bundle: Path) -> None:
    """Every variant that this machine can run gives the right numbers, by both executors and 1 and
    2 threads, bit-equal."""
    x = some_input()
    features = ingot_runtime.load(bundle).loaded.variant.target
    assert features in LEVELS
    for level in LEVELS[: LEVELS.index(features) + 1]:
        outputs = [
            ingot_runtime.load(bundle, variant=level, executor=executor, threads=threads).run(
                {"x": x}
            )["y"]
            for executor in ("aot", "vm")
            for threads in (1, 2)
        ]
        np.testing.assert_allclose(outputs[0], expected(two_layers(), x), rtol=1e-5, atol=1e-5)
        assert len({output.tobytes() for output in outputs}) == 1


def test_variants_share_constants(bundle: Path) -> None:
    """A constant with the same packing is in the file once: the bias, and what two levels pack
    alike."""
    described = describe_bundle(bundle)
    own = sum(memory["weights_bytes"] for memory in described["memory"].values())
    layout = compile_model(two_layers().SerializeToString(), make_options(LEVELS)).layout
    used = sum(constant.size_bytes for constant in layout.constants)
    assert used < own
    assert len({constant.offset_bytes for constant in layout.constants}) == len(layout.constants)
    assert all(constant.offset_bytes % 64 == 0 for constant in layout.constants)
    assert layout.size_bytes % (1 << 16) == 0


def test_a_symbolic_size_stays_symbolic() -> None:
    """One bundle runs every batch; the symbol has the user's name."""
    model = two_layers(batch="batch")
    session = ingot_runtime.load(ingot.compile(model).to_bytes())
    assert session.inputs[0].shape == ("batch", 20)
    assert session.outputs[0].shape == ("batch", 7)
    for batch in (1, 5, 64, 0):
        x = some_input(batch)
        np.testing.assert_allclose(
            session.run({"x": x})["y"], expected(model, x), rtol=1e-5, atol=1e-5
        )


def test_a_special_size_runs_beside_the_general_one() -> None:
    """``shapes`` adds kernels for one size; every size still runs, and both ways give the same
    bits, aot and vm."""
    model = two_layers(batch="batch")
    general = ingot_runtime.load(ingot.compile(model).to_bytes())
    both = ingot.compile(model, shapes={"x": [4, 20]})
    assert len(both.text("fused")) > len(ingot.compile(model).text("fused"))
    data = both.to_bytes()
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(data, executor=executor)
        assert session.inputs[0].shape == ("batch", 20)
        for batch in (4, 5, 1, 0):
            x = some_input(batch)
            assert session.run({"x": x})["y"].tobytes() == general.run({"x": x})["y"].tobytes()


_COMPILE = """
import sys
from ingot_build_rules.tools.cli.main import main
sys.exit(main(["compile", sys.argv[1], "-o", sys.argv[2], "-q", "--workers", sys.argv[3], "--target", "x86-64-v3"]))
"""


@pytest.mark.broad
def test_the_same_bytes_everywhere(tmp_path: Path) -> None:
    """Folder, spelling of the path, HOME, hash seed, time zone, locale, umask and workers leave no
    trace."""
    settings = (
        ("one", "{folder}/m.onnx", "0", "UTC", "C", 0o022, "1"),
        ("two/deep", "./m.onnx", "1", "Asia/Tokyo", "C.UTF-8", 0o077, "2"),
        ("three", "../three/m.onnx", "2", "America/New_York", "POSIX", 0o000, "2"),
    )
    contents: set[bytes] = set()
    for name, spelling, seed, zone, locale, mask, workers in settings:
        folder = tmp_path / name
        make_home(folder)
        (folder / "m.onnx").write_bytes(two_layers().SerializeToString())
        environment = {
            "HOME": str(folder), "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale, "PATH": "/nowhere",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }  # fmt: skip
        arguments = [spelling.format(folder=folder), "out.ingot", workers]
        subprocess.run(
            [sys.executable, "-c", _COMPILE, *arguments],
            cwd=folder,
            env=environment,
            check=True,
            umask=mask,
        )
        contents.add((folder / "out.ingot").read_bytes())
        assert (folder / "out.ingot").stat().st_mode & 0o777 == 0o666 & ~mask
    assert len(contents) == 1


def test_names_are_beside(bundle: Path, tmp_path: Path) -> None:
    """Renamed nodes change the report and nothing else: code, weights, programs and the recorded
    digests are the same."""
    renamed = tmp_path / "renamed.ingot"
    ingot.compile(two_layers(names=("uno", "dos")), targets=LEVELS).save(renamed)
    first, second = describe_bundle(bundle), describe_bundle(renamed)
    assert first["lock"] == second["lock"]
    sections = [
        {(row["kind"], row["id"]): row["digest"] for row in one["sections"]}
        for one in (first, second)
    ]
    different = {key[0] for key in sections[0] if sections[0][key] != sections[1][key]}
    assert different == {"debug"}


def test_the_lock_records_content_not_files(bundle: Path) -> None:
    """The lock has digests of graph, weights, options, toolchain and stages, and no path."""
    lock = describe_bundle(bundle)["lock"]
    assert set(lock) == {"graph", "weights", "options", "toolchain", "stages"}
    assert lock["options"]["targets"] == list(LEVELS)
    assert "/" not in MSGPACK.packb(lock).decode("latin-1").replace("\\", "")


@pytest.mark.broad
def test_counts_tell_what_ran() -> None:
    """Equal kernels and constants are made once; every rule is listed."""
    compiled = compile_model(two_layers().SerializeToString(), make_options(["x86-64-v3"]))
    compiled.make()
    counts = compiled.counts()
    assert counts["codegen"] == {"ran": 2, "hit": 0}
    assert counts["infer_types"]["ran"] == counts["optimize"]["ran"] == counts["link"]["ran"] == 1
    assert counts["pack_constant"]["ran"] == 0  # packed while the bundle is written


def test_equal_rows_share_a_kernel(tmp_path: Path) -> None:
    """Loops that differ in how many units they have are one kernel, launched for each count; so are
    the loops that a bundle keeps of it."""
    counts = {"few": 3, "many": 200}
    graph = helper.make_graph(
        [helper.make_node("Softmax", [name], [f"{name}_soft"]) for name in counts],
        "rows",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [n, 40])
            for name, n in counts.items()
        ],
        [
            helper.make_tensor_value_info(f"{name}_soft", TensorProto.FLOAT, [n, 40])
            for name, n in counts.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    compiled = compile_model(model.SerializeToString(), make_options(["x86-64-v3"]))
    bundle = tmp_path / "m.ingot"
    compiled.save(str(bundle))
    assert compiled.counts()["codegen"] == {"ran": 1, "hit": 0}
    (programs,) = describe_bundle(bundle)["debug"]["programs"].values()
    assert len(programs) == 1
    random = np.random.RandomState(1)
    inputs = {
        name: random.standard_normal((n, 40)).astype(np.float32) for name, n in counts.items()
    }
    for executor in ("aot", "vm"):
        outputs = ingot_runtime.load(bundle, executor=executor).run(inputs)
        for name, x in inputs.items():
            powers = np.exp(x.astype(np.float64))
            wanted = powers / powers.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(outputs[f"{name}_soft"], wanted, rtol=1e-5)


def test_records_of_kernels_read_back() -> None:
    """The loop programs in a bundle are those that the kernels were made of."""
    compiled = compile_model(two_layers("batch").SerializeToString(), make_options(["x86-64-v3"]))
    for program in compiled.target_builds[0].programs:
        assert read_program(CODEC.encode(program)[0]) == program
    damaged_ones: tuple[Any, ...] = (
        None,
        [],
        [["os.system"], [16, "ls"]],
        [["LoopProgram"], [16]],
        [["Load"], [16, 1, 2, 3]],
        [[], 1],
    )
    for damaged in map(pack, damaged_ones):
        with pytest.raises(UserError, match="damaged"):
            read_program(damaged)


def test_errors_name_the_users_nodes() -> None:
    """A contradiction that a later stage finds is told by node name, not by number."""
    model = two_layers(names=("the_culprit", "second"))
    model.graph.initializer[0].CopyFrom(
        numpy_helper.from_array(np.zeros((19, 33), np.float32), "a")
    )
    with pytest.raises(IngotError) as caught:
        ingot.compile(model)
    assert "the_culprit" in str(caught.value)
    assert "#" not in str(caught.value)


def test_blobs_in_memory_keep_views_and_one_copy() -> None:
    """Read-only bytes are kept as they are; equal bytes are kept once; unknown digests are lost
    artifacts."""
    blobs = MemoryBlobs()
    backing = bytes(range(256)) * 64
    name = blobs.put(memoryview(backing)[256:512])
    assert blobs.get(name).obj is backing
    assert blobs.put(memoryview(bytearray(backing[:256]))) == name
    assert blobs.get(name).obj is backing
    with pytest.raises(BlobMissing):
        blobs.get("0" * 64)


def test_an_object_of_another_kind_is_refused() -> None:
    """What is no path, no bytes and no message is named by its type."""
    with pytest.raises(UserError, match="not a model"):
        ingot.compile(3.5)  # type: ignore[arg-type]
