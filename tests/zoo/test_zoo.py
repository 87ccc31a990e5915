"""Real networks: compiled, saved, run by the loader in every way, compared with PyTorch (acceptance
2)."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.c_loader import CBundle, options
from tests.conformance.run_case import MemoryStore, translate
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import run_all_ways
from tests.harness.lowering_harness import assert_close

import ingot
import ingot_runtime
from ingot_compiler.oracles.interpret import interpret
from ingot_runtime.format.features import LEVELS
from ingot_runtime.loader import cpu

pytestmark = pytest.mark.zoo
RELATIVE = 1e-4
NETWORKS = ("resnet50", "mobilenet_v2", "bert_base", "bert_base_dyn")
LEVELS_X86 = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


def arrays(path: Path) -> dict[str, Array]:
    """A file of named arrays."""
    with np.load(path) as stored:
        return dict(stored)


@pytest.mark.parametrize("name", NETWORKS)
def test_network_is_right_in_every_way_of_running(zoo: Path, tmp_path: Path, name: str) -> None:
    """Within 1e-4 of PyTorch; 1 and 2 threads, native and stepped, give the same bits."""
    path = tmp_path / "model.ingot"
    ingot.compile(zoo / name / "model.onnx", workers=2).save(path)
    (result,) = run_all_ways(path, [arrays(zoo / name / "inputs.npz")])
    expected = arrays(zoo / name / "outputs.npz")
    assert list(result) == list(expected)
    for output, array in expected.items():
        assert_close(array, result[output], RELATIVE)


def test_both_loaders_give_the_same_bits(zoo: Path, tmp_path: Path) -> None:
    """Every network of the folder: that in C with 1 and 2 threads, that in Python."""
    path, differ = tmp_path / "model.ingot", list[str]()
    names = sorted(each.name for each in zoo.iterdir() if (each / "model.onnx").is_file())
    assert set(names) >= set(NETWORKS)
    for name in names:
        ingot.compile(zoo / name / "model.onnx", workers=2).save(path)
        feed = arrays(zoo / name / "inputs.npz")
        with ingot_runtime.load(path) as session:
            expected = {key: array.tobytes() for key, array in session.run(feed).items()}
        for threads in (1, 2):
            with CBundle(path, options("full", threads)) as loaded:
                found = {key: array.tobytes() for key, array in loaded.run(feed).items()}
            differ += [f"{name}, {threads} threads"] if found != expected else []
    assert not differ


def test_one_bundle_for_any_batch_and_length(zoo: Path, tmp_path: Path) -> None:
    """bert_base_dyn at five random sizes, against the interpreter of its graph in float64."""
    model = zoo / "bert_base_dyn" / "model.onnx"
    path = tmp_path / "model.ingot"
    ingot.compile(model, workers=2).save(path)
    session = ingot_runtime.load(path, threads=2)
    store = MemoryStore()
    graph, names = translate(ModelProto.FromString(model.read_bytes()), store)
    draw = np.random.default_rng(20)
    for _ in range(5):
        batch, length = int(draw.integers(1, 4)), int(draw.integers(2, 97))
        mask = (draw.random((batch, length)) < 0.8).astype(np.int64)
        mask[:, 0] = 1
        feed = {"input_ids": draw.integers(0, 30522, (batch, length)), "attention_mask": mask}
        (expected,) = interpret(graph, [feed[name] for name in names.inputs], store.read)
        (actual,) = session.run(feed).values()
        assert_close(expected, actual, RELATIVE)


def test_three_variants_of_one_network(zoo: Path, tmp_path: Path) -> None:
    """mobilenet_v2 for three levels in one file: each that this machine has is right, the best is
    taken."""
    path = tmp_path / "model.ingot"
    ingot.compile(zoo / "mobilenet_v2" / "model.onnx", targets=LEVELS_X86, workers=2).save(path)
    feed, expected = (
        arrays(zoo / "mobilenet_v2" / f"{part}.npz") for part in ("inputs", "outputs")
    )
    here = [level for level in LEVELS_X86 if set(LEVELS[level]) <= cpu.machine_features()]
    assert ingot_runtime.load(path).loaded.variant.target == here[-1]
    for level in here:
        masked = ingot_runtime.load(path, features=frozenset(LEVELS[level]))
        assert masked.loaded.variant.target == level
        result = masked.run(feed)
        forced = ingot_runtime.load(path, variant=level).run(feed)
        for output, array in expected.items():
            assert_close(array, result[output], RELATIVE)
            np.testing.assert_array_equal(result[output], forced[output])


CUT = ("mobilenet_v2", "bert_base", "segformer_b0", "unet_small")
CUTS = 5


@pytest.mark.parametrize("cut", range(CUTS))
@pytest.mark.parametrize("name", CUT)
@pytest.mark.opencl
def test_network_cut_between_host_and_opencl(zoo: Path, name: str, cut: int) -> None:
    """At five points each, drawn by its name: all before the point on one side, all behind it on the
    other, in turns; within the tolerance of PyTorch, natively and stepped with equal bits."""
    path = zoo / name / "model.onnx"
    nodes = [node.name for node in ModelProto.FromString(path.read_bytes()).graph.node]
    at = random.Random(f"{name} {cut}").randrange(1, len(nodes))
    sides = ("acc", "host") if cut % 2 else ("host", "acc")
    place = {node: sides[number >= at] for number, node in enumerate(nodes)}
    made = ingot.compile(path, devices={"acc": "opencl"}, place=place, workers=2)
    bundle, feed = made.to_bytes(), arrays(zoo / name / "inputs.npz")
    found: list[dict[str, Array]] = []
    for executor in ("aot", "vm"):
        with ingot_runtime.load(bundle, executor=executor) as session:
            found.append(session.run(feed))
            assert session.device_counts().launches["acc"]
            assert session.device_counts().copies
    for output, array in arrays(zoo / name / "outputs.npz").items():
        assert found[0][output].tobytes() == found[1][output].tobytes()
        assert_close(array, found[0][output], RELATIVE)
