"""Numbers at the edge of their types: compiled code and interpreter against ``onnx.reference``.

Where ONNX leaves a result open, it is the same for interpreter and machine code, and named in the
test.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import Feed, make_model, node, reference, run_all_ways, tensor

import ingot
import ingot_runtime
from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_compiler.ir.rules.reference_rules import COMPUTE_DTYPES, float_to_integer
from ingot_compiler.ir.types import COMPUTED_DTYPES, FLOATS, DType
from ingot_compiler.lowering.loops.interpret_scalars import cast
from ingot_compiler.oracles.interpret import interpret

FLOAT_TYPES = ("float16", "float32", "float64")
INTEGER_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
EDGES = (
    np.inf, -np.inf, np.nan, 1e10, -1e10, 65504.0, 70000.0, -70000.0, 300.0, -1.0, -0.5, 0.5, 127.5, 128.0, -129.0, 3e9, 2.0**31,
    2.0**31 - 0.5, -(2.0**31), -(2.0**31) - 0.5, 2.0**32, 2.0**53, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, 1.5 * 2.0**63, 0.0,
)  # fmt: skip


def _model(nodes: Sequence[NodeProto], feed: Feed, outputs: Sequence[str]) -> ModelProto:
    """A model over open sizes; the outputs' types are the nodes' own."""
    inputs = [
        tensor(
            name,
            [f"{name}{axis}" for axis in range(array.ndim)],
            helper.np_dtype_to_tensor_dtype(array.dtype),
        )
        for name, array in feed.items()
    ]
    return make_model(
        nodes, inputs, [helper.make_empty_tensor_value_info(name) for name in outputs]
    )


def _answers(
    nodes: Sequence[NodeProto], feed: Feed, folder: Path, outputs: Sequence[str] = ("y",)
) -> dict[str, Array]:
    """What compiled code gives in every way of running; the interpreter gives the same."""
    model = _model(nodes, feed, outputs)
    path = folder / "m.ingot"
    ingot.compile(model).save(path)
    (found,) = run_all_ways(path, [feed])
    compiled = compile_model(model, make_options())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreted = interpret(compiled.graph, list(feed.values()), compiled.read_constant)
    for name, array in zip(outputs, interpreted, strict=True):
        assert array.dtype == found[name].dtype
        np.testing.assert_allclose(found[name], array, rtol=1e-6)
        if array.dtype.kind in "iu":
            np.testing.assert_array_equal(found[name], array)
    return found


def _agree(
    nodes: Sequence[NodeProto], feed: Feed, folder: Path, outputs: Sequence[str] = ("y",)
) -> None:
    """As ``onnx.reference``: equal integers, floats within their rounding."""
    found = _answers(nodes, feed, folder, outputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = reference(_model(nodes, feed, outputs), feed)
    for name in outputs:
        assert (found[name].shape, found[name].dtype) == (
            expected[name].shape,
            expected[name].dtype,
        )
        if expected[name].dtype.kind == "f":
            np.testing.assert_allclose(
                found[name], expected[name], rtol=2.0**-10 if found[name].itemsize == 2 else 1e-6
            )
        else:
            np.testing.assert_array_equal(found[name], expected[name])


# ---- casts ---------------------------------------------------------------------------------------


@pytest.mark.sweep(4)
@pytest.mark.parametrize("source", FLOAT_TYPES)
def test_floats_that_do_not_fit_an_integer(tmp_path: Path, source: str) -> None:
    """As numpy on x86-64, infinities and NaN too; what does not fit 32 bits becomes any u32, for
    numpy differs with itself."""
    with np.errstate(over="ignore"):
        x = np.resize(np.array(EDGES), 3 * len(EDGES)).astype(source)
    wide = x.astype(np.float64)
    few = x[(wide > -(2.0**31)) & (wide < 2.0**32)]
    nodes = [
        node(
            "Cast",
            "few" if kind == "uint32" else "x",
            kind,
            to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)),
        )
        for kind in INTEGER_TYPES
    ]
    _agree(nodes, {"x": x, "few": few}, tmp_path, INTEGER_TYPES)


@pytest.mark.parametrize(
    "dtype", [dtype for dtype in COMPUTED_DTYPES if dtype not in (*FLOATS, "bool")]
)
def test_one_rule_for_what_does_not_fit(dtype: DType) -> None:
    """The array rule of the interpreter and the scalar rule of the loops' interpreter are one."""
    found = float_to_integer(np.array(EDGES), COMPUTE_DTYPES[dtype])
    assert found.tolist() == [cast(number, dtype) for number in EDGES]


# ---- powers --------------------------------------------------------------------------------------

EXPONENTS = (
    0,
    1,
    2,
    3,
    5,
    (1 << 24) + 1,
    (1 << 24) + 2,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    (1 << 32) + 1,
    (1 << 52) + 1,
)


