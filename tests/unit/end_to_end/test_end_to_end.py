"""Small ONNX models to saved bundles to outputs: right by ONNX's reference, bit-equal in every way
of running."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, run_all_ways, tensor
from tests.harness.lowering_harness import normal

import ingot
import ingot_runtime

RELATIVE = 1e-4
NAN, INF = float("nan"), float("inf")


def conv_net(batch: int | str, height: int | str, width: int | str) -> ModelProto:
    """Convolution, batch norm, depthwise, residual, pool, classifier; 16 channels."""
    nodes = [
        node("Conv", "x w0", "c0", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("BatchNormalization", "c0 scale bias mean variance", "b0"),
        node("Clip", "b0 zero six", "r0"),
        node("Conv", "r0 w1", "c1", pads=[1, 1, 1, 1], group=16),
        node("HardSwish", "c1", "r1"),
        node("Conv", "r1 w2 bias", "c2"),
        node("Add", "c2 r0", "s2"),
        node("MaxPool", "s2", "p2", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Concat", "p2 p2", "cc", axis=1),
        node("GlobalAveragePool", "cc", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w3 b3", "logits", transB=1),
        node("Softmax", "logits", "y"),
    ]
    constants = {
        "w0": normal(0, 16, 3, 3, 3) / 4, "w1": normal(1, 16, 1, 3, 3) / 3, "w2": normal(2, 16, 16, 1, 1) / 4,
        "w3": normal(3, 10, 32), "b3": normal(4, 10), "scale": normal(5, 16), "bias": normal(6, 16),
        "mean": normal(7, 16), "variance": np.abs(normal(8, 16)) + 1, "zero": np.float32(0), "six": np.float32(6),
    }  # fmt: skip
    arrays = {name: np.asarray(array, np.float32) for name, array in constants.items()}
    outputs = [tensor("y", [batch, 10]), tensor("s2", None)]
    return make_model(nodes, [tensor("x", [batch, 3, height, width])], outputs, arrays)


@pytest.mark.broad
def test_conv_net_of_fixed_shape(tmp_path: Path) -> None:
    """Large enough that two threads share kernels; an inner value is an output too."""
    check_model(conv_net(2, 48, 48), [{"x": normal(9, 2, 3, 48, 48)}], tmp_path, RELATIVE)


@pytest.mark.broad
def test_conv_net_of_any_shape(tmp_path: Path) -> None:
    """Batch, height and width are free in one bundle."""
    shapes = [(1, 3, 32, 32), (3, 3, 17, 5), (2, 3, 1, 9), (1, 3, 64, 33)]
    check_model(
        conv_net("n", "h", "w"), [{"x": normal(9, *shape)} for shape in shapes], tmp_path, RELATIVE
    )


def transformer_nodes() -> list[NodeProto]:
    """Embedding, one block with decomposed attention, layer norm and erf-GELU, as exporters write
    them."""
    heads = {part: [node("MatMul", f"h w{part}", f"{part}0"), node("Reshape", f"{part}0 split", f"{part}1"),
                    node("Transpose", f"{part}1", part, perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3])]
             for part in "qkv"}  # fmt: skip
    return [
        node("Gather", "table ids", "h"),
        *(item for part in "qkv" for item in heads[part]),
        node("Cast", "mask", "keep0", to=TensorProto.BOOL), node("Unsqueeze", "keep0 axes12", "keep"),
        node("Where", "keep zero lowest", "bias"),
        node("MatMul", "q k", "s0"), node("Div", "s0 root", "s1"), node("Add", "s1 bias", "s2"),
        node("Softmax", "s2", "p", axis=-1), node("MatMul", "p v", "o0"),
        node("Transpose", "o0", "o1", perm=[0, 2, 1, 3]), node("Reshape", "o1 join", "o2"),
        node("MatMul", "o2 wo", "o3"), node("Add", "o3 h", "r0"),
        node("LayerNormalization", "r0 gamma beta", "n0", axis=-1),
        node("MatMul", "n0 w1", "f0"), node("Add", "f0 b1", "f1"), node("Div", "f1 sqrt2", "f2"), node("Erf", "f2", "f3"),
        node("Add", "f3 one", "f4"), node("Mul", "f1 f4", "f5"), node("Mul", "f5 half", "f6"),
        node("MatMul", "f6 w2", "f7"), node("Add", "f7 n0", "y"),
    ]  # fmt: skip


@pytest.mark.broad
def test_transformer_block_of_any_length(tmp_path: Path) -> None:
    """Batch and length are free; some keys are masked."""
    width, hidden = 32, 64
    constants = {f"w{part}": normal(ord(part), width, width) / 6 for part in "qkvo"} | {
        "table": normal(1, 50, width), "gamma": normal(2, width), "beta": normal(3, width), "b1": normal(4, hidden),
        "w1": normal(5, width, hidden) / 6, "w2": normal(6, hidden, width) / 8, "root": np.float32(8**0.5),
        "sqrt2": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5), "zero": np.float32(0),
        "lowest": np.float32(-1e30), "split": np.array([0, 0, 4, 8]), "join": np.array([0, 0, width]),
        "axes12": np.array([1, 2]),
    }  # fmt: skip
    inputs = [
        tensor("ids", ["b", "s"], TensorProto.INT64),
        tensor("mask", ["b", "s"], TensorProto.INT64),
    ]
    arrays = {name: np.asarray(array) for name, array in constants.items()}
    model = make_model(transformer_nodes(), inputs, [tensor("y", ["b", "s", width])], arrays)
    feeds: list[dict[str, Array]] = []
    for batch, length in ((1, 7), (2, 33), (4, 1), (1, 100)):
        draw = np.random.default_rng(length)
        mask = (draw.random((batch, length)) < 0.7).astype(np.int64)
        mask[:, 0] = 1
        feeds.append({"ids": draw.integers(0, 50, (batch, length)), "mask": mask})
    results = check_model(model, feeds, tmp_path, RELATIVE)
    assert results[0]["y"].shape == (1, 7, width)


def test_nan_and_infinity_pass_through(tmp_path: Path) -> None:
    """Special values come out where the reference has them: products, windows, rows, reductions,
    comparisons."""
    nodes = [
        node("MatMul", "x w", "product"), node("Relu", "x", "relu"), node("Softmax", "x", "rows"),
        node("ReduceMax", "x axes", "largest"), node("ReduceSum", "x axes", "total"), node("Tanh", "x", "tanh"),
        node("Unsqueeze", "x front", "image"), node("Conv", "image kernel", "conv", pads=[1, 1, 1, 1]), node("Less", "x zero", "less"), node("IsNaN", "x", "isnan"),
        node("Min", "x zero", "min"), node("Exp", "x", "exp"), node("Sqrt", "x", "sqrt"), node("Sigmoid", "x", "sigmoid"),
    ]  # fmt: skip
    names = [("less", TensorProto.BOOL), ("isnan", TensorProto.BOOL)]
    names += [(name, TensorProto.FLOAT) for name in (
        "product", "relu", "rows", "largest", "total", "tanh", "conv", "min", "exp", "sqrt", "sigmoid"
    )]  # fmt: skip
    constants = {
        "w": np.abs(normal(1, 7, 5)), "axes": np.array([1]), "front": np.array([0, 1]), "zero": np.float32(0),
        "kernel": np.abs(normal(2, 4, 1, 3, 3)),
    }  # fmt: skip
    model = make_model(nodes, [tensor("x", [8, 7])], [tensor(name, None, kind) for name, kind in names], {
        name: np.asarray(array) for name, array in constants.items()
    })  # fmt: skip
    x = normal(3, 8, 7)
    x[1, 2], x[3, 0], x[4, 6], x[6] = NAN, INF, -INF, [INF, -INF, NAN, 0, -0.0, 1e-42, 3e38]
    results = check_model(model, [{"x": x}], tmp_path, RELATIVE)[0]
    assert np.isnan(results["product"][1]).all()
    assert np.isposinf(results["exp"][3, 0])


def test_a_window_with_nan_gives_nan(tmp_path: Path) -> None:
    """MaxPool propagates NaN like every other maximum here (ONNX's reference loses it, by the order
    of its comparisons)."""
    pool = node("MaxPool", "x", "y", kernel_shape=[1, 3], pads=[0, 1, 0, 1])
    path = tmp_path / "model.ingot"
    ingot.compile(make_model([pool], [tensor("x", [1, 1, 1, 6])], [tensor("y", None)])).save(path)
    x = np.array([1, -INF, -INF, -INF, NAN, 5], np.float32).reshape(1, 1, 1, 6)
    (result,) = run_all_ways(path, [{"x": x}])
    np.testing.assert_array_equal(
        result["y"].ravel(), np.array([1, 1, -INF, NAN, NAN, NAN], np.float32)
    )


DTYPES = (
    "float16",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)


@pytest.mark.broad
@pytest.mark.parametrize("name", DTYPES)
def test_every_element_type_goes_in_and_out(name: str, tmp_path: Path) -> None:
    """An input of each type is copied, compared, selected and cast."""
    dtype = np.dtype(name)
    code = helper.np_dtype_to_tensor_dtype(dtype)
    draw = np.random.default_rng(0)
    x, y = (draw.integers(0, 2 if name == "bool" else 100, (3, 37)).astype(dtype) for _ in range(2))
    nodes = [
        node("Transpose", "x", "turned"), node("Concat", "x y", "both", axis=0), node("Equal", "x y", "same"),
        node("Where", "same x y", "chosen"), node("Cast", "x", "single", to=TensorProto.FLOAT),
        node("Cast", "single", "back", to=code),
    ]  # fmt: skip
    outputs = [tensor(output, None, code) for output in ("turned", "both", "chosen", "back")]
    outputs += [tensor("same", None, TensorProto.BOOL), tensor("single", None)]
    if name != "bool":
        nodes.append(node("Add", "x y", "total"))
        outputs.append(tensor("total", None, code))
    shape: list[int | str] = ["n", 37]
    model = make_model(nodes, [tensor("x", shape, code), tensor("y", shape, code)], outputs)
    check_model(model, [{"x": x, "y": y}, {"x": x[:0], "y": y[:0]}], tmp_path, 1e-6)


def test_zero_size_tensors(tmp_path: Path) -> None:
    """No batch, no columns, no rows to sum: shapes are right, and what is computed from nothing is
    what ONNX says."""
    nodes = [
        node("MatMul", "x w", "product"), node("ReduceSum", "x axis0", "total", keepdims=0),
        node("Concat", "x none", "more", axis=0), node("Softmax", "x", "rows"), node("MatMul", "nothing v", "from_nothing"),
        node("Reshape", "x flat", "line"), node("Transpose", "nothing", "turned"),
    ]  # fmt: skip
    constants = {
        "w": normal(0, 5, 3), "axis0": np.array([0]), "none": np.zeros((0, 5), np.float32), "v": np.zeros((0, 4), np.float32),
        "flat": np.array([-1]),
    }  # fmt: skip
    outputs = [
        tensor(name, None)
        for name in ("product", "total", "more", "rows", "from_nothing", "line", "turned")
    ]
    model = make_model(
        nodes, [tensor("x", ["n", 5]), tensor("nothing", [2, 0])], outputs, constants
    )
    nothing = np.zeros((2, 0), np.float32)
    feeds = [{"x": normal(1, rows, 5), "nothing": nothing} for rows in (0, 1, 4)]
    results = check_model(model, feeds, tmp_path, 1e-5)
    assert results[0]["product"].shape == (0, 3)
    assert (results[0]["from_nothing"] == 0).all()


def test_outputs_that_are_inputs_constants_or_each_other(tmp_path: Path) -> None:
    """Each output is memory of its own: writing to one changes nothing else, and the next call is
    right again."""
    nodes = [
        node("Identity", "x", "same"), node("Identity", "k", "constant"), node("Relu", "x", "a"), node("Identity", "a", "b"),
        node("Transpose", "a", "c"), node("Reshape", "a shape", "d"), node("Slice", "a one two", "e"),
        node("Identity", "k", "again"),
    ]  # fmt: skip
    constants = {
        "k": normal(0, 4),
        "shape": np.array([6, 2]),
        "one": np.array([1]),
        "two": np.array([3]),
    }
    names = ("same", "constant", "a", "b", "c", "d", "e", "again")
    model = make_model(
        nodes, [tensor("x", [3, 4])], [tensor(name, None) for name in names], constants
    )
    x = normal(1, 3, 4)
    expected = check_model(model, [{"x": x}], tmp_path)[0]
    session = ingot_runtime.load(tmp_path / "model.ingot")
    for name in names:
        result = session.run({"x": x})
        result[name][...] = 77
        for other in names:
            if other != name:
                np.testing.assert_array_equal(result[other], expected[other])
    np.testing.assert_array_equal(x, normal(1, 3, 4))


def test_one_name_is_input_and_output(tmp_path: Path) -> None:
    """ONNX allows an output that is an input by its very name."""
    model = make_model(
        [node("Neg", "x", "y")], [tensor("x", ["n"])], [tensor("x", ["n"]), tensor("y", ["n"])]
    )
    path = tmp_path / "model.ingot"
    ingot.compile(model).save(path)
    x = normal(0, 5)
    (result,) = run_all_ways(path, [{"x": x}])
    np.testing.assert_array_equal(result["x"], x)
    np.testing.assert_array_equal(result["y"], -x)


def test_unused_input(tmp_path: Path) -> None:
    """It stays part of the interface and is asked for."""
    inputs = [tensor("x", ["n"]), tensor("unused", ["m", 3], TensorProto.INT64)]
    model = make_model([node("Neg", "x", "y")], inputs, [tensor("y", ["n"])])
    feed = {"x": normal(0, 4), "unused": np.zeros((2, 3), np.int64)}
    check_model(model, [feed], tmp_path)
    with pytest.raises(ingot_runtime.InputError, match="unused"):
        ingot_runtime.load(tmp_path / "model.ingot").run({"x": feed["x"]})


def test_no_nodes(tmp_path: Path) -> None:
    """A model that hands its input and a constant through."""
    path = tmp_path / "model.ingot"
    k = normal(1, 2, 2)
    model = make_model(
        [], [tensor("x", ["n", 3])], [tensor("x", ["n", 3]), tensor("k", [2, 2])], {"k": k}
    )
    ingot.compile(model).save(path)
    for rows in (0, 2, 9000):
        x = normal(0, rows, 3)
        (result,) = run_all_ways(path, [{"x": x}])
        np.testing.assert_array_equal(result["x"], x)
        np.testing.assert_array_equal(result["k"], k)


def test_only_constants(tmp_path: Path) -> None:
    """A model without inputs."""
    model = make_model([node("Add", "k k", "y")], [], [tensor("y", [3])], {"k": normal(0, 3)})
    check_model(model, [{}], tmp_path)


def test_scalars(tmp_path: Path) -> None:
    """Rank 0 in and out, in arithmetic and as an index."""
    nodes = [
        node("Add", "x x", "y"), node("Gather", "table i", "row"), node("ReduceMax", "table", "largest", keepdims=0),
        node("Shape", "x", "rank0"),
    ]  # fmt: skip
    inputs = [tensor("x", []), tensor("i", [], TensorProto.INT64)]
    outputs = [
        tensor("y", []),
        tensor("row", [4]),
        tensor("largest", []),
        tensor("rank0", [0], TensorProto.INT64),
    ]
    model = make_model(nodes, inputs, outputs, {"table": normal(0, 5, 4)})
    check_model(model, [{"x": np.array(2.5, np.float32), "i": np.array(-2)}], tmp_path)


@pytest.mark.broad
def test_shapes_that_only_the_values_tell(tmp_path: Path) -> None:
    """Reshape, slice, pad, expand, range and tile by inputs: sizes of inner values and of
    outputs."""
    nodes = [
        node("Reshape", "x shape", "grid", allowzero=1), node("Softmax", "grid", "rows"),
        node("Slice", "rows starts ends", "part"), node("Pad", "part pads", "padded"), node("Range", "zero count one", "steps"),
        node("Expand", "column shape", "wide"), node("MatMul", "grid turned", "square"), node("Transpose", "grid", "turned"),
        node("ReduceSum", "part axes", "total", keepdims=0), node("Tile", "steps twice", "tiled"),
        node("Shape", "padded", "sizes"),
    ]  # fmt: skip
    nodes.sort(key=lambda item: item.op_type == "MatMul")
    integer = TensorProto.INT64
    inputs = [
        tensor("x", ["n"]),
        tensor("shape", [2], integer),
        tensor("starts", [2], integer),
        tensor("ends", [2], integer),
    ]
    inputs += [
        tensor("pads", [4], integer),
        tensor("count", [], integer),
        tensor("column", ["r", 1]),
    ]
    outputs = [tensor(name, None) for name in ("rows", "part", "padded", "wide", "square", "total")]
    outputs += [tensor(name, None, integer) for name in ("steps", "tiled", "sizes")]
    constants = {
        "zero": np.array(0),
        "one": np.array(1),
        "axes": np.array([0]),
        "twice": np.array([2]),
    }
    model = make_model(nodes, inputs, outputs, constants)
    feeds: list[dict[str, Array]] = []
    for rows, columns in ((3, 4), (1, 30), (6, 7), (5, 0)):
        feeds.append({
            "x": normal(rows, rows * columns), "shape": np.array([rows, columns]), "starts": np.array([0, -2]),
            "ends": np.array([rows, 2**40]), "pads": np.array([1, 0, 2, 3]), "count": np.array(columns),
            "column": normal(0, rows, 1),
        })  # fmt: skip
    check_model(model, feeds, tmp_path, 1e-5)


def test_contradicting_shapes_are_refused(tmp_path: Path) -> None:
    """One symbol has one value; a reshape must keep the elements; the next call is right again."""
    nodes = [node("Add", "x y", "z"), node("Reshape", "x shape", "grid")]
    inputs = [tensor("x", ["n"]), tensor("y", ["n"]), tensor("shape", [2], TensorProto.INT64)]
    model = make_model(nodes, inputs, [tensor("z", ["n"]), tensor("grid", None)])
    path = tmp_path / "model.ingot"
    ingot.compile(model).save(path)
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(path, executor=executor)
        with pytest.raises(ingot_runtime.InputError):
            session.run({"x": normal(0, 3), "y": normal(0, 4), "shape": np.array([3, 1])})
        with pytest.raises(ingot_runtime.InputError):
            session.run({"x": normal(0, 4), "y": normal(0, 4), "shape": np.array([3, 1])})
        result = session.run({"x": normal(0, 4), "y": normal(0, 4), "shape": np.array([2, 2])})
        np.testing.assert_array_equal(result["z"], normal(0, 4) * 2)
        np.testing.assert_array_equal(result["grid"], normal(0, 4).reshape(2, 2))


def refused(path: Path, feed: dict[str, Array], why: str) -> None:
    """Native or stepped, `main` refuses the sizes before it computes with them."""
    for executor in ("aot", "vm"):
        with pytest.raises(ingot_runtime.InputError, match=why):
            ingot_runtime.load(path, executor=executor).run(feed)


@pytest.mark.broad
def test_a_window_larger_than_its_image_is_refused(tmp_path: Path) -> None:
    """Sizes that come out negative, at the output or in between, are refused; the smallest image
    that fits works."""
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), node("MaxPool", "r", "p", kernel_shape=[3, 3]),
        node("ReduceSum", "p axes", "y", keepdims=0),
    ]  # fmt: skip
    constants = {"w": normal(0, 4, 3, 5, 5), "axes": np.array([2, 3])}
    model = make_model(nodes, [tensor("x", ["n", 3, "h", 9])], [tensor("y", ["n", 4])], constants)
    check_model(model, [{"x": normal(1, 2, 3, height, 9)} for height in (5, 8)], tmp_path, RELATIVE)
    for height in (0, 1, 2, 3):
        refused(tmp_path / "model.ingot", {"x": normal(1, 2, 3, height, 9)}, "a size is negative")


def test_sizes_that_overflow_are_refused(tmp_path: Path) -> None:
    """A product of sizes that would wrap around in 64 bits, to 0 or to just the right number, is
    refused."""
    integer = TensorProto.INT64
    nodes = [
        node("ConstantOfShape", "shape", "filled"),
        node("Reshape", "x shape", "grid"),
        node("Neg", "grid", "y"),
    ]
    inputs = [tensor("x", ["n", 3]), tensor("shape", [2], integer)]
    path = tmp_path / "model.ingot"
    ingot.compile(make_model(nodes, inputs, [tensor("filled", None), tensor("y", None)])).save(path)
    right = (6 + 2**64) // 11  # times 11 is 6, the number of elements, modulo 2**64
    for shape in ([2**31, 2**31], [2**40, 2**40], [2**62, 4], [11, right], [2**63 - 1, 1]):
        refused(path, {"x": normal(0, 2, 3), "shape": np.array(shape)}, "too large|cannot reshape")
    (result,) = run_all_ways(path, [{"x": normal(0, 2, 3), "shape": np.array([3, 2])}])
    np.testing.assert_array_equal(result["y"], -normal(0, 2, 3).reshape(3, 2))


@pytest.mark.broad
def test_attention_over_a_length_that_only_the_values_tell(tmp_path: Path) -> None:
    """Kernels with scratch memory run on sizes that `main` reads while it runs."""
    nodes = [
        node("Reshape", "x shape", "q"), node("Transpose", "q", "k", perm=[0, 1, 3, 2]), node("MatMul", "q k", "s"),
        node("Softmax", "s", "p"), node("MatMul", "p q", "o"), node("MatMul", "o w", "y"),
    ]  # fmt: skip
    inputs = [tensor("x", ["n"]), tensor("shape", [4], TensorProto.INT64)]
    model = make_model(nodes, inputs, [tensor("y", None)], {"w": normal(0, 8, 20)})
    shapes = [(1, 2, 5, 8), (2, 1, 130, 8), (1, 1, 1, 8)]
    feeds = [{"x": normal(1, int(np.prod(shape))), "shape": np.array(shape)} for shape in shapes]
    check_model(model, feeds, tmp_path, RELATIVE)
