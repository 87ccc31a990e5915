"""Element types of at most eight bits that numpy has not: stored and moved as bits, converted
exactly as ``ml_dtypes`` does, refused where an op would compute in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from tests.harness.end_to_end_harness import node, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, translate

import ingot
import ingot_runtime
from ingot_artifacts.bundle.version_minor import version_minor
from ingot_artifacts.inspect.describe import opened
from ingot_compiler.frontend.families.weights.low_bits import FORMATS, INTEGER_BITS
from ingot_compiler.frontend.model.onnx_types import onnx_number
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.ir.types import COMPUTED_DTYPES, DTYPES, LOW_BITS, DType, TensorType
from ingot_compiler.oracles.interpret import interpret
from ingot_runtime.format.dtypes import ML_DTYPES
from ingot_runtime.format.source import read_plan

NAMES: tuple[DType, ...] = tuple(sorted(LOW_BITS))
FLOATS = tuple(FORMATS)
OPSET = 25


def numpy_type(dtype: str) -> np.dtype[np.generic]:
    """The type of the ``ml_dtypes`` package."""
    found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, ML_DTYPES[dtype]))
    return found


def bits_count(dtype: DType) -> int:
    """Bits of an element in a file."""
    return INTEGER_BITS.get(dtype, 4 if dtype == "f4e2m1" else 8)


def every_code(dtype: DType) -> npt.NDArray[np.uint8]:
    """The bits of every number of a type."""
    return np.arange(1 << bits_count(dtype), dtype=np.uint8)


def casts(source: int, target: int, **attributes: int | str) -> ModelProto:
    """A model that casts ``x`` to ``y``."""
    nodes = [node("Cast", "x", "y", to=target, **attributes)]
    return model_of(nodes, [tensor("x", ["n"], source)], [tensor("y", ["n"], target)])


def model_of(
    nodes: list[NodeProto],
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
    constants: list[TensorProto] | None = None,
) -> ModelProto:
    """A model of the newest opset that the low-bit types have."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants or [])
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)


def interpreted(model: ModelProto, *inputs: Array) -> Array:
    """The one output by the interpreter, low-bit types as bits."""
    store = MemoryStore()
    graph, _ = translate(model, store)
    return interpret(graph, list(inputs), store.read)[0]


def around_every_number(dtype: DType) -> npt.NDArray[np.float64]:
    """The numbers of a type, what lies half-way between two of them, and both neighbours of that;
    special numbers."""
    with np.errstate(all="ignore"):
        numbers = every_code(dtype).view(numpy_type(dtype)).astype(np.float64)
    finite = np.unique(numbers[np.isfinite(numbers)])
    middles = (finite[:-1] + finite[1:]) / 2
    beyond = finite[-1] + (finite[-1] - finite[-2]) / 2
    points = np.concatenate([finite, middles, [beyond, -beyond, 1e30, -1e30, 1e-30, -0.0]])
    close = points[:, None] * (1 + np.array([-1e-9, 0, 1e-9, -1e-4, 1e-4]))
    return np.concatenate([close.ravel(), [np.nan, np.inf, -np.inf]])


def saturated(x: Array, dtype: DType) -> Array:
    """``x`` limited as ONNX's ``saturate`` says."""
    without_stubs: Any = ml_dtypes
    info = without_stubs.finfo(numpy_type(dtype))
    least, greatest = (float(getattr(info, name)) for name in ("min", "max"))
    return np.clip(x, np.array(least, x.dtype), np.array(greatest, x.dtype))


def test_every_element_type_is_one_or_the_other() -> None:
    """A type is computed in or has low bits; the package has the latter."""
    assert set(DTYPES) == {*COMPUTED_DTYPES, *LOW_BITS}
    assert set(ML_DTYPES) == {"bf16", *LOW_BITS}