BASES = ("float16", "float32", "float64", "int32", "int64", "uint8")


@pytest.mark.broad
@pytest.mark.parametrize("exponent", ["int64", "uint64", "int32"])
def test_integer_exponents_keep_their_last_bit(tmp_path: Path, exponent: str) -> None:
    """-1 to the power of 2^24 + 1 is -1, and 3 to the power of 2^32 + 1 is not 3."""
    exponents = [number for number in EXPONENTS if number <= np.iinfo(exponent).max]
    left, right = (grid.ravel() for grid in np.meshgrid([-3, -2, -1, 0, 1, 2, 3, 7], exponents))
    feed = {"e": right.astype(exponent)} | {
        kind: (abs(left) if kind == "uint8" else left).astype(kind) for kind in BASES
    }
    # Of signed bases and u64 numpy takes f64, which ONNX does not ask for: powers of integers are
    # exact modulo 2^64.
    ours = [kind for kind in ("int32", "int64") if exponent == "uint64"]
    _agree([node("Pow", f"{kind} e", f"y{kind}") for kind in BASES if kind not in ours],
           {name: array for name, array in feed.items() if name not in ours}, tmp_path,
           [f"y{kind}" for kind in BASES if kind not in ours])  # fmt: skip
    if not ours:
        return
    steps, names = (
        [node("Pow", f"{kind} e", f"y{kind}") for kind in ours],
        [f"y{kind}" for kind in ours],
    )
    for name, found in _answers(
        steps, {name: feed[name] for name in ("e", *ours)}, tmp_path, names
    ).items():
        exact = [
            pow(int(b), int(e), 1 << 8 * found.itemsize) for b, e in zip(left, right, strict=True)
        ]
        np.testing.assert_array_equal(
            found.view(f"u{found.itemsize}"), np.array(exact, f"u{found.itemsize}"), name
        )


@pytest.mark.broad
def test_exponents_of_another_float_type(tmp_path: Path) -> None:
    """Computed in the wider type, rounded to the base's."""
    left, right = (
        grid.ravel() for grid in np.meshgrid([1.0, 2.0, 3.0, 9.0], [0.0, 0.1, 1.0, 1.5, 2.0, 1 / 3])
    )
    kinds = [
        ("float32", "float64"),
        ("float16", "float32"),
        ("int32", "float32"),
        ("int16", "float64"),
        ("float64", "float32"),
    ]
    feed = {f"x{index}": left.astype(base) for index, (base, _) in enumerate(kinds)}
    feed |= {f"e{index}": right.astype(exponent) for index, (_, exponent) in enumerate(kinds)}
    steps = [node("Pow", f"x{index} e{index}", f"y{index}") for index in range(len(kinds))]
    _agree(steps, feed, tmp_path, [f"y{index}" for index in range(len(kinds))])


@pytest.mark.parametrize("number", [2, 3, -1, 0.5])
@pytest.mark.parametrize("kind", ["int64", "int32", "float64"])
def test_a_known_small_exponent_needs_no_wider_type(number: float, kind: str) -> None:
    """The kernels of real networks stay in the base's type."""
    exponent = np.array(number).astype(kind)
    model = make_model(
        [node("Pow", "x e", "y")], [tensor("x", [4])], [tensor("y", [4])], {"e": exponent}
    )
    graph = compile_model(model, make_options()).optimized.graph
    assert {graph.types[result].dtype for item in graph.nodes for result in item.results} == {"f32"}


def test_negative_exponents_of_integers_are_truncated_reciprocals(tmp_path: Path) -> None:
    """ONNX leaves them open, numpy refuses them."""
    x, e = (grid.ravel() for grid in np.meshgrid([-2, -1, 1, 2], [-3, -2, -1]))
    found = _answers(
        [node("Pow", "x e", "y")], {"x": x.astype(np.int32), "e": e.astype(np.int64)}, tmp_path
    )["y"]
    expected = [
        {1: 1, -1: 1 - 2 * (power & 1)}.get(number, 0)
        for number, power in zip(x.tolist(), e.tolist(), strict=True)
    ]
    assert found.tolist() == expected


# ---- ranges --------------------------------------------------------------------------------------

LEAST, MOST = -(1 << 31), (1 << 31) - 1
RANGES: dict[str, list[tuple[float, float, float]]] = {
    "int32": [(LEAST, MOST, 1 << 30), (MOST, LEAST, -(1 << 30)), (MOST - 2, MOST, 1), (0, MOST, MOST), (5, LEAST, LEAST), (1, 0, 1), (3, 3, -1), (LEAST, MOST, MOST)],
    "int16": [(-32768, 32767, 20000), (32767, -32768, -32768), (-100, 100, 50)],
    "int64": [(-(1 << 62), 1 << 62, 1 << 61), (0, 10, 3), (10, 0, -3), ((1 << 63) - 5, (1 << 63) - 1, 2)],
    "float32": [(0.0, 0.3, 0.1), (0.0, 1.0, 0.1), (1.0, -1.0, -0.3), (16777216.0, 16777220.0, 1.0), (2.0, 1.0, 1.0)],
    "float64": [(0.0, 0.3, 0.1), (0.0, 1.0, 0.1), (5.0, -5.0, -2.5)],
}  # fmt: skip


