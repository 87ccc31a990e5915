"""The self-check: a fault in one kernel is found and named, right bundles pass, nothing wrong is
left on the disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.json_schemas import checked

import ingot
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_build_rules.tools.check.generated_inputs import generated_inputs
from ingot_build_rules.tools.check.self_check import check_bundle
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell import options
from ingot_compiler.backends.host import hooks as lowering
from ingot_compiler.ir.errors import IncompatibleTargetError, UserError, VerificationError
from ingot_compiler.ir.graph import OptimizedGraph
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.loops.loop_values import Apply, Constant
from ingot_compiler.lowering.loops.program import LoopProgram, Store
from ingot_compiler.passes import pipeline

Floats = npt.NDArray[np.float32]


def weights(*shape: int) -> Floats:
    """Some numbers of the same size."""
    return np.asarray(np.random.RandomState(len(shape)).standard_normal(shape) / 4, np.float32)


def model_of(
    nodes: list[onnx.NodeProto],
    x: list[int | str],
    y: list[int | str],
    constants: dict[str, npt.NDArray[Any]],
) -> onnx.ModelProto:
    """A model from ``x`` to ``y``, both f32."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def image_model() -> onnx.ModelProto:
    """Two padded convolutions, a pool, a softmax over the channels: haloes, channels-last images,
    open batch."""
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["c0"], name="conv0", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c0"], ["r0"], name="relu0"),
        helper.make_node("Conv", ["r0", "b"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c1", "r0"], ["s"], name="residual"),
        helper.make_node("MaxPool", ["s"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Softmax", ["p"], ["y"], name="softmax", axis=1),
    ]
    return model_of(
        nodes,
        ["batch", 3, 8, 8],
        ["batch", 16, 4, 4],
        {"a": weights(16, 3, 3, 3), "b": weights(16, 16, 3, 3)},
    )


def steps_model() -> onnx.ModelProto:
    """A floor of computed floats beside a sigmoid, written into one buffer."""
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], name="product"),
        helper.make_node("Floor", ["h"], ["f"], name="floor"),
        helper.make_node("Sigmoid", ["x"], ["g"], name="sigmoid"),
        helper.make_node("Concat", ["f", "g"], ["y"], name="concat", axis=1),
    ]
    return model_of(nodes, ["n", 6], ["n", 15], {"a": weights(6, 9)})


def found_model() -> onnx.ModelProto:
    """Columns that a weight chooses: how many there are is read from a constant."""
    nodes = [
        helper.make_node("Unique", ["a"], ["places"], name="places"),
        helper.make_node("Gather", ["x", "places"], ["c"], name="chosen", axis=1),
        helper.make_node("Exp", ["c"], ["y"], name="exp"),
    ]
    return model_of(nodes, ["n", 6], ["n", "k"], {"a": np.array([3, 1, 3])})


def repeated_model() -> onnx.ModelProto:
    """Short rows that are repeated inside and outside: two launches, of which the second reads what
    the first left."""
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axis"], ["rows"], name="rows"),
        helper.make_node("Expand", ["rows", "shape"], ["y"], name="repeat"),
    ]
    constants = {"axis": np.array([1]), "shape": np.array([5, 1, 2, 6])}
    return model_of(nodes, ["n", 6], [5, "n", 2, 6], constants)


def sums_model() -> onnx.ModelProto:
    """Running sums, whose kernel rounds each one."""
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], name="sums")
    return model_of([node], ["n", 40], ["n", 40], {"axis": np.array(1)})


def with_fault(value: object, found: list[bool]) -> object:
    """The same loop program with 0.01 added to the first value that is stored."""
    if isinstance(value, tuple):
        return tuple(with_fault(item, found) for item in cast("tuple[object, ...]", value))
    if isinstance(value, Store) and not found:
        found.append(True)
        return replace(value, value=Apply("add", (value.value, Constant(0.01, "f32")), "f32"))
    if (
        is_dataclass(value)
        and not isinstance(value, type)
        and ".lowering.loops." in type(value).__module__
    ):
        changed = {
            field.name: with_fault(getattr(value, field.name), found) for field in fields(value)
        }
        return replace(cast("Any", value), **changed)
    return value


@pytest.fixture
def inject(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], list[bool]]:
    """Damage the loop program of the first group that has an op; returns whether it was found.

    In this process, and in a cache of its own: no key knows of it.
    """
    lower_group = lowering.lower_group

    def arm(op: str) -> list[bool]:
        found: list[bool] = []
        monkeypatch.setenv("INGOT_CACHE", str(tmp_path_factory.mktemp("cache")))
        monkeypatch.setattr(options, "usable_cpu_count", lambda: 1)

        def damaged(group: Group, target: str) -> LoweredGroup:
            lowered = lower_group(group, target)
            if not found and any(node.op == op for node in group.nodes):
                return replace(
                    lowered,
                    programs=cast("tuple[LoopProgram, ...]", with_fault(lowered.programs, found)),
                )
            return lowered

        monkeypatch.setattr(lowering, "lower_group", damaged)
        return found

    return arm


