"""Products of pairs of bf16: code against the interpreter bit by bit, whole models with
``--precision bf16`` against float64, what is refused."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import GraphProto, TensorProto, helper
from tests.harness.codegen_harness import BF16_PRODUCTS, Array, interpret, run_program
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.kernels_harness import Kernel, aligned, empty
from tests.harness.lowering_harness import assert_close, normal
from tests.unit.end_to_end.test_models import STATIC, Cases
from tests.unit.lowering.test_contraction_dtypes import M, packed, program

import ingot
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.ir.errors import InternalError, UserError
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.verify_loops import verify_loops
from ingot_compiler.targets.target import Target, parse_target

Output = pytest.CaptureFixture[str]
NAME = "x86-64-v4+avx512bf16"
TARGET = parse_target(NAME)
PAIRS: tuple[DType, DType, DType] = ("bf16", "bf16", "f32")
# Denormals of both signs, the least and the greatest number, infinity, NaN, zeros.
EDGES = (0x0001, 0x8001, 0x007F, 0x0080, 0x8080, 0x7F7F, 0xFF7F, 0x7F80, 0x7FC0, 0x0000, 0x8000)


def rounded(values: Array) -> Array:
    """The bits of the nearest bf16."""
    return aligned(values.astype(ml_dtypes.bfloat16).view(np.uint16), np.uint16)


def drawn(shape: tuple[int, int], seed: int, edges: float) -> Array:
    """Numbers of magnitudes that are far apart, some of them ``EDGES``."""
    draw = np.random.default_rng(seed)
    numbers = draw.standard_normal(shape) * 2.0 ** draw.integers(-70, 60, shape)
    bits = rounded(numbers.astype(np.float32))
    return aligned(np.where(draw.random(shape) < edges, draw.choice(EDGES, shape), bits), np.uint16)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("target", BF16_PRODUCTS, ids=str)
@pytest.mark.parametrize("edges", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("sizes", [(1, 5, 1), (7, 40, 2), (4, 19, 9), (13, 33, 64)])
def test_code_equals_the_interpreter(
    target: Target, sizes: tuple[int, int, int], edges: float
) -> None:
    """Each rounding, each denormal that counts as 0, infinities and NaN: tails of rows, columns and
    depth, nothing read beyond a row of A; the text form reads back."""
    rows, columns, depth = sizes
    a, b = drawn((rows, depth), 1, edges), drawn((depth, columns), 2, edges)
    stored, loops = packed(b, 2), program(target, sizes, PAIRS, 2)
    verify_loops(loops)
    assert parse_loops(print_loops(loops)) == loops
    c, expected, opened = empty((rows, columns)), empty((rows, columns)), empty((rows, columns))
    run_program(loops, target, [a, stored, c])
    with np.errstate(all="ignore"):
        interpret(loops, target, [a.ravel(), stored.ravel(), expected.ravel()], {})
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(c), ~number)
    np.testing.assert_array_equal(c[number].view(np.uint32), expected[number].view(np.uint32))
    open_rows = program(target, (M, columns, depth), PAIRS, 2)
    Kernel(open_rows, target).run([a, stored, opened], (rows,), parts=3)
    np.testing.assert_array_equal(opened, c)


@pytest.mark.parametrize("target", BF16_PRODUCTS, ids=str)
def test_sums_are_those_of_the_rounded_factors(target: Target) -> None:
    """An oracle that knows no pairs: float64."""
    a, b = normal(1, 5, 301), normal(2, 301, 37)
    c = empty((5, 37))
    run_program(
        program(target, (5, 37, 301), PAIRS, 2), target, [rounded(a), packed(rounded(b), 2), c]
    )
    exact = [each.astype(ml_dtypes.bfloat16).astype(np.float64) for each in (a, b)]
    np.testing.assert_allclose(c, exact[0] @ exact[1], 0, 301 * 2.0**-23)


def test_the_instruction_is_used_where_it_is() -> None:
    """One for two products, on any machine that compiles; elsewhere the compiler knows none."""
    text = llvm_text(kernel_module(program(TARGET, (7, 40, 7), PAIRS, 2), TARGET))
    assert "dpbf16ps.512" in text
    assert compile_object(text, TARGET, verify=True)[:4] == b"\x7fELF"
    other = parse_target("x86-64-v4")
    with pytest.raises(InternalError, match="no products of bf16"):
        kernel_module(program(other, (7, 40, 7), PAIRS, 2), other)


MODEL = make_model(
    [
        node("Conv", "x w1", "a", name="edges", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "a", "b"),
        node("Conv", "b w2 c2", "c", name="points"),
        node("Add", "b c", "d"),
        node("Conv", "d w3", "e", name="groups", group=2, pads=[1, 1, 1, 1]),
        node("Conv", "e w4", "f", name="depthwise", group=32, pads=[1, 1, 1, 1]),
        node("Reshape", "f shape", "g"),
        node("Gemm", "g w5 c5", "h", name="gemm", transB=1),
        node("MatMul", "g w6", "i", name="matmul"),
        node("Add", "h i", "y"),
    ],
    [tensor("x", [2, 3, 17, 15])],
    [tensor("y", None)],
    {
        "w1": normal(0, 32, 3, 3, 3),
        "w2": normal(1, 32, 32, 1, 1),
        "c2": normal(2, 32),
        "w3": normal(3, 32, 16, 3, 3),
        "w4": normal(4, 32, 1, 3, 3),
        "shape": np.array([2, -1], np.int64),
        "w5": normal(5, 21, 32 * 9 * 8) * 0.01,
        "c5": normal(6, 21),
        "w6": normal(7, 32 * 9 * 8, 21) * 0.01,
    },
)
FEED = {"x": normal(8, 2, 3, 17, 15)}


@pytest.mark.broad
@pytest.mark.parametrize("target", BF16_PRODUCTS, ids=str)
def test_models_round_the_factors_of_products(target: Target, tmp_path: Path) -> None:
    """The error is that of bf16, and all ways to run agree; the weights take half the bytes."""
    paths = [tmp_path / "f32.ingot", tmp_path / "bf16.ingot"]
    for path in paths:
        ingot.compile(MODEL, targets=str(target), precision=path.stem).save(path)
    exact, y = (run_all_ways(path, [FEED])[0]["y"] for path in paths)
    error = np.sqrt(np.mean((y - exact) ** 2) / np.mean(exact**2))
    assert 1e-4 < error < 1e-2
    assert describe_bundle(paths[1])["lock"]["options"]["precision"] == "bf16"
    assert paths[1].stat().st_size < 0.75 * paths[0].stat().st_size


@pytest.mark.broad
def test_rounding_joins_the_kernel_that_makes_the_value(tmp_path: Path, capsys: Output) -> None:
    """What only products read is stored in bf16; what others read too is rounded once for all
    products. Three channels leave one without its pair, and stay f32."""
    path = tmp_path / "m.ingot"
    ingot.compile(MODEL, targets=NAME, precision="bf16").save(path)
    assert main(["inspect", str(path)]) == 0
    launches = capsys.readouterr().out.split("launches of")[1]
    lines = [" ".join(line.split()[2:]) for line in launches.splitlines()[1:]]
    assert [line for line in lines if "fill_halo" not in line] == LAUNCHES


LAUNCHES = [
    "pointwise f32[2, 3, 17, 15]",
    "conv f32[2, 32, 9, 8] edges (Conv), b (Relu)",
    "pointwise bf16[2, 32, 9, 8] points (Conv)",
    "conv_bf16 bf16[2, 32, 9, 8] points (Conv), d (Add), groups (Conv)",
    "conv_bf16 f32[2, 32, 9, 8] groups (Conv)",
    "depthwise f32[2, 32, 9, 8] depthwise (Conv)",
    "pointwise f32[2, 32, 9, 8] depthwise (Conv)",
    "pointwise bf16[2, 2304] gemm (Gemm)",
    "matmul_bf16 f32[2, 21] gemm (Gemm)",
    "matmul_bf16 f32[2, 21] matmul (MatMul), y (Add)",
]


@pytest.mark.parametrize(
    ("targets", "devices", "what"),
    [
        (["x86-64-v4"], {}, "a target without products of bf16"),
        ([NAME, "x86-64-v3"], {}, "a target without products of bf16"),
        (["aarch64"], {}, "a target without products of bf16"),
        ([NAME], {"acc": "cpu:1,target=x86-64-v3"}, "device acc has no products of bf16"),
    ],
)
def test_what_has_no_such_products(targets: list[str], devices: dict[str, str], what: str) -> None:
    """Every target of a bundle has the instruction, and every device runs the host's code."""
    with pytest.raises(UserError, match=what) as raised:
        make_options(targets, devices=devices, precision="bf16")
    assert "precision" in str(raised.value.do)
    beside = make_options([NAME], devices={"acc": "cpu:1"}, precision="bf16")
    assert [device.target for device in beside.devices] == [NAME]