@pytest.mark.broad
@pytest.mark.parametrize("kind", RANGES)
def test_ranges_whose_span_does_not_fit(tmp_path: Path, kind: str) -> None:
    """The number of elements is that of the exact span."""
    feed = {
        f"{name}{index}": np.array(number, kind)
        for index, bounds in enumerate(RANGES[kind])
        for name, number in zip("abc", bounds, strict=True)
    }
    numbers = range(len(RANGES[kind]))
    steps = [node("Range", f"a{index} b{index} c{index}", f"y{index}") for index in numbers]
    _agree(steps, feed, tmp_path, [f"y{index}" for index in numbers])


@pytest.mark.parametrize("bounds", [(-(1 << 63), (1 << 63) - 1, 1), (0, (1 << 63) - 1, 1)])
def test_ranges_that_nobody_can_hold(tmp_path: Path, bounds: tuple[int, int, int]) -> None:
    """Refused as a size that is too large."""
    feed = {name: np.array(number, np.int64) for name, number in zip("abc", bounds, strict=True)}
    with pytest.raises(ingot_runtime.InputError, match=r"too large|elements"):
        _answers([node("Range", "a b c", "y")], feed, tmp_path)


@pytest.mark.parametrize("bounds", [(0.0, np.inf, 1.0), (0.0, np.nan, 1.0), (np.inf, 0.0, 1.0)])
def test_ranges_without_end(tmp_path: Path, bounds: tuple[float, float, float]) -> None:
    """A limit that is no number is refused, as numpy does; a start at infinity gives nothing."""
    feed = {name: np.array(number, np.float32) for name, number in zip("abc", bounds, strict=True)}
    if bounds[0] == np.inf:
        assert _answers([node("Range", "a b c", "y")], feed, tmp_path)["y"].shape == (0,)
        return
    with pytest.raises(ingot_runtime.InputError, match=r"too large|negative|elements"):
        _answers([node("Range", "a b c", "y")], feed, tmp_path)


# ---- unique --------------------------------------------------------------------------------------


NOTHING: list[tuple[tuple[int, ...], int | None]] = [
    ((0, 3), 0), ((3, 0), 1), ((2, 0, 3), 1), ((0,), 0), ((0,), None), ((2, 0), None), ((3, 2), 0), ((3, 0), 0), ((2, 3, 0), 1),
]  # fmt: skip


@pytest.mark.parametrize("sorted_", [0, 1])
@pytest.mark.broad
def test_unique_of_nothing(tmp_path: Path, sorted_: int) -> None:
    """No slices are no unique slices; of slices without elements one is left. In the order of the
    file it is the same."""
    feed = {
        f"x{index}": np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) % 4
        for index, (shape, _) in enumerate(NOTHING)
    }
    names = [
        [f"{name}{index}" for name in ("y", "first", "inverse", "counts")]
        for index in range(len(NOTHING))
    ]

    def steps(order: int) -> list[NodeProto]:
        pairs = zip(NOTHING, names, strict=True)
        return [
            node("Unique", f"x{index}", " ".join(own), axis=axis, sorted=order)
            for index, ((_, axis), own) in enumerate(pairs)
        ]

    outputs = [name for own in names for name in own]
    found = _answers(steps(sorted_), feed, tmp_path, outputs)
    expected = reference(
        _model(steps(1), feed, outputs), feed
    )  # unsorted, the reference fails along other axes than 0
    for name in outputs:
        np.testing.assert_array_equal(found[name], expected[name], name)
        assert (found[name].shape, found[name].dtype) == (
            expected[name].shape,
            expected[name].dtype,
        )


@pytest.mark.broad
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(2,), (1, 2), (3, 1), ()], ids=str)
def test_beta_of_0_leaves_c_out(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    """Gemm does not multiply C by 0: NaN and infinities in it are not read."""
    c = np.full(shape, np.nan if dtype != "int32" else 7).astype(dtype)
    feed = {"a": np.ones((3, 4), dtype), "b": np.ones((4, 2), dtype), "c": c}
    for nodes in (
        [node("Gemm", "a b c", "y", beta=0.0)],
        [node("Gemm", "a b c", "y", beta=0.0, alpha=2.0, transA=0)],
    ):
        found = _answers(nodes, feed, tmp_path)["y"]
        np.testing.assert_array_equal(found, reference(_model(nodes, feed, ["y"]), feed)["y"])