@pytest.mark.parametrize("dtype", NAMES)
def test_text_and_ops(dtype: DType) -> None:
    """What is printed parses back; what moves elements takes them; what computes refuses them by
    name, and the verifier as well as the builder."""
    moved = f"transpose(%0) {{permutation=[1, 0]}} : {dtype}[3, s0]"
    text = f"graph(%0: {dtype}[s0, 3]) {{ %1 = {moved} return %1 }}"
    graph = parse_graph(text)
    assert graph.types[0] == TensorType(dtype, (symbol("s0"), 3))
    assert parse_graph(print_graph(graph)) == graph
    builder = GraphBuilder([TensorType(dtype, (2, 2))])
    for op in ("add", "equal", "cast", "relu"):
        with pytest.raises(OpTypeError) as caught:
            builder.add(
                op,
                (0,) if op in ("cast", "relu") else (0, 0),
                {"dtype": "f32"} if op == "cast" else {},
            )
        assert "computed in" in str(caught.value.expected)
    with pytest.raises(OpTypeError, match=dtype):
        GraphBuilder([TensorType("i8", (2,))]).add("cast", (0,), {"dtype": dtype})
    with pytest.raises(ModelError, match="computed in"):
        parse_graph(f"graph(%0: {dtype}[2]) {{ %1 = neg(%0) : {dtype}[2] return %1 }}")
    with pytest.raises(OpTypeError, match="u8 on one side"):
        builder.add("bit_cast", (0,), {"dtype": "i8"})


@pytest.mark.parametrize("dtype", NAMES)
def test_every_number_becomes_its_f32(dtype: DType) -> None:
    """Of all bits, and of a byte whose other bits are set."""
    codes = every_code(dtype)
    with np.errstate(all="ignore"):
        expected = codes.view(numpy_type(dtype)).astype(np.float32)
    got = interpreted(casts(onnx_number(dtype), TensorProto.FLOAT), codes)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(
        np.signbit(got),
        np.signbit(expected) & ~np.isnan(expected) | np.signbit(got) & np.isnan(expected),
    )
    if bits_count(dtype) < 8:
        dirty = codes | np.uint8(0xF0 if bits_count(dtype) == 4 else 0xFC)
        np.testing.assert_array_equal(
            interpreted(casts(onnx_number(dtype), TensorProto.FLOAT), dirty), expected
        )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("saturate", [0, 1])
def test_floats_round_to_nearest(dtype: DType, saturate: int) -> None:
    """f16, f32 and f64 around every number of the type, and half-way: the nearest, halves to even,
    bit for bit; an f64 is rounded to f32 before."""
    for source in (np.float16, np.float32, np.float64):
        with np.errstate(all="ignore"):
            x = around_every_number(dtype).astype(source)
            limited = saturated(x, dtype) if saturate else x
            expected = limited.astype(numpy_type(dtype)).view(np.uint8)
        number = helper.np_dtype_to_tensor_dtype(np.dtype(source))
        got = interpreted(casts(number, onnx_number(dtype), saturate=saturate), x)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["f8e4m3fn", "f8e5m2", "f4e2m1", *INTEGER_BITS])
def test_integers_are_converted(dtype: DType) -> None:
    """As the package does: rounded once to floats, low bits kept of integers."""
    for source in (np.int8, np.uint16, np.int32, np.int64, np.uint64):
        x = np.array([0, 1, 2, 3, 7, 8, 17, 100, 127], source)
        if source in (np.int32, np.int64):
            x = np.concatenate([x, np.negative(x), np.array([57345, 61440, 1 << 30], source)])
        wanted = x if dtype in INTEGER_BITS else saturated(x.astype(np.float64), dtype)
        expected = wanted.astype(numpy_type(dtype)).view(np.uint8)
        number = helper.np_dtype_to_tensor_dtype(np.dtype(source))
        np.testing.assert_array_equal(interpreted(casts(number, onnx_number(dtype)), x), expected)


