"""Reductions of very many elements to few results: two launches, chosen by the sizes, with the bits
of every other way to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from tests.harness.codegen_harness import NUMPY, Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.lowering_harness import (
    Builder,
    Compiled,
    assert_close,
    compile_graph,
    normal,
    run_compiled,
)

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_build_rules.tools.check.self_check import check_bundle
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.groups.fused import IfStep, launches_of
from ingot_compiler.lowering.kinds.split_reduce import (
    CHUNK_ELEMENTS,
    SPLIT_ELEMENTS_MIN,
    SPLIT_UNITS_MAX,
)
from ingot_compiler.oracles.interpret import interpret

LARGE = SPLIT_ELEMENTS_MIN
SHAPES = {
    "all of a matrix": ((600, 1000), (0, 1)),
    "all of one row": ((1, LARGE + 1), (0, 1)),
    "rows": ((2, LARGE + CHUNK_ELEMENTS), (1,)),
    "columns in lanes": ((LARGE + 3, 3), (0,)),
    "one column": ((LARGE + 3, 1), (0,)),
    "one short column": ((LARGE - 1, 1), (0,)),
    "the first size that is split": ((LARGE,), (0,)),
    "the last that is not": ((LARGE - 1,), (0,)),
    "more results than are split": ((SPLIT_UNITS_MAX + 1, LARGE), (1,)),
}


def reduced(
    shape: tuple[Dim, ...], axes: tuple[int, ...], function: str, dtype: DType = "f32"
) -> tuple[Builder, Graph]:
    """A reduction with an elementwise op before and one behind."""
    builder = Builder([TensorType(dtype, shape)])
    total = builder.op("reduce", builder.op("abs", 0), function=function, axes=axes, keepdims=False)
    return builder, builder.finish([builder.op("neg", total)])


def launch_count(compiled: Compiled) -> int:
    return len(launches_of(compiled.fused))


def is_split(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether the sizes ask for two launches; the columns of a matrix run in lanes and count as one
    result."""
    count = int(np.prod([shape[axis] for axis in axes]))
    return count >= SPLIT_ELEMENTS_MIN and (0 in axes or shape[0] <= SPLIT_UNITS_MAX)


def open_launch_count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """One launch and two launches; columns have both in lanes, and those of a single column; short
    rows are in lanes."""
    if len(shape) - 1 not in axes:
        return 6
    return 4 if len(axes) < len(shape) else 3


@pytest.mark.sweep(15)
@pytest.mark.parametrize("function", ["sum", "mean", "max"])
@pytest.mark.parametrize("case", SHAPES)
def test_open_sizes_give_the_bits_of_fixed_ones(case: str, function: str) -> None:
    """What main chooses for the sizes of a call is what the compiler chooses for them; both are the
    interpreter's numbers."""
    shape, axes = SHAPES[case]
    x = normal(3, *shape)
    symbols = tuple(symbol(f"s{axis}") for axis in range(len(shape)))
    outputs: list[Array] = []
    for sizes in (shape, symbols):
        builder, graph = reduced(sizes, axes, function)
        compiled = compile_graph(graph)
        assert launch_count(compiled) == (
            open_launch_count(shape, axes)
            if sizes is symbols
            else 2
            if is_split(shape, axes)
            else 1
        )
        outputs += run_compiled(compiled, graph, [x], builder.read)
        assert_close(np.asarray(interpret(graph, [x], builder.read)[0]), outputs[-1], 1e-5)
    assert outputs[0].tobytes() == outputs[1].tobytes()


@pytest.mark.parametrize("dtype", ["f64", "i32", "i64", "u32", "u64"])
def test_other_element_types(dtype: DType) -> None:
    """Integers are exact in any order."""
    x = np.random.default_rng(1).integers(0, 100, LARGE + 5).astype(NUMPY[dtype])
    builder, graph = reduced((LARGE + 5,), (0,), "sum", dtype)
    compiled = compile_graph(graph)
    assert launch_count(compiled) == 2
    (found,) = run_compiled(compiled, graph, [x], builder.read)
    assert_close(np.asarray(interpret(graph, [x], builder.read)[0]), found, 1e-12)


def test_half_precision_is_one_launch() -> None:
    """A partial result stored in f16 would be rounded, or overflow."""
    _, graph = reduced((LARGE,), (0,), "sum", "f16")
    assert launch_count(compile_graph(graph)) == 1


def test_elements_that_do_not_lie_as_one_are_one_launch() -> None:
    """A slice has gaps between its rows; a broadcast operand is read by its own index: neither can
    be counted."""
    builder = Builder([TensorType("f32", (600, 1000)), TensorType("f32", (1000,))])
    part = builder.op("slice", 0, starts=(0, 1), sizes=(600, 500), steps=(1, 1))
    scaled = builder.op("mul", 0, 1)
    sums = [
        builder.op("reduce", value, function="sum", axes=(0, 1), keepdims=False)
        for value in (part, scaled)
    ]
    inputs = [normal(1, 600, 1000), normal(2, 1000)]
    graph = builder.finish(sums)
    compiled = compile_graph(graph)
    assert launch_count(compiled) == 2
    for wanted, found in zip(
        interpret(graph, inputs, builder.read),
        run_compiled(compiled, graph, inputs, builder.read),
        strict=True,
    ):
        assert_close(np.asarray(wanted), found, 1e-5, floor=1000)


