"""Products of floats with weights of 8 bits that have a scale for each column, or one for all: bytes
in the bundle, widened by the kernels, as exact as f32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.end_to_end_harness import node, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, translate
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, f32, normal
from tests.unit.frontend.test_block_weights import TARGETS, check, drawn, model_of, weights

import ingot
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.lowering.constants.constant_expression import constant_values
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.passes.pipeline import optimize
from ingot_compiler.targets.target import parse_target

FORMS = ("columns", "turned", "transposed", "all")
ZEROS = ("none", "middle", "columns")


def made(name: str, form: str, zeros: str, depth: int, columns: int) -> tuple[ModelProto, Array]:
    """A product with 8-bit weights, and these as [K, N] in f64."""
    codes, scale, zero = drawn(depth, columns, depth, 8)
    half = 128 if name == "INT8" else 0
    if form == "all":
        scale[:], zero[:] = scale[0], zero[0]
    if zeros == "middle":
        zero[:] = 128
    expected = weights(codes, scale, half if zeros == "none" else zero, depth)
    parts = [codes.astype(np.int16) - half, scale[:, 0], zero[:, 0].astype(np.int16) - half]
    if form == "all":
        parts[1:] = [part[:1].reshape(()) for part in parts[1:]]
    is_turned = form in ("turned", "transposed")
    parts[0] = parts[0] if is_turned else parts[0].T
    names, byte = ["q", "s", "z"][: 2 if zeros == "none" else 3], name.lower()
    constants: dict[str, Array] = {
        key: np.ascontiguousarray(part.astype(kind)).reshape(part.shape)
        for key, part, kind in zip(names, parts, (byte, "float32", byte), strict=False)
    }
    nodes = [node("DequantizeLinear", " ".join(names), "w", axis=int(not is_turned))]
    if form == "transposed":
        nodes += [node("Transpose", "w", "t"), node("MatMul", "x t", "y")]
    else:
        nodes.append(node("Gemm", "x w", "y", transB=int(form == "turned")))
    return model_of(nodes, depth, columns, constants), expected


def of_rows(model: ModelProto, rows: int) -> ModelProto:
    """The model for so many rows."""
    found: ModelProto = ModelProto.FromString(model.SerializeToString())
    for value in (found.graph.input[0], found.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = rows
    return found


@pytest.mark.parametrize("name", ["INT8", "UINT8"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.sweep(60)
def test_dequantized_in_columns(name: str, form: str, zeros: str, tmp_path: Path) -> None:
    """DequantizeLinear per axis and per tensor before MatMul and Gemm, for any number of rows, a depth
    that is no multiple of four and columns that fill no panel."""
    model, expected = made(name, form, zeros, 147, 70)
    check(model, expected, tmp_path, rows=(1, 2, 11, 70))


@pytest.mark.broad
@pytest.mark.parametrize("zeros", ["none", "columns"])
@pytest.mark.parametrize("rows", [1, 3, 8, 33])
def test_bits_do_not_depend_on_what_is_known_of_rows(zeros: str, rows: int, tmp_path: Path) -> None:
    """A kernel for a known number of rows gives the bits of the one for any."""
    model, _ = made("UINT8", "columns", zeros, 200, 40)
    x = np.random.default_rng(rows).standard_normal((rows, 200)).astype(np.float32)
    found: list[Array] = []
    for number, each in enumerate((model, of_rows(model, rows))):
        path = tmp_path / f"{number}.ingot"
        ingot.compile(each, targets=TARGETS).save(path)
        found += [result["y"] for result in run_all_ways(path, [{"x": x}])]
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.broad
@pytest.mark.parametrize("zeros", ["none", "columns"])
def test_strassens_products_widen_bytes(zeros: str, tmp_path: Path) -> None:
    """Many rows, a long depth: the bytes are found where they lie, and their zero points."""
    model, expected = made("UINT8", "columns", zeros, 768, 192)
    known, x = of_rows(model, 70), normal(3, 70, 768)
    path = tmp_path / "m.ingot"
    ingot.compile(known, targets=("x86-64-v4",)).save(path)
    (result,) = run_all_ways(path, [{"x": x}])
    scale = np.abs(x).astype(np.float64) @ np.abs(expected)
    assert np.all(np.abs(result["y"] - x.astype(np.float64) @ expected) <= 4e-7 * scale)


@pytest.mark.broad
def test_weights_of_16_bits_models(tmp_path: Path) -> None:
    """A product in f16 is computed in f32 and rounded once."""
    codes, scale, _ = drawn(64, 20, 64, 8)
    numbers = (codes.astype(np.int16) - 128).astype(np.int8)
    constants: dict[str, Array] = {
        "q": np.ascontiguousarray(numbers.T),
        "s": scale[:, 0].astype(np.float16),
    }
    nodes = [node("DequantizeLinear", "q s", "w", axis=1), node("MatMul", "x w", "y")]
    graph = helper.make_graph(
        nodes,
        "g",
        [tensor("x", ["n", 64], TensorProto.FLOAT16)],
        [tensor("y", ["n", 20], TensorProto.FLOAT16)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = tmp_path / "m.ingot"
    ingot.compile(model, targets=TARGETS).save(path)
    x = normal(4, 3, 64).astype(np.float16)
    (result,) = run_all_ways(path, [{"x": x}])
    exact = x.astype(np.float64) @ (numbers.T.astype(np.float64) * constants["s"])
    np.testing.assert_allclose(result["y"], exact, rtol=2**-10)


@pytest.mark.broad
@pytest.mark.parametrize("zeros", ["none", "columns"])
def test_the_bundle_is_as_small_as_the_model(zeros: str, tmp_path: Path) -> None:
    """The weights of a bundle have at most 1.15 times the bytes of those of the model."""
    model, _ = made("UINT8", "columns", zeros, 2048, 2048)
    path = tmp_path / "m.ingot"
    ingot.compile(model, targets=("x86-64-v4",)).save(path)
    model_bytes = sum(len(item.raw_data) for item in model.graph.initializer)
    assert model_bytes / 2 < path.stat().st_size < 1.15 * model_bytes


def optimized(model: ModelProto) -> list[str]:
    """The ops of a model behind all passes."""
    graph, _ = translate(model, MemoryStore())
    return [item.op for item in optimize(graph).graph.nodes]


@pytest.mark.parametrize("form", FORMS)
def test_products_of_integers_stay_so(form: str) -> None:
    """Activations that are quantized, too, are multiplied as bytes."""
    model, _ = made("INT8", form, "none", 64, 20)
    constants: tuple[Array, ...] = (np.array(0.1, np.float32), np.array(7, np.uint8))
    for name, array in zip(("sa", "za"), constants, strict=True):
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    before = [
        node("QuantizeLinear", "x sa za", "xq"),
        node("DequantizeLinear", "xq sa za", "xd"),
    ]
    nodes = [*before, *model.graph.node]
    nodes[-1].input[0] = "xd"  # of the product
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    assert "matmul_integer" in optimized(model)


@pytest.mark.parametrize("name", ["INT8", "UINT8"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("zeros", ZEROS)
def test_scales_stand_behind_products(name: str, form: str, zeros: str) -> None:
    """However a model spells its weights, the product reads integers that kernels widen."""
    model, _ = made(name, form, zeros, 64, 20)
    assert optimized(model)[-3:] == ["cast", "matmul", "mul"]


def product(builder: Builder, numbers: Array, zero: Array | None, scale: Array) -> int:
    """The first input times dequantized weights, as the frontend composes them."""
    wide = builder.op("cast", builder.constant(numbers), dtype="f32")
    if zero is not None:
        wide = builder.op("sub", wide, builder.op("cast", builder.constant(zero), dtype="f32"))
    return builder.op("matmul", 0, builder.op("mul", wide, builder.constant(scale)))


@pytest.mark.sweep(5)
@pytest.mark.parametrize("rows", [1, 5, 14])
@pytest.mark.parametrize("with_zero", [False, True])
def test_kernels_are_those_of_the_interpreter(rows: int, *, with_zero: bool) -> None:
    """Loops that read bytes, with what is added to columns, and a bias and an activation behind."""
    rng = np.random.default_rng(rows)
    numbers = rng.integers(0, 256, (30, 37)).astype(np.uint8)
    zero = rng.integers(0, 256, (1, 37)).astype(np.uint8) if with_zero else None
    builder = Builder([f32(rows, 30)])
    result = product(builder, numbers, zero, rng.uniform(0.1, 1, (1, 37)).astype(np.float32))
    biased = builder.op("add", result, builder.constant(normal(1, 37)))
    result = builder.op("relu", biased)
    check_graph(builder, [result], [normal(2, rows, 30)], 1e-5, RUNNABLE)


@pytest.mark.parametrize("with_zero", [False, True])
def test_nothing_wider_than_bytes_is_stored(*, with_zero: bool) -> None:
    """The kernel reads the matrix as it is in the model."""
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 256, (32, 64)).astype(np.uint8)
    zero = rng.integers(0, 256, (1, 64)).astype(np.uint8) if with_zero else None
    builder = Builder([f32(2, 32)])
    result = product(builder, numbers, zero, np.ones((1, 64), np.float32))
    compiled = compile_graph(builder.finish([result]), parse_target("x86-64-v4"))
    (launch,) = launches_of(compiled.fused)
    sizes = {operand.type.dtype: operand.type.element_count for operand in launch.group.operands}
    assert sizes["u8"] == numbers.size
    assert sizes["f32"] == 64


@pytest.mark.parametrize("name", ["x86-64-v4:znver4", "x86-64-v4", "x86-64-v4:sapphirerapids"])
def test_elements_of_a_come_from_memory_where_one_multiply_add_begins(name: str) -> None:
    """On Zen 4 no instruction of the product's loop brings an element of A into all lanes of a
    register, which takes the unit that widens. Where two multiply-adds begin in a cycle, one does so
    for all of them: operands from memory would be more loads than there are."""
    builder, target = Builder([f32(8, 192)]), parse_target(name)
    numbers = np.ones((192, 48), np.int8)
    result = product(builder, numbers, None, np.ones((1, 48), np.float32))
    (program,) = compile_graph(builder.finish([result]), target).programs
    text = assembly_text(llvm_text(kernel_module(program, target)), target)
    (loop,) = [part for part in text.split("\n.LBB") if part.count("vfmadd231ps") >= 24]
    assert "vpmovsxbd" in loop
    of_memory = loop.count("vfmadd231ps") if name.endswith("znver4") else 0
    assert loop.count("{1to16}") == of_memory
    assert ("vbroadcastss" in loop) == (not of_memory)


def test_large_weights_are_no_work_of_a_call() -> None:
    """Weights of hundreds of MB in bytes are folded, although all of them in f32 would be too much."""
    builder = GraphBuilder([f32(1, 8192)])
    value, weighed = 0, list[int]()
    for number in range(6):
        numbers = builder.add(
            "constant", (), {"weight": str(number), "dtype": "i8", "shape": (8192, 8192)}
        )
        zero = builder.add(
            "constant", (), {"weight": f"z{number}", "dtype": "i32", "shape": (8192,)}
        )
        wide = builder.add("cast", (numbers,), {"dtype": "i32"})
        moved = builder.add("add", (wide, zero), {})
        weighed.append(builder.add("cast", (moved,), {"dtype": "f32"}))
        value = builder.add("matmul", (value, weighed[-1]), {})
    assert constant_values(builder.finish([value])) >= set(weighed)