def test_between_low_bits() -> None:
    """From each type to each other one, by way of their numbers."""
    for source in ("i4", "u2", "f8e5m2"):
        codes = every_code(source)
        for target in ("u4", "f8e4m3fn", "f4e2m1"):
            got = interpreted(casts(onnx_number(source), onnx_number(target)), codes)
            number = casts(TensorProto.FLOAT, onnx_number(target))
            wide = interpreted(casts(onnx_number(source), TensorProto.FLOAT), codes)
            np.testing.assert_array_equal(got, interpreted(number, wide))


@pytest.mark.parametrize("rounding", ["up", "down", "nearest"])
def test_powers_of_two(rounding: str) -> None:
    """e8m0 by each round mode is what ONNX's own code gives."""
    x = np.array(
        [0, 1, 1.5, 1.75, 3, 6, 1e-39, 2e38, 3e38, -5, np.inf, np.nan, 2.0**-126], np.float32
    )
    for saturate in (0, 1):
        expected = numpy_helper.to_float8e8m0(x, bool(saturate), rounding).view(np.uint8)
        model = casts(
            TensorProto.FLOAT, TensorProto.FLOAT8E8M0, round_mode=rounding, saturate=saturate
        )
        np.testing.assert_array_equal(interpreted(model, x), expected)


def test_an_unknown_round_mode() -> None:
    """It is refused by name."""
    model = casts(TensorProto.FLOAT, TensorProto.FLOAT8E8M0, round_mode="away")
    with pytest.raises(ModelError, match="round_mode to be up or down or nearest"):
        translate(model, MemoryStore())


