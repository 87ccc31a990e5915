"""Sources, movement, gathers and scatters against ONNX's reference and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.harness.ir_harness import Array, no_constants, op_name, run_onnx, run_op

from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import dim_broadcast, dim_floordiv, symbol
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.shapes import broadcast_shapes
from ingot_compiler.ir.types import TensorType
from ingot_compiler.oracles.interpret import interpret

X = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
S0, S1 = symbol("s0"), symbol("s1")


def test_literals_hold_every_element_type() -> None:
    """A literal gives its values; floats only as rank 0."""
    np.testing.assert_array_equal(
        run_op("literal", [], {"dtype": "i32", "shape": (2, 2), "value": (1, -2, 3, 4)}),
        [[1, -2], [3, 4]],
    )
    assert run_op("literal", [], {"dtype": "f32", "shape": (), "value": (0.1,)}) == np.float32(0.1)
    assert (
        run_op("literal", [], {"dtype": "bool", "shape": (1,), "value": (True,)}).dtype == np.bool_
    )


@pytest.mark.parametrize(
    "attributes",
    [
        {"dtype": "f32", "shape": (1,), "value": (1.0,)},
        {"dtype": "f32", "shape": (), "value": (1,)},
        {"dtype": "i8", "shape": (), "value": (128,)},
        {"dtype": "i8", "shape": (2,), "value": (1,)},
        {"dtype": "i8", "shape": (), "value": (True,)},
        {"dtype": "i64", "shape": (1025,), "value": (0,) * 1025},
    ],
)
def test_literals_outside_of_their_limits_are_refused(attributes: dict[str, Any]) -> None:
    """Floats of rank > 0, wrong counts, wrong types, values out of range, more than 1,024
    elements."""
    with pytest.raises(OpTypeError):
        OPS_BY_NAME["literal"].infer([], attributes)


def test_iota_and_dim_values_follow_symbols() -> None:
    """Sizes become values: iota counts to a symbolic length, dim_values lists sizes."""
    builder = GraphBuilder([TensorType("f32", (S0, S1))])
    iota = builder.add("iota", [], {"dtype": "u8", "length": S0 * 2})
    sizes = builder.add("dim_values", [], {"values": (S1, 7, dim_floordiv(S0, 2))})
    results = interpret(builder.finish([iota, sizes]), [np.zeros((3, 5), np.float32)], no_constants)
    np.testing.assert_array_equal(results[0], np.arange(6, dtype=np.uint8))
    np.testing.assert_array_equal(results[1], [5, 7, 1])


def test_reshape_transpose_broadcast() -> None:
    """The plain movements are numpy's."""
    np.testing.assert_array_equal(run_op("reshape", [X], {"shape": (4, 1, 6)}), X.reshape(4, 1, 6))
    np.testing.assert_array_equal(
        run_op("transpose", [X], {"permutation": (2, 0, 1)}), X.transpose(2, 0, 1)
    )
    np.testing.assert_array_equal(
        run_op("broadcast_to", [X[:, :1]], {"shape": (5, 2, 3, 4)}),
        np.broadcast_to(X[:, :1], (5, 2, 3, 4)),
    )


def test_slice_steps_in_both_directions() -> None:
    """Element i is x[start + i * step], also down to index 0 and for empty results."""
    attributes = {"starts": (1, 2, 3), "sizes": (1, 3, 2), "steps": (1, -1, -2)}
    np.testing.assert_array_equal(run_op("slice", [X], attributes), X[1:2, ::-1, 3::-2])
    empty = {"starts": (0, 0, 0), "sizes": (2, 0, 4), "steps": (1, 1, 1)}
    assert run_op("slice", [X], empty).shape == (2, 0, 4)