def test_workspace_lives_between_the_two_launches() -> None:
    """The plan holds the partial results from the first launch to the second; where sizes are open,
    it is empty unless it is used."""
    _, graph = reduced((LARGE,), (0,), "sum")
    (placement,) = compile_graph(graph).plan.placements
    assert (placement.size_bytes, placement.first, placement.last) == (4 * 16, 0, 1)
    _, graph = reduced((symbol("n"),), (0,), "sum")
    compiled = compile_graph(graph)
    (placement,) = compiled.plan.placements
    assert [isinstance(step, IfStep) for step in compiled.fused.steps] == [False, True]
    assert (placement.first, placement.last) == (2, 3)


def model() -> ModelProto:
    """The largest element of each of a few rows, negated; sizes are open."""
    nodes = [
        node("Abs", "x", "a", name="magnitude"),
        node("ReduceMax", "a axes", "m", name="largest", keepdims=0),
        node("Neg", "m", "y", name="negated"),
    ]
    return make_model(
        nodes, [tensor("x", ["rows", "columns"])], [tensor("y", ["rows"])], {"axes": np.array([1])}
    )


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's bundle."""
    path = tmp_path_factory.mktemp("split") / "m.ingot"
    ingot.compile(model()).save(path)
    return path


def test_main_chooses(bundle: Path) -> None:
    """One bundle, both ways: native and stepped, one thread and two give the same bits."""
    few, many = normal(1, 3, 100), normal(2, 2, LARGE + 7)
    for x, outputs in zip(
        (few, many), run_all_ways(bundle, [{"x": few}, {"x": many}]), strict=True
    ):
        np.testing.assert_array_equal(outputs["y"], -np.abs(x).max(1))


@pytest.mark.parametrize(("columns", "launches"), [(100, [2]), (LARGE, [0, 1])])
def test_profiles_and_reports_speak_of_the_operations(
    bundle: Path, columns: int, launches: list[int]
) -> None:
    """Whichever launches run, their rows name the nodes of the model; what goes from one to the
    other is no tensor of it."""
    (rows,) = describe_bundle(bundle)["debug"]["launches"].values()
    assert [row["nodes"] for row in rows] == [rows[0]["nodes"]] * 4
    assert [name for name, *_ in rows[0]["nodes"]] == ["magnitude", "largest", "negated"]
    touched = [(len(row["reads"]), len(row["writes"])) for row in rows]
    assert touched == [(1, 0), (0, 1), (1, 1), (1, 1)]
    assert [row["ends"] for row in rows[:2]] == [
        "another launch of the same operations goes on",
        "the model returns it",
    ]
    seen: list[tuple[int, str]] = []
    session = ingot_runtime.load(bundle, executor="vm")

    def observe(launch: int, kernel: str, *_: Any) -> None:
        seen.append((launch, kernel))

    session.observe(observe)
    session.run({"x": normal(1, 2, columns)})
    assert seen == [(launch, rows[launch]["kernel"]) for launch in launches]


@pytest.mark.parametrize(("columns", "launches"), [(100, 1), (LARGE + 1, 2)])
def test_self_check_compares_what_is_complete(tmp_path: Path, columns: int, launches: int) -> None:
    """Partial results are no value of the graph; the result is compared, whichever way made it."""
    compiled = compile_model(model(), make_options(["native"]))
    path = str(tmp_path / "m.ingot")
    compiled.save(path)
    report = check_bundle(compiled, path, {"x": normal(1, 2, columns)})
    report.require_equal()
    assert report.launches == launches


def test_sizes_that_the_data_decide(tmp_path: Path) -> None:
    """Workspace and result get their memory before main chooses between the launches."""
    nodes = [
        node("Compress", "x keep", "k", axis=0),
        node("ReduceSum", "k axes", "s", keepdims=0),
        node("Mul", "s s", "y"),
    ]
    inputs = [tensor("x", ["n", "m"]), tensor("keep", ["n"], TensorProto.BOOL)]
    path = tmp_path / "m.ingot"
    ingot.compile(make_model(nodes, inputs, [tensor("y", ["k"])], {"axes": np.array([1])})).save(
        path
    )
    keep = np.array([True, False, True])
    feeds = [
        {"x": normal(seed, 3, size), "keep": keep} for seed, size in enumerate((50, LARGE + 9))
    ]
    for feed, outputs in zip(feeds, run_all_ways(path, feeds), strict=True):
        sums = feed["x"][keep].astype(np.float64).sum(1)
        np.testing.assert_allclose(outputs["y"], sums**2, rtol=1e-3)


def test_on_a_device_with_memory_of_its_own(tmp_path: Path) -> None:
    """The workspace lies on the device of the group: the bits of the host alone."""
    x = normal(1, 2, LARGE + 7)
    found = set[bytes]()
    for devices, place in (({}, {}), ({"acc": "null"}, {"*": "acc"})):
        path = tmp_path / "m.ingot"
        ingot.compile(model(), devices=devices, place=place).save(path)
        for executor in ("aot", "vm"):
            with ingot_runtime.load(path, executor=executor) as session:
                found.add(session.run({"x": x})["y"].tobytes())
    assert len(found) == 1