@pytest.fixture(scope="module")
def every_type(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that takes numbers and bits of every type, moves the bits and converts both."""
    nodes: list[NodeProto] = []
    inputs, outputs = [tensor("x", ["n"])], list[ValueInfoProto]()
    for dtype in NAMES:
        number = onnx_number(dtype)
        nodes += [
            node("Cast", "x", f"{dtype}_rounded", to=number),
            node("Cast", f"{dtype}_bits", f"{dtype}_wide", to=TensorProto.FLOAT),
            node("Transpose", f"{dtype}_bits", f"{dtype}_turned"),
            node("Gather", f"{dtype}_turned chosen", f"{dtype}_moved", axis=0),
        ]
        inputs.append(tensor(f"{dtype}_bits", [2, f"{dtype}_n"], number))
        outputs += [tensor(f"{dtype}_rounded", None, number), tensor(f"{dtype}_wide", None)]
        outputs.append(tensor(f"{dtype}_moved", None, number))
    chosen = numpy_helper.from_array(np.array([1, 0], np.int64), "chosen")
    path = tmp_path_factory.mktemp("low_bits") / "m.ingot"
    ingot.compile(model_of(nodes, inputs, outputs, [chosen])).save(path)
    return path


def test_compiled_code(every_type: Path) -> None:
    """Machine code converts as the package does and moves bits as they are; arrays are of the
    package's types, or of their bits."""
    x = np.concatenate([around_every_number("f8e5m2"), around_every_number("f4e2m1")]).astype(
        np.float32
    )
    feed: dict[str, Array] = {"x": x}
    for dtype in NAMES:
        feed[f"{dtype}_bits"] = np.stack([every_code(dtype)] * 2).view(numpy_type(dtype))
    (result,) = run_all_ways(every_type, [feed])
    for dtype in NAMES:
        bits = feed[f"{dtype}_bits"]
        number = casts(TensorProto.FLOAT, onnx_number(dtype))
        assert result[f"{dtype}_rounded"].dtype == numpy_type(dtype)
        np.testing.assert_array_equal(
            result[f"{dtype}_rounded"].view(np.uint8), interpreted(number, x)
        )
        np.testing.assert_array_equal(
            result[f"{dtype}_moved"].view(np.uint8), bits.view(np.uint8).T[[1, 0]]
        )
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(result[f"{dtype}_wide"], bits.astype(np.float32))
    with ingot_runtime.load(every_type) as session:
        same = session.run(
            {
                name: array.view(np.uint8) if array.dtype != np.float32 else array
                for name, array in feed.items()
            }
        )
        assert same["i4_rounded"].tobytes() == result["i4_rounded"].tobytes()
        assert session.inputs[1].dtype == "float4_e2m1fn"


def test_the_minor_version(every_type: Path, tmp_path: Path) -> None:
    """A bundle with such inputs needs a reader of 1.1; one that only computes with such constants
    does not."""
    assert minor_version_of_types(every_type) == 1
    weights = helper.make_tensor("w", TensorProto.INT4, [3], [1, -8, 7])
    nodes = [node("Cast", "w", "y", to=TensorProto.FLOAT), node("Add", "x y", "z")]
    model = model_of(nodes, [tensor("x", [3])], [tensor("z", [3])], [weights])
    path = tmp_path / "m.ingot"
    ingot.compile(model).save(path)
    assert minor_version_of_types(path) == 0
    with ingot_runtime.load(path) as session:
        np.testing.assert_array_equal(session.run({"x": np.zeros(3, np.float32)})["z"], [1, -8, 7])


def minor_version_of_types(path: Path) -> int:
    """The version that a bundle needs besides its weights, whose size may need a later one."""
    with opened(path) as source:
        return version_minor(read_plan(source), weights_bytes=())


def stored(dtype: DType, count: int, *, in_field: bool) -> TensorProto:
    """An initializer of so many elements, the first numbers of the type."""
    codes = (np.arange(count) % (1 << bits_count(dtype))).astype(np.uint8)
    per_byte = 8 // bits_count(dtype)
    padded = np.full(-(-count // per_byte) * per_byte, 0xFF, np.uint8)  # beyond the end: ones
    padded[:count] = codes
    shifts = np.arange(per_byte) * bits_count(dtype)
    mask = (1 << bits_count(dtype)) - 1
    packed = ((padded.reshape(-1, per_byte) & mask) << shifts).sum(1).astype(np.uint8)
    made = TensorProto(name="w", data_type=onnx_number(dtype), dims=[count])
    if in_field:
        made.int32_data.extend(packed.tolist())
    else:
        made.raw_data = packed.tobytes()
    return made


@pytest.mark.parametrize("dtype", NAMES)
def test_initializers_are_packed(dtype: DType) -> None:
    """Several in a byte, the first in the low bits, in raw bytes and in the typed field; bits
    beyond the last element mean nothing."""
    for count in (1, 3, 5, 2000):
        for in_field in (False, True):
            constant = stored(dtype, count, in_field=in_field)
            nodes = [node("Identity", "w", "y")]
            model = model_of(nodes, [], [tensor("y", [count], onnx_number(dtype))], [constant])
            expected = np.arange(count) % (1 << bits_count(dtype))
            np.testing.assert_array_equal(interpreted(model), expected)


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("in_field", [False, True])
def test_wrong_sizes_are_refused(change: int, *, in_field: bool) -> None:
    """Too few and too many bytes for a packed tensor: expected and got."""
    constant = stored("i4", 5, in_field=in_field)
    if in_field:
        values = [*constant.int32_data, 0]
        del constant.int32_data[:]
        constant.int32_data.extend(values[: 3 + change])
    else:
        constant.raw_data = (constant.raw_data + b"\0")[: 3 + change]
    model = model_of(
        [node("Identity", "w", "y")], [], [tensor("y", [5], TensorProto.INT4)], [constant]
    )
    with pytest.raises(ModelError) as caught:
        translate(model, MemoryStore())
    unit = "elements" if in_field else "bytes"
    assert caught.value.why == f"expected 3 {unit} for i4[5], got {3 + change}"


@pytest.mark.broad
@pytest.mark.parametrize("dtype", [name for name in NAMES if name != "f8e8m0"])
def test_weights_are_converted_once(dtype: DType) -> None:
    """A product with weights of few bits is one kernel: no call unpacks them."""
    codes = np.resize(every_code(dtype), (64, 48)).view(numpy_type(dtype))
    constants = [
        helper.make_tensor("w", onnx_number(dtype), codes.shape, codes.ravel().tolist()),
        numpy_helper.from_array(np.linspace(0.5, 2, 48, dtype=np.float32), "s"),
    ]
    nodes = [node("DequantizeLinear", "w s", "f", axis=1), node("MatMul", "x f", "y")]
    model = model_of(nodes, [tensor("x", ["n", 64])], [tensor("y", ["n", 48])], constants)
    fused = ingot.compile(model, targets=["x86-64-v3"]).text("fused")
    (kernel,) = [line.split()[1] for line in fused.splitlines() if line.startswith("kernel")]
    assert kernel == ("matmul_blocks" if dtype in ("i4", "u4") else "matmul")


def blocks_of_scales(
    op: str, kind: int, zero_kind: int, count: int, block: int, scale: float = 1.0
) -> ModelProto:
    """``x`` [2, 6], (de)quantized with ``count`` blocks of scales along its last axis."""
    zeros = np.zeros((2, count), helper.tensor_dtype_to_np_dtype(zero_kind))
    constants = [
        numpy_helper.from_array(np.full((2, count), scale, np.float32), "s"),
        numpy_helper.from_array(zeros, "z"),
    ]
    is_from = op == "DequantizeLinear"
    inputs = [tensor("x", [2, 6], kind if is_from else TensorProto.FLOAT)]
    outputs = [tensor("y", [2, 6], TensorProto.FLOAT if is_from else kind)]
    return model_of([node(op, "x s z", "y", axis=1, block_size=block)], inputs, outputs, constants)


@pytest.mark.parametrize(
    ("zero_kind", "count", "why"),
    [
        (TensorProto.UINT4, 3, "expected a zero point of i4, got u4"),
        (TensorProto.INT8, 3, "expected a zero point of i4, got i8"),
        (TensorProto.INT4, 2, "expected 3 blocks of 2 along axis 1, got i4[2, 2]"),
        (TensorProto.INT4, 4, "expected 3 blocks of 2 along axis 1, got i4[2, 4]"),
    ],
)
def test_parameters_that_contradict_the_numbers(zero_kind: int, count: int, why: str) -> None:
    """A zero point of another type, and blocks that are too few or too many."""
    model = blocks_of_scales("DequantizeLinear", TensorProto.INT4, zero_kind, count, 2)
    with pytest.raises(ModelError) as caught:
        translate(model, MemoryStore())
    assert why in caught.value.why


def test_a_last_block_that_is_not_whole() -> None:
    """Blocks of 4 in 6 elements: the second one has two."""
    model = blocks_of_scales("DequantizeLinear", TensorProto.INT4, TensorProto.INT4, 2, 4, 0.5)
    codes = np.arange(12, dtype=np.uint8).reshape(2, 6)
    expected = codes.view(ml_dtypes.int4).astype(np.float32) * 0.5
    np.testing.assert_array_equal(interpreted(model, codes), expected)


@pytest.mark.parametrize(
    ("kind", "dtype"), [(TensorProto.INT4, "i4"), (TensorProto.FLOAT8E4M3FN, "f8e4m3fn")]
)
def test_scales_that_are_no_numbers(kind: int, dtype: str) -> None:
    """Dividing by 0 saturates; by NaN, 8-bit floats are NaN. Nothing is refused: the standard does
    not."""
    x = np.array([[1, -1, 2, -2, 3, -3]] * 2, np.float32)
    by_zero = interpreted(blocks_of_scales("QuantizeLinear", kind, kind, 3, 2, 0.0), x)
    numbers = by_zero.view(numpy_type(dtype)).astype(np.float32)
    limit = {"i4": (7, -8), "f8e4m3fn": (448, -448)}[dtype]
    np.testing.assert_array_equal(numbers, np.where(x > 0, *limit))
    if dtype == "f8e4m3fn":
        by_nan = interpreted(blocks_of_scales("QuantizeLinear", kind, kind, 3, 2, np.nan), x)
        assert np.isnan(by_nan.view(numpy_type(dtype)).astype(np.float32)).all()