def test_concat_joins_along_an_axis() -> None:
    """Sizes add up along the axis; a single operand is allowed."""
    np.testing.assert_array_equal(
        run_op("concat", [X, X[:, :1]], {"axis": 1}), np.concatenate([X, X[:, :1]], 1)
    )
    np.testing.assert_array_equal(run_op("concat", [X], {"axis": 0}), X)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad_agrees_with_onnx(mode: str) -> None:
    """Every mode gives what ONNX's Pad gives."""
    value = np.array(9.0, np.float32)
    before, after = (0, 1, 2), (1, 2, 3)
    expected = run_onnx("Pad", [X, np.array([*before, *after]), value], 19, mode=mode)
    np.testing.assert_array_equal(
        run_op("pad", [X, value], {"before": before, "after": after, "mode": mode}), expected
    )


def test_gather_counts_negative_indices_from_the_end() -> None:
    """Gather agrees with ONNX for any axis and rank of indices."""
    for indices in (np.array([[0, -1], [2, 1]]), np.array(-2)):
        expected = run_onnx("Gather", [X, indices], 13, axis=1)
        np.testing.assert_array_equal(run_op("gather", [X, indices], {"axis": 1}), expected)


def test_gather_elements_agrees_with_onnx() -> None:
    """gather_elements picks single elements."""
    indices = np.array([[[0, 1, 0, -1]], [[2, 2, -3, 1]]])
    expected = np.take_along_axis(X, np.where(indices < 0, indices + 3, indices), 1)
    np.testing.assert_array_equal(run_op("gather_elements", [X, indices], {"axis": 1}), expected)


@pytest.mark.parametrize(
    ("indices", "batch_dims"),
    [
        (np.array([[0, 1], [1, -1]]), 0),
        (np.array([[1], [0]]), 1),
        (np.array([[[1, 2], [0, -1]], [[2, 0], [1, 1]]]), 1),
        (np.array([[[1], [0], [2]], [[3], [-1], [0]]]), 2),
        (np.array([1]), 0),
    ],
)
def test_gather_nd_agrees_with_onnx(indices: Array, batch_dims: int) -> None:
    """gather_nd picks slices per batch element."""
    expected = run_onnx(
        "GatherND",
        [X, np.where(indices < 0, indices + _size(indices), indices)],
        13,
        batch_dims=batch_dims,
    )
    np.testing.assert_array_equal(
        run_op("gather_nd", [X, indices], {"batch_dims": batch_dims}), expected
    )


def _size(indices: Array) -> int:
    """The size that the last index of each vector counts in (negative indices stand only there in
    these cases)."""
    return 3 if indices.shape == (2, 2) else 4


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
def test_scatter_elements_agrees_with_onnx(reduction: str) -> None:
    """Every reduction combines repeated indices as ONNX does."""
    indices = np.array([[[0, 1, 0, 2]], [[2, 2, 1, 1]]])
    updates = np.array([[[1.5, -2, 30, 4]], [[5, 60, -7, 8]]], np.float32)
    expected = run_onnx("ScatterElements", [X, indices, updates], 18, axis=1, reduction=reduction)
    result = run_op("scatter_elements", [X, indices, updates], {"axis": 1, "reduction": reduction})
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatter_nd_agrees_with_onnx(reduction: str, depth: int) -> None:
    """Slices of every depth are replaced or combined as ONNX does."""
    indices = np.array([[1, 0, 2], [0, 2, 3], [1, 0, 2]])[:, :depth]
    updates = np.linspace(
        -20, 40, 3 * X[0:1].size if depth == 1 else 3 * (4 if depth == 2 else 1), dtype=np.float32
    )
    updates = updates.reshape(3, *X.shape[depth:])
    expected = run_onnx("ScatterND", [X, indices, updates], 18, reduction=reduction)
    np.testing.assert_array_equal(
        run_op("scatter_nd", [X, indices, updates], {"reduction": reduction}), expected
    )


def test_the_last_update_wins() -> None:
    """Without a reduction, the last of several updates of one element stays."""
    x, updates = np.zeros(3, np.float32), np.array([1.0, 2.0, 3.0], np.float32)
    indices = np.array([1, 1, -2])
    result = run_op("scatter_elements", [x, indices, updates], {"axis": 0, "reduction": "none"})
    np.testing.assert_array_equal(result, [0, 3, 0])
    result = run_op("scatter_nd", [x, indices.reshape(3, 1), updates], {"reduction": "none"})
    np.testing.assert_array_equal(result, [0, 3, 0])


