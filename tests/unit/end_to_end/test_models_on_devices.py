"""Every architecture of ``tests/models`` split over the host and a device with memory of its own,
at points drawn by its name."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import onnx
import pytest
from onnx import ModelProto
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import assert_close
from tests.unit.end_to_end.test_models import MODELS, RELATIVE_ERROR_MAX, STATIC, Cases

import ingot_runtime
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import CompiledModel, compile_model
from ingot_compiler.ir.graph import Node, captured
from ingot_compiler.placement.placed import PlacedGraph
from ingot_runtime.executor.session import Session

TARGET = "x86-64-v2"
VIEWS = ("reshape", "slice", "transpose")
SPLITS = ("device last", "device first", "device between")


def compiled(model: str, on_device: Sequence[str]) -> CompiledModel:
    """The static export with these nodes on the device, every other on the host."""
    place = [("*", "host"), *((name, "acc") for name in on_device)]
    return compile_model(
        MODELS / model / "static.onnx",
        make_options((TARGET,), devices={"acc": "null"}, place=place),
    )


def part(model: str, split: str) -> list[str]:
    """The names of the nodes that run on the device: a run of them in the order of the file,
    neither none nor all."""
    names = [
        node.name
        for node in onnx.load_model_from_string(
            (MODELS / model / "static.onnx").read_bytes()
        ).graph.node
    ]
    assert len(set(names)) == len(names)
    first, last = sorted(random.Random(f"{model} {split}").sample(range(1, len(names)), 2))
    return {
        "device last": names[first:],
        "device first": names[:first],
        "device between": names[first:last],
    }[split]


@cache
def host_alone(model: str) -> tuple[dict[str, bytes], Counter[str]]:
    """The outputs of the host alone, and its kernels."""
    made = compiled(model, ())
    (feed,) = Cases(model, dynamic=False).feeds
    return {
        name: array.tobytes()
        for name, array in ingot_runtime.load(made.to_bytes()).run(feed).items()
    }, kernels(made)


def kernels(made: CompiledModel) -> Counter[str]:
    """The loop programs of all launches, whatever device runs them."""
    (build,) = made.target_builds
    return Counter(map(str, build.programs))


def copies(session: Session) -> int:
    """How many there have been."""
    return sum(count for count, _ in session.device_counts().copies.values())


def fewest_copies(placed: PlacedGraph) -> int:
    """How many pairs there are of a value and another device that reads it; constants, and parts of
    them, are made there again."""
    graph, device = placed.graph, placed.device_of
    makers = {result: node for node in graph.nodes for result in node.results}

    def origin(value: int) -> int:
        while value in makers and makers[value].op == "copy":
            (value,) = makers[value].operands
        return value

    def reads() -> Iterator[tuple[int, int]]:
        for node in graph.nodes:
            if node.op != "copy":
                yield from (
                    (origin(value), _device(node)) for value in {*node.operands, *captured(node)}
                )
        yield from ((origin(value), 0) for value in graph.outputs)

    def _device(node: Node) -> int:
        return device[node.results[0]] if node.results else 0

    def is_constant(value: int) -> bool:
        node = makers.get(value)
        return node is not None and (
            not (node.operands or node.regions)
            or (node.op in VIEWS and is_constant(origin(node.operands[0])))
        )

    return len(
        {
            (value, there)
            for value, there in reads()
            if device[value] != there and not is_constant(value)
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("model", STATIC)
def test_split_architectures(model: str, split: str) -> None:
    """Native and stepped give the same bits, those of the host alone where the same kernels run,
    else its outputs within the tolerance of all exports; each value crosses once to a device that
    reads it, and nothing else does."""
    cases = Cases(model, dynamic=False)
    (feed,), (expected,) = cases.feeds, cases.expected
    made = compiled(model, part(model, split))
    bundle = made.to_bytes()
    alone, kernels_alone = host_alone(model)
    outputs: list[dict[str, Array]] = []
    for executor in ("aot", "vm"):
        with ingot_runtime.load(bundle, executor=executor) as session:
            outputs += [
                session.run(feed)
            ]  # where sizes depend on data, `main` is called twice for it
            before = copies(session)
            outputs += [session.run(feed)]
            assert copies(session) - before == fewest_copies(made.placed)
            assert set(session.device_counts().copies) <= {("host", "acc"), ("acc", "host")}
    found = [{name: array.tobytes() for name, array in each.items()} for each in outputs]
    assert all(each == found[0] for each in found)
    if kernels(made) == kernels_alone:
        assert found[0] == alone
    for name, array in expected.items():
        assert_close(array, np.asarray(outputs[0][name]), RELATIVE_ERROR_MAX)


CUT = ("mobilenet_v2", "bert", "segformer", "sd_unet")
CUTS = 5


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(CUTS))
@pytest.mark.parametrize("model", CUT)
def test_cut_between_two_devices(model: str, cut: int) -> None:
    """At five points each, drawn by its name: all before the point on one device, all behind it on
    another kind; the outputs are within the tolerance of all exports, natively and stepped alike."""
    cases = Cases(model, dynamic=False)
    (feed,), (expected,) = cases.feeds, cases.expected
    path = MODELS / model / "static.onnx"
    names = [each.name for each in ModelProto.FromString(path.read_bytes()).graph.node]
    at = random.Random(f"{model} {cut}").randrange(1, len(names))
    place = [(name, "acc" if number < at else "other") for number, name in enumerate(names)]
    devices = {"acc": "null", "other": "cpu:1"}
    made = compile_model(path, make_options((TARGET,), devices=devices, place=place))
    bundle = made.to_bytes()
    found: list[dict[str, Array]] = []
    for executor in ("aot", "vm"):
        with ingot_runtime.load(bundle, executor=executor) as session:
            found.append(session.run(feed))
            assert ("acc", "other") in session.device_counts().copies
    for name, array in expected.items():
        assert found[0][name].tobytes() == found[1][name].tobytes()
        assert_close(array, found[0][name], RELATIVE_ERROR_MAX)