def branch(weights: str) -> GraphProto:
    """A product of a value from outside."""
    result = tensor("out", [5, 32])
    return helper.make_graph([node("MatMul", f"r {weights}", "out")], "branch", [], [result])


@pytest.mark.parametrize("target", BF16_PRODUCTS, ids=str)
def test_branches_round_for_themselves(target: Target, tmp_path: Path) -> None:
    """What one branch rounds is not there in the other one, nor behind them."""
    weights = {name: normal(number, 32, 32) / 6 for number, name in enumerate("uvw")}
    nodes = [
        node("Relu", "x", "r"),
        node("If", "c", "a", then_branch=branch("u"), else_branch=branch("v")),
        node("MatMul", "r w", "b"),
        node("Add", "a b", "y"),
    ]
    inputs = [tensor("x", [5, 32]), tensor("c", [], TensorProto.BOOL)]
    model = make_model(nodes, inputs, [tensor("y", None)], weights)
    ingot.compile(model, targets=str(target), precision="bf16").save(tmp_path / "m.ingot")
    x = normal(4, 5, 32)
    results = run_all_ways(
        tmp_path / "m.ingot", [{"x": x, "c": np.array(c)} for c in (True, False)]
    )
    for result, name in zip(results, "uv", strict=True):
        assert_close(np.maximum(x, 0) @ (weights[name] + weights["w"]), result["y"], 1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("target", BF16_PRODUCTS, ids=str)
@pytest.mark.parametrize("model", sorted(set(STATIC) - {"clip", "detector"}))
def test_architectures_are_as_near_as_bf16(model: str, target: Target, tmp_path: Path) -> None:
    """What exporters write: two to three digits remain. The two that are left out end with a
    number that cancels to almost nothing, and with a choice by scores."""
    cases = Cases(model, dynamic=False)
    ingot.compile(cases.path, targets=str(target), precision="bf16").save(tmp_path / "m.ingot")
    results = run_all_ways(tmp_path / "m.ingot", cases.feeds)
    for expected, result in zip(cases.expected, results, strict=True):
        for name, array in expected.items():
            assert_close(array, result[name], 3e-2)


PROJECT = f"""\
[model.m]
source = "m.onnx"
[bundle.b]
model = "m"
targets = ["{NAME}"]
precision = "bf16"
[export.c]
bundle = "b"
kind = "c-source"
output = "dist/c"
"""


def test_projects_ask_for_it_and_c_has_none(tmp_path: Path, capsys: Output) -> None:
    """The bundle of ``ingot.toml`` is that of Python; its export as C is refused."""
    (tmp_path / "m.onnx").write_bytes(MODEL.SerializeToString())
    (tmp_path / "ingot.toml").write_text(PROJECT)
    assert main(["build", "-C", str(tmp_path)]) == 3
    assert "C source has no products of bf16" in capsys.readouterr().err
    path = tmp_path / "m.ingot"
    ingot.compile(tmp_path / "m.onnx", targets=NAME, precision="bf16").save(path)
    (built,) = tmp_path.rglob("dist/b.ingot")
    assert built.read_bytes() == path.read_bytes()