def test_bools_scatter_logically() -> None:
    """On bools, add and max are or; mul and min are and."""
    x, indices, updates = (
        np.array([True, False, True]),
        np.array([0, 1, 2]),
        np.array([False, True, True]),
    )
    for reduction, expected in (("add", x | updates), ("mul", x & updates)):
        result = run_op(
            "scatter_elements", [x, indices, updates], {"axis": 0, "reduction": reduction}
        )
        np.testing.assert_array_equal(result, expected)


def test_broadcasting_of_symbols() -> None:
    """1 yields, an integer above 1 wins over a symbol, two symbols give their maximum."""
    assert broadcast_shapes((S0, 1, 3), (S1,), (1, 5, 1, 1)) == (1, 5, 1, 3)
    assert broadcast_shapes((S0,), (1,)) == (S0,)
    assert broadcast_shapes((S0,), (4,)) == (4,)
    assert broadcast_shapes((S0,), (S1,)) == (dim_broadcast(S0, S1),)
    assert broadcast_shapes() == ()


def test_symbolic_sizes_flow_through_movement() -> None:
    """Type rules compute with expressions: concat adds, pad adds, gather inserts, reshape
    trusts."""
    x = TensorType("f32", (S0, 4))
    concat = OPS_BY_NAME["concat"].infer([x, x, TensorType("f32", (S1, 4))], {"axis": 0}).results
    assert concat[0].shape == (2 * S0 + S1, 4)
    pad = (
        OPS_BY_NAME["pad"]
        .infer([x, TensorType("f32", ())], {"before": (1, 0), "after": (S1, 2), "mode": "constant"})
        .results
    )
    assert pad[0].shape == (S0 + S1 + 1, 6)
    gather = OPS_BY_NAME["gather"].infer([x, TensorType("i64", (S1, 2))], {"axis": 1}).results
    assert gather[0].shape == (S0, S1, 2)
    assert OPS_BY_NAME["reshape"].infer([x], {"shape": (2, S0 * 2)}).results[0].shape == (2, 2 * S0)


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("reshape", [(2, 3)], {"shape": (4,)}),
        ("reshape", [(2, 3)], {"shape": (-2, -3)}),
        ("transpose", [(2, 3)], {"permutation": (0, 0)}),
        ("slice", [(4,)], {"starts": (1,), "sizes": (4,), "steps": (1,)}),
        ("slice", [(4,)], {"starts": (2,), "sizes": (2,), "steps": (0,)}),
        ("slice", [(4,)], {"starts": (1,), "sizes": (3,), "steps": (-1,)}),
        ("slice", [(4,)], {"starts": (0, 0), "sizes": (1,), "steps": (1,)}),
        ("concat", [(2, 3), (2, 4)], {"axis": 0}),
        ("concat", [(2, 3), (2,)], {"axis": 0}),
        ("concat", [], {"axis": 0}),
        ("pad", [(2,), ()], {"before": (-1,), "after": (0,), "mode": "constant"}),
        ("pad", [(0,), ()], {"before": (1,), "after": (0,), "mode": "edge"}),
        ("pad", [(2,), ()], {"before": (1,), "after": (0,), "mode": "symmetric"}),
        ("broadcast_to", [(2, 3)], {"shape": (3,)}),
        ("broadcast_to", [(2, 3)], {"shape": (4, 3)}),
        ("gather", [(2,), (2,)], {"axis": 0}),
        ("iota", [], {"dtype": "bool", "length": 3}),
        ("iota", [], {"dtype": "i8", "length": -1}),
    ],
)
def test_impossible_movements_are_refused(
    op: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any]
) -> None:
    """What integers show to be impossible is an error of the type rule, before anything runs."""
    with pytest.raises(OpTypeError):
        OPS_BY_NAME[op_name(op)].infer([TensorType("f32", shape) for shape in shapes], attributes)
