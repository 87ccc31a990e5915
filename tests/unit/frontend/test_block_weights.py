"""Products with weights of 4 and 8 bits that are scaled in blocks: kept packed in the bundle,
equal to the product with the dequantized weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tests.harness.codegen_harness import RUNNABLE, require_interpreted
from tests.harness.end_to_end_harness import node, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, translate

import ingot
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.errors import ModelError, UnsupportedError
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_values import Local
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.program import BlockedProduct, Buffer, LoopProgram, Store

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4+avx512vnni")


def model_of(
    nodes: Sequence[NodeProto], depth: int, columns: int, constants: dict[str, Array]
) -> ModelProto:
    """A model of ``x`` [n, depth] to ``y``."""
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    inputs, outputs = [tensor("x", ["n", depth])], [tensor("y", ["n", columns])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def drawn(depth: int, columns: int, block: int, bits: int) -> tuple[Array, Array, Array]:
    """Codes [N, K], scales and codes of zero points [N, K / block]."""
    rng = np.random.default_rng(depth + columns)
    codes = rng.integers(0, 1 << bits, (columns, depth)).astype(np.uint8)
    scale = rng.uniform(0.01, 0.1, (columns, -(-depth // block))).astype(np.float32)
    zero = rng.integers(0, 1 << bits, scale.shape).astype(np.uint8)
    return codes, scale, zero


def weights(codes: Array, scale: Array, zero: Array | int, block: int) -> Array:
    """[K, N] in f64."""
    each = np.repeat(scale, block, 1)[:, : codes.shape[1]].astype(np.float64)
    points = zero if isinstance(zero, int) else np.repeat(zero, block, 1)[:, : codes.shape[1]]
    return np.asarray(((codes.astype(np.float64) - points) * each).T)


def n_bits(depth: int, columns: int, block: int, bits: int, **inputs: Array) -> ModelProto:
    """A model of one MatMulNBits."""
    names = [name if name in inputs else "" for name in ("b", "scale", "zero", "g_idx", "bias")]
    made = helper.make_node(
        "MatMulNBits", ["x", *names], ["y"], domain="com.microsoft",
        K=depth, N=columns, bits=bits, block_size=block,
    )  # fmt: skip
    return model_of([made], depth, columns, inputs)


def packed(codes: Array, bits: int) -> Array:
    """Several codes of the last axis in a byte, the first in the low bits; zeros behind."""
    per_byte = 8 // bits
    missing = -codes.shape[-1] % per_byte
    padded = np.pad(codes, ((0, 0), (0, missing)))
    grouped = padded.reshape(len(codes), -1, per_byte).astype(np.uint16)
    return np.asarray((grouped << (np.arange(per_byte) * bits)).sum(-1).astype(np.uint8))


def blocked_bytes(codes: Array, block: int, bits: int) -> Array:
    """[N, blocks, bytes of a block]."""
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % block)))
    return packed(padded, bits).reshape(len(codes), -1, block * bits // 8)


def ops_of(model: ModelProto) -> list[str]:
    """The core ops that a model becomes."""
    graph, _ = translate(model, MemoryStore())
    return [item.op for item in graph.nodes]


def check(
    model: ModelProto, expected: Array, folder: Path, rows: Sequence[int] = (1, 3, 11)
) -> Path:
    """Run for some numbers of rows; compare with the product in f64."""
    rng, path = np.random.default_rng(1), folder / "m.ingot"
    ingot.compile(model, targets=TARGETS).save(path)
    feeds = [
        {"x": rng.standard_normal((count, len(expected))).astype(np.float32)} for count in rows
    ]
    for feed, result in zip(feeds, run_all_ways(path, feeds), strict=True):
        wanted = feed["x"].astype(np.float64) @ expected
        scale = np.abs(feed["x"]).astype(np.float64) @ np.abs(expected)
        assert np.all(np.abs(result["y"] - wanted) <= 4e-7 * scale + 1e-6)
    return path


@pytest.mark.broad
@pytest.mark.parametrize("with_zero", [False, True])
@pytest.mark.parametrize(("bits", "depth", "columns", "block"), [(4, 256, 70, 32), (8, 96, 16, 32)])
def test_mat_mul_n_bits(
    bits: int, depth: int, columns: int, block: int, *, with_zero: bool, tmp_path: Path
) -> None:
    """Blocks of 4- and 8-bit numbers, with and without zero points, columns that fill no panel."""
    codes, scale, zero = drawn(depth, columns, block, bits)
    given: dict[str, Array] = {"b": blocked_bytes(codes, block, bits), "scale": scale.reshape(-1)}
    if with_zero:
        given["zero"] = packed(zero, bits).reshape(-1)
    model = n_bits(depth, columns, block, bits, **given)
    assert "matmul_blocks" in ops_of(model)
    expected = weights(codes, scale, zero if with_zero else 1 << (bits - 1), block)
    check(model, expected, tmp_path)


@pytest.mark.broad
@pytest.mark.parametrize("name", ["INT4", "UINT4", "INT8", "UINT8"])
@pytest.mark.parametrize("form", ["matmul", "transposed", "gemm"])
@pytest.mark.parametrize("with_zero", [False, True])
def test_dequantized_in_blocks(name: str, form: str, tmp_path: Path, *, with_zero: bool) -> None:
    """DequantizeLinear in blocks before MatMul, as it lies, through Transpose, in Gemm; an absent
    zero point is 0 for unsigned numbers, too."""
    depth, columns, block = 64, 20, 16
    bits, dtype = (
        (4 if "4" in name else 8),
        np.dtype(getattr(ml_dtypes, name.lower(), name.lower())),
    )
    codes, scale, zero = drawn(depth, columns, block, bits)
    half = 1 << (bits - 1) if name.startswith("I") else 0
    numbers, points = codes.astype(np.int16) - half, zero.astype(np.int16) - half
    expected = weights(codes, scale, zero if with_zero else half, block)
    given = [numbers.astype(dtype), scale, points.astype(dtype)][: 3 if with_zero else 2]
    along = 1
    if form == "matmul":
        given, along = [part.T for part in given], 0
    names = ["q", "s", "z"][: len(given)]
    nodes = [node("DequantizeLinear", " ".join(names), "w", axis=along, block_size=block)]
    if form == "transposed":
        nodes += [node("Transpose", "w", "t"), node("MatMul", "x t", "y")]
    elif form == "gemm":
        nodes.append(node("Gemm", "x w", "y", transB=1))
    else:
        nodes.append(node("MatMul", "x w", "y"))
    constants = dict(zip(names, (np.ascontiguousarray(part) for part in given), strict=True))
    model = model_of(nodes, depth, columns, constants)
    assert "matmul_blocks" in ops_of(model)
    check(model, expected, tmp_path, rows=(2,))


def _by_column(name: str, form: str, *, with_zero: bool) -> tuple[ModelProto, Array]:
    """A product with 4-bit numbers of one scale for a column, or for all; [K, N] in f64."""
    depth, columns, along = 96, 20, 1
    dtype = np.dtype(getattr(ml_dtypes, name.lower()))
    codes, scale, zero = drawn(depth, columns, depth, 4)
    if form == "all":
        scale[:], zero[:] = scale[0], zero[0]
    half = 8 if name == "INT4" else 0
    expected = weights(codes, scale, zero if with_zero else half, depth)
    parts = [codes.astype(np.int16) - half, scale[:, 0], zero[:, 0].astype(np.int16) - half]
    if form == "all":
        parts[1:] = [part[:1].reshape(()) for part in parts[1:]]
    if form == "turned":
        along = 0
    else:
        parts[0] = parts[0].T
    names = ["q", "s", "z"][: 3 if with_zero else 2]
    types = [dtype, np.dtype(np.float32), dtype]
    constants = {
        key: np.ascontiguousarray(part.astype(kind)).reshape(part.shape)
        for key, part, kind in zip(names, parts, types, strict=False)
    }
    nodes = [node("DequantizeLinear", " ".join(names), "w", axis=along)]
    nodes.append(node("Gemm", "x w", "y", transB=int(form == "turned")))
    return model_of(nodes, depth, columns, constants), expected


@pytest.mark.broad
@pytest.mark.parametrize("name", ["INT4", "UINT4"])
@pytest.mark.parametrize("form", ["columns", "turned", "all"])
@pytest.mark.parametrize("with_zero", [False, True])
def test_scaled_in_columns(name: str, form: str, tmp_path: Path, *, with_zero: bool) -> None:
    """DequantizeLinear of 4-bit weights without blocks before a product of floats: the same."""
    model, expected = _by_column(name, form, with_zero=with_zero)
    assert "matmul_blocks" in ops_of(model)
    check(model, expected, tmp_path, rows=(1, 2))


def test_columns_that_are_no_blocks() -> None:
    """Many rows are multiplied in floats, and quantized ones in integers, also behind what moves
    them; a scale along the depth belongs to no column."""
    model, _ = _by_column("INT4", "columns", with_zero=False)
    many = ModelProto.FromString(model.SerializeToString())
    many.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 64
    assert "matmul_blocks" not in ops_of(many)
    rows = ModelProto.FromString(model.SerializeToString())
    rows.graph.node[0].attribute[0].i = 0
    rows.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.ones(96, np.float32), "s"))
    assert "matmul_blocks" not in ops_of(rows)
    constants = [
        numpy_helper.from_array(np.array(0.1, np.float32), "sa"),
        numpy_helper.from_array(np.array(7, np.uint8), "za"),
    ]
    for move in ("Identity", "Relu"):
        quantized = ModelProto.FromString(model.SerializeToString())
        quantized.graph.initializer.extend(constants)
        before = [
            node("QuantizeLinear", "x sa za", "xq"),
            node("DequantizeLinear", "xq sa za", "xd"),
            node(move, "xd", "xm"),
            node("Transpose", "xm", "xt"),
        ]
        after = [*before, *quantized.graph.node]
        after[-1].input[0] = "xt"
        after[-1].attribute.append(helper.make_attribute("transA", 1))
        del quantized.graph.node[:]
        quantized.graph.node.extend(after)
        assert ("matmul_blocks" in ops_of(quantized)) == (move == "Relu")


def test_other_shapes_are_computed(tmp_path: Path) -> None:
    """Blocks that do not divide the depth, 2 bits, float zero points and a bias are dequantized; no
    kernel is needed."""
    codes, scale, zero = drawn(40, 6, 16, 4)
    bias = np.arange(6, dtype=np.float32)
    given: dict[str, Array] = {
        "b": blocked_bytes(codes, 16, 4),
        "scale": scale.reshape(-1),
        "bias": bias,
    }
    model = n_bits(40, 6, 16, 4, **given)
    assert "matmul_blocks" not in ops_of(model)
    path = tmp_path / "m.ingot"
    ingot.compile(model).save(path)
    x = np.random.default_rng(2).standard_normal((3, 40)).astype(np.float32)
    (result,) = run_all_ways(path, [{"x": x}])
    np.testing.assert_allclose(result["y"], x @ weights(codes, scale, 8, 16) + bias, 1e-5, 1e-5)
    two, scales, _ = drawn(32, 6, 16, 2)
    points = zero[:, :2].astype(np.float32) + np.float32(0.5)
    model = n_bits(32, 6, 16, 2, b=blocked_bytes(two, 16, 2), scale=scales, zero=points)
    ingot.compile(model).save(path)
    (result,) = run_all_ways(path, [{"x": x[:, :32]}])
    expected = _with_float_zero(two, scales, points)
    np.testing.assert_allclose(result["y"], x[:, :32] @ expected, 1e-5, 1e-5)


def _with_float_zero(codes: Array, scale: Array, zero: Array) -> Array:
    each, points = np.repeat(scale, 16, 1), np.repeat(zero, 16, 1)
    return np.asarray(((codes - points) * each).T)


@pytest.mark.broad
def test_the_bundle_is_as_small_as_the_model(tmp_path: Path) -> None:
    """The weights of a bundle have at most 1.15 times the bytes of those of the model, with scales
    of f16 and zero points."""
    codes, scale, zero = drawn(4096, 4096, 32, 4)
    given: dict[str, Array] = {
        "b": blocked_bytes(codes, 32, 4),
        "scale": scale.astype(np.float16).reshape(-1),
    }
    given["zero"] = packed(zero, 4).reshape(-1)
    model = n_bits(4096, 4096, 32, 4, **given)
    path = tmp_path / "m.ingot"
    ingot.compile(model).save(path)
    model_bytes = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    assert path.stat().st_size < 1.15 * model_bytes
    assert path.stat().st_size > model_bytes / 2


def _table(bits: int, axis_numbers: str) -> tuple[ModelProto, Array]:
    """A lookup of rows of a table of few bits, and the table in floats."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 1 << bits, (10, 64)).astype(np.uint8)
    scale = rng.uniform(0.1, 1, (10, 4)).astype(np.float32)
    signed = axis_numbers == "INT4"
    half = 1 << (bits - 1)
    if axis_numbers == "bytes":
        data = numpy_helper.from_array(packed(codes, bits), "data")
    else:
        kind = np.dtype(getattr(ml_dtypes, axis_numbers.lower()))
        data = numpy_helper.from_array(
            (codes.astype(np.int16) - half * signed).astype(kind), "data"
        )
    zero = 0 if axis_numbers == "UINT4" else half
    made = helper.make_node(
        "GatherBlockQuantized", ["data", "i", "scales"], ["y"], domain="com.microsoft",
        block_size=16, bits=bits, quantize_axis=-1,
    )  # fmt: skip
    tensors = [data, numpy_helper.from_array(scale, "scales")]
    inputs = [tensor("i", ["n"], TensorProto.INT64)]
    graph = helper.make_graph([made], "g", inputs, [tensor("y", ["n", 64])], tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model, weights(codes, scale, zero, 16).T


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    ("bits", "numbers"), [(4, "bytes"), (8, "bytes"), (4, "INT4"), (4, "UINT4")]
)
def test_gather_block_quantized(bits: int, numbers: str, tmp_path: Path) -> None:
    """Rows of a table of 4- and 8-bit numbers, packed or of a 4-bit type."""
    model, table = _table(bits, numbers)
    path, chosen = tmp_path / "m.ingot", np.array([3, 0, 9], np.int64)
    ingot.compile(model).save(path)
    (result,) = run_all_ways(path, [{"i": chosen}])
    np.testing.assert_allclose(result["y"], table[chosen], 1e-6)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"b": np.zeros(7, np.uint8)}, "expected B of 256 elements, got u8[7]"),
        ({"scale": np.zeros(5, np.float32)}, "expected scales of 16 elements, got f32[5]"),
        ({"zero": np.zeros(5, np.uint8)}, "expected zero_points of 8 elements, got u8[5]"),
        ({"block": 24}, "block_size to be a power of 2, at least 16"),
        ({"depth": 65}, "expected A of depth K = 65"),
    ],
)
def test_wrong_weights_are_refused(change: dict[str, Any], why: str) -> None:
    """Sizes that contradict K, N and block_size are named with what was expected."""
    codes, scale, zero = drawn(64, 8, 32, 4)
    given: dict[str, Any] = {"b": blocked_bytes(codes, 32, 4), "scale": scale.reshape(-1)}
    given["zero"] = packed(zero, 4).reshape(-1)
    sizes = {"depth": 64, "block": 32}
    sizes.update({name: value for name, value in change.items() if name in sizes})
    given.update({name: value for name, value in change.items() if name not in sizes})
    model = n_bits(sizes["depth"], 8, sizes["block"], 4, **given)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 64
    with pytest.raises(ModelError) as caught:
        translate(model, MemoryStore())
    assert why in str(caught.value)