@pytest.mark.broad
@pytest.mark.parametrize(
    "make", [image_model, steps_model, found_model, repeated_model, sums_model]
)
def test_right_bundles_pass(make: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    """Every launch is compared, on generated inputs and open sizes, and agrees."""
    compiled = compile_model(make(), make_options(["native"]))
    path = str(tmp_path / "m.ingot")
    compiled.save(path)
    report = check_bundle(compiled, path, None)
    report.require_equal()
    assert report.launches == len(compiled.target_builds[0].launches)
    assert [list(sizes.values()) for sizes in report.sizes] == [[2]]
    assert report.largest is not None
    assert report.largest.deviation.relative < 1e-5
    assert report.outputs_relative < 1e-5


@pytest.mark.broad
def test_both_ways_to_run_are_checked(tmp_path: Path) -> None:
    """With a shape to be fast at, its kernels are checked beside the general ones; given inputs
    choose their way."""
    compiled = compile_model(image_model(), make_options(["native"], {"x": (3, 3, 8, 8)}))
    path = str(tmp_path / "m.ingot")
    compiled.save(path)
    report = check_bundle(compiled, path, None)
    report.require_equal()
    assert report.sizes == [{"batch": 2}, {}]
    assert report.launches == len(compiled.target_builds[0].launches)
    for batch in (3, 4):
        given = check_bundle(compiled, path, {"x": weights(batch, 3, 8, 8)})
        given.require_equal()
        assert 0 < given.launches < report.launches


@pytest.mark.broad
@pytest.mark.parametrize(
    ("op", "name"), [("relu", "relu0"), ("max_pool", "pool"), ("softmax", "softmax")]
)
def test_fault_in_one_kernel_is_named(
    op: str,
    name: str,
    inject: Callable[[str], list[bool]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The report names the damaged kernel's node, how far it is, and no bundle is left."""
    found = inject(op)
    (tmp_path / "m.onnx").write_bytes(image_model().SerializeToString())
    out = tmp_path / "m.ingot"
    assert main(["compile", "--check", str(tmp_path / "m.onnx"), "-o", str(out), "-q"]) == 4
    assert found
    text = capsys.readouterr().err
    assert text.startswith("error: the kernel of ")
    assert name in text.splitlines()[0]
    assert " differs from the interpreter" in text
    assert "k_" in text
    assert "largest error 0.0" in text
    assert os.listdir(tmp_path) == ["m.onnx"]


@pytest.mark.broad
def test_earlier_bundle_stays(inject: Callable[[str], list[bool]], tmp_path: Path) -> None:
    """A failed check leaves the file of an earlier compilation as it was."""
    (tmp_path / "m.onnx").write_bytes(image_model().SerializeToString())
    out = tmp_path / "m.ingot"
    out.write_bytes(b"earlier")
    inject("softmax")
    assert main(["compile", str(tmp_path / "m.onnx"), "-o", str(out), "-q", "--check"]) == 4
    assert out.read_bytes() == b"earlier"


@pytest.mark.broad
def test_json_tells_both_ways(
    inject: Callable[[str], list[bool]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One object says passed or names launch, kernel, nodes and index of the first difference."""
    (tmp_path / "m.onnx").write_bytes(image_model().SerializeToString())
    arguments = [
        "compile",
        str(tmp_path / "m.onnx"),
        "-o",
        str(tmp_path / "m.ingot"),
        "--json",
        "--check",
    ]
    assert main(arguments) == 0
    assert checked("compile", capsys.readouterr().out)["check"]["passed"]
    inject("max_pool")
    assert main(arguments) == 4
    check = checked("compile", capsys.readouterr().out)["check"]
    assert not check["passed"]
    first = check["first_difference"]
    assert ["pool", "MaxPool"] in first["nodes"]
    assert first["kernel"].startswith("k_")
    assert first["deviation"]["relative"] > 1e-4
    assert len(first["deviation"]["index"]) == 4


def test_given_inputs_are_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--check F.npz`` runs on those arrays; wrong names are refused in the loader's words."""
    (tmp_path / "m.onnx").write_bytes(steps_model().SerializeToString())
    np.savez(tmp_path / "x.npz", x=weights(5, 6))
    np.savez(tmp_path / "wrong.npz", z=weights(5, 6))
    arguments = [
        "compile",
        str(tmp_path / "m.onnx"),
        "-o",
        str(tmp_path / "m.ingot"),
        "-q",
        "--check",
    ]
    assert main([*arguments, str(tmp_path / "x.npz")]) == 0
    assert main([*arguments, str(tmp_path / "wrong.npz")]) == 1
    assert "no input 'z'" in capsys.readouterr().err


@pytest.mark.broad
def test_facade_raises(inject: Callable[[str], list[bool]]) -> None:
    """``ingot.compile(check=...)`` passes a right model and raises for a fault."""
    ingot.compile(steps_model(), check={"x": weights(3, 6)})
    inject("sigmoid")
    with pytest.raises(VerificationError, match="sigmoid"):
        ingot.compile(steps_model(), check=True)


def test_a_wrong_pass_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kernels that agree with a wrongly optimized graph do not hide it: the outputs are compared
    with the import."""
    optimize = pipeline.optimize

    def wrong(graph: Any) -> OptimizedGraph:
        found = optimize(graph)
        nodes = tuple(
            replace(node, op="tanh") if node.op == "sigmoid" else node for node in found.graph.nodes
        )
        return replace(found, graph=replace(found.graph, nodes=nodes))

    monkeypatch.setattr(pipeline, "optimize", wrong)
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path))  # no key knows of it
    with pytest.raises(VerificationError, match=r"output 'y'.*optimized graph"):
        ingot.compile(steps_model(), check=True)


def test_foreign_targets_cannot_be_checked() -> None:
    """A bundle for another architecture alone is refused by name; beside a native one it is left
    out."""
    with pytest.raises(IncompatibleTargetError, match="no variant can be checked"):
        ingot.compile(steps_model(), targets=["aarch64"], check=True)


def test_nothing_to_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--check`` with ``--to`` is a mistake."""
    (tmp_path / "m.onnx").write_bytes(steps_model().SerializeToString())
    assert (
        main(["compile", str(tmp_path / "m.onnx"), "--to", "graph", "--check"])
        == UserError.exit_code
    )
    assert "nothing to check" in capsys.readouterr().err


def test_generated_inputs_are_stated() -> None:
    """The generator is SplitMix64 as its text says, for floats in [-1, 1)."""
    graph = compile_model(steps_model(), make_options(["native"])).graph
    sizes, (x,) = next(generated_inputs(graph))
    mask = (1 << 64) - 1
    z = 5 * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    z ^= z >> 31
    assert x.shape == (2, 6)
    assert list(sizes.values()) == [2]
    assert x[0, 4] == np.float32((z >> 40) / 2.0**23 - 1)


def test_verbs_without_arguments_still_parse(capsys: pytest.CaptureFixture[str]) -> None:
    """The optional file of ``--check`` does not disturb commands without any word."""
    assert main(["identify"]) == 0
    assert "native" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["Loop", "Scan"])
def test_states_of_rank_0(kind: str, tmp_path: Path) -> None:
    """Tensors of rank 0, for which numpy gives numbers, are compared like all others."""
    scalar = helper.make_tensor_value_info("p", TensorProto.FLOAT, [])
    nodes = [
        helper.make_node("Add", ["p", "one"], ["q"], "add"),
        helper.make_node("Identity", ["q"], ["r"], "row"),
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in ("q", "r")]
    one = [numpy_helper.from_array(np.float32(1) + np.zeros((), np.float32), "one")]
    truth = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    if kind == "Loop":
        count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
        more = helper.make_tensor_value_info("d", TensorProto.BOOL, [])
        keep = helper.make_node("Identity", ["c"], ["d"], "keep")
        body = helper.make_graph(
            [*nodes, keep], "body", [count, truth, scalar], [more, *results], one
        )
        node = helper.make_node("Loop", ["n", "", "s"], ["last", "y"], "loop", body=body)
    else:
        each = helper.make_tensor_value_info("e", TensorProto.FLOAT, [])
        total = helper.make_node("Add", ["q", "e"], ["t"], "total")
        results[0] = helper.make_tensor_value_info("t", TensorProto.FLOAT, [])
        body = helper.make_graph([*nodes, total], "body", [scalar, each], results, one)
        node = helper.make_node(
            "Scan", ["s", "x"], ["last", "y"], "scan", body=body, num_scan_inputs=1
        )
    start = helper.make_node("ReduceSum", ["x"], ["s"], "start", keepdims=0)
    model = model_of([start, node], [3], [3], {"n": np.array(3)})
    model.graph.output.append(helper.make_tensor_value_info("last", TensorProto.FLOAT, []))
    compiled = compile_model(model, make_options(["native"]))
    path = str(tmp_path / "m.ingot")
    compiled.save(path)
    report = check_bundle(compiled, path, None)
    report.require_equal()
    assert report.launches >= 4