def test_an_order_of_the_depth_is_refused() -> None:
    """By name."""
    codes, scale, _ = drawn(64, 8, 32, 4)
    order = np.arange(64, dtype=np.int32)
    model = n_bits(64, 8, 32, 4, b=blocked_bytes(codes, 32, 4), scale=scale, g_idx=order)
    with pytest.raises(UnsupportedError, match="g_idx"):
        translate(model, MemoryStore())


@pytest.mark.sweep(3)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("with_zeros", [False, True])
def test_machine_code_equals_the_interpreter(bits: int, *, signed: bool, with_zeros: bool) -> None:
    """Of the loops of a blocked product, whose text parses back; for every level of this
    machine."""
    rows, columns, blocks, block = 5, 20, 2, 8
    rng = np.random.default_rng(4)
    statement = BlockedProduct(
        "row", rows, 0, 64, "column", columns, 16 * symbol("p"), blocks, block,
        0, blocks * block * symbol("row"), 1, 2, 3 if with_zeros else None, bits, signed, "acc",
        (Store(4, symbol("column") + columns * symbol("row"), Local("acc", "f32")),),
    )  # fmt: skip
    dtypes: tuple[DType, ...] = ("f32", "u8", "f32", "u8", "f32")
    buffers = tuple(Buffer(dtype, written=at == 4) for at, dtype in enumerate(dtypes))
    program = LoopProgram(buffers, (), "p", 2, 1, (statement,))
    assert parse_loops(print_loops(program)) == program
    arrays: list[Array] = [
        rng.standard_normal(rows * blocks * block).astype(np.float32),
        rng.integers(0, 256, 2 * 16 * blocks * block * bits // 8).astype(np.uint8),
        rng.uniform(0.1, 1, 2 * 16 * blocks).astype(np.float32),
        rng.integers(0, 1 << bits, 2 * 16 * blocks).astype(np.uint8),
        np.zeros(rows * columns, np.float32),
    ]
    require_interpreted(program, RUNNABLE, arrays)
