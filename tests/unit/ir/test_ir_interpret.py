"""The interpreter: symbols, constants, bf16, read_dim, its checks of inputs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.ir_harness import Array, no_constants

from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.op import bf16_to_f32
from ingot_compiler.ir.rules.reference_rules import erf, f32_to_bf16
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.oracles.interpret import interpret, interpret_values

S0 = symbol("s0")


def test_symbols_are_bound_by_input_shapes() -> None:
    """One compiled graph runs at every size, and a symbol used twice must agree."""
    graph = parse_graph(
        "graph(%0: f32[n, 2], %1: f32[n, 1]) { %2 = add(%0, %1) : f32[n, 2] return %2, %0 }"
    )
    for size in (0, 1, 5):
        x = np.ones((size, 2), np.float32)
        total, same = interpret(graph, [x, x[:, :1]], no_constants)
        np.testing.assert_array_equal(total, x * 2)
        assert same is x
    with pytest.raises(UserError, match="does not fit") as caught:
        interpret(graph, [np.ones((2, 2), np.float32), np.ones((3, 1), np.float32)], no_constants)
    assert caught.value.where == "input #1"
    assert "[2, 1]" in caught.value.why


def test_wrong_inputs_are_refused() -> None:
    """Count, element type, rank and sizes of inputs are checked against the graph."""
    graph = parse_graph("graph(%0: f32[2]) { return %0 }")
    wrong: list[list[Array]] = [
        [],
        [np.zeros(2)],
        [np.zeros(3, np.float32)],
        [np.zeros((2, 1), np.float32)],
    ]
    for inputs in wrong:
        with pytest.raises(UserError):
            interpret(graph, inputs, no_constants)


def test_constants_come_from_the_reader() -> None:
    """A constant's bytes are little-endian and row-major, of any element type."""
    data = {
        "aa": np.arange(6, dtype="<i2").tobytes(),
        "bb": b"\x01\x00",
        "cc": f32_to_bf16(np.array([1.5], np.float32)).tobytes(),
    }
    builder = GraphBuilder([])
    values = [
        builder.add("constant", [], {"weight": "aa", "dtype": "i16", "shape": (2, 3)}),
        builder.add("constant", [], {"weight": "bb", "dtype": "bool", "shape": (2,)}),
        builder.add("constant", [], {"weight": "cc", "dtype": "bf16", "shape": (1,)}),
    ]
    results = interpret(builder.finish(values), [], lambda digest: memoryview(data[digest]))
    np.testing.assert_array_equal(results[0], np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(results[1], [True, False])
    np.testing.assert_array_equal(results[2], np.array([0x3FC0], np.uint16))


def test_read_dim_binds_a_size_at_run_time() -> None:
    """A value becomes a size of later tensors; a negative one is refused."""
    graph = parse_graph(
        'graph(%0: i32[2]) { read_dim(%0) {index=1, symbol="n"} '
        '%1 = iota() {dtype="i64", length=2*n + 1} : i64[2*n + 1] return %1 }'
    )
    (result,) = interpret(graph, [np.array([9, 2], np.int32)], no_constants)
    np.testing.assert_array_equal(result, np.arange(5))
    with pytest.raises(ModelError, match="negative"):
        interpret(graph, [np.array([9, -2], np.int32)], no_constants)


def test_requirements_refuse_what_does_not_fulfil_them() -> None:
    """Of elements and of sizes, each with its own text; what fulfils them passes unchanged."""
    graph = parse_graph(
        'graph(%0: i64[s0], %1: bool[]) { require_dim() {difference=min(s0 - 2, 0), what="expected two"} '
        '%2 = require(%0, %1) {what="expected true"} : i64[s0] return %2 }'
    )
    x = np.array([5, 6, 7])
    np.testing.assert_array_equal(interpret(graph, [x, np.array(True)], no_constants)[0], x)
    with pytest.raises(ModelError, match="expected true"):
        interpret(graph, [x, np.array(False)], no_constants)
    with pytest.raises(ModelError, match="expected two"):
        interpret(graph, [x[:1], np.array(True)], no_constants)


def test_bf16_is_computed_in_float32_and_rounded_to_even() -> None:
    """bf16 tensors are bit patterns outside and float32 inside; results round to nearest even."""
    one, step = 0x3F80, 0x3B80  # 1 and 2^-8: half a unit in the last place of 1
    graph = parse_graph("graph(%0: bf16[3], %1: bf16[3]) { %2 = add(%0, %1) : bf16[3] return %2 }")
    a, b = np.array([one, one + 1, 0x7F80], np.uint16), np.array([step, step, one], np.uint16)
    (result,) = interpret(graph, [a, b], no_constants)
    np.testing.assert_array_equal(result, np.array([one, one + 2, 0x7F80], np.uint16))


def test_bf16_conversion_is_exact_on_every_pattern() -> None:
    """Widening and rounding all 65,536 patterns gives them back; NaNs stay NaNs and overflow gives
    infinity."""
    patterns = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    wide = bf16_to_f32(patterns)
    numbers = ~np.isnan(wide)
    np.testing.assert_array_equal(f32_to_bf16(wide)[numbers], patterns[numbers])
    assert np.isnan(bf16_to_f32(f32_to_bf16(wide[~numbers]))).all()
    assert f32_to_bf16(np.array(3.4e38, np.float32)) == 0x7F80


def test_bf16_moves_as_numbers() -> None:
    """Movement ops and casts accept bf16."""
    graph = parse_graph(
        "graph(%0: bf16[2, 2]) { %1 = transpose(%0) {permutation=[1, 0]} : bf16[2, 2] "
        '%2 = cast(%1) {dtype="f32"} : f32[2, 2] %3 = cast(%2) {dtype="bf16"} : bf16[2, 2] return %2, %3 }'
    )
    x = f32_to_bf16(np.array([[1, 2], [3, 4]], np.float32))
    wide, narrow = interpret(graph, [x], no_constants)
    np.testing.assert_array_equal(wide, [[1, 3], [2, 4]])
    np.testing.assert_array_equal(narrow, x.T)


def test_values_are_yielded_node_by_node() -> None:
    """Every node's results come in order, read_dim with none."""
    graph = parse_graph(
        'graph(%0: i64[1]) { %1 = neg(%0) : i64[1] read_dim(%0) {index=0, symbol="n"} %2 = abs(%1) : i64[1] return %2 }'
    )
    steps = list(interpret_values(graph, [np.array([4])], no_constants))
    assert [(index, [array.tolist() for array in results]) for index, results in steps] == [
        (0, [[-4]]),
        (1, []),
        (2, [[4]]),
    ]


def test_sizes_that_differ_at_run_time_are_named() -> None:
    """Two symbols that a type rule took for equal are compared when the graph runs."""
    graph = parse_graph(
        "graph(%0: f32[a], %1: f32[b]) { %2 = mul(%0, %1) : f32[broadcast(a, b)] return %2 }"
    )
    (result,) = interpret(graph, [np.ones(1, np.float32), np.ones(4, np.float32)], no_constants)
    assert result.shape == (4,)
    (result,) = interpret(graph, [np.ones(0, np.float32), np.ones(1, np.float32)], no_constants)
    assert result.shape == (0,)
    with pytest.raises(ModelError, match="cannot run on these values"):
        interpret(graph, [np.ones(2, np.float32), np.ones(3, np.float32)], no_constants)


def test_indices_out_of_range_are_named() -> None:
    """A gather beyond the end is an error that names the node, never a wrong value."""
    graph = parse_graph(
        "graph(%0: f32[2], %1: i64[1]) { %2 = gather(%0, %1) {axis=0} : f32[1] return %2 }"
    )
    with pytest.raises(ModelError) as caught:
        interpret(graph, [np.ones(2, np.float32), np.array([2])], no_constants)
    assert caught.value.where == "node 0 (gather)"


def test_float16_sums_do_not_lose_small_terms() -> None:
    """Contractions sum in float64 and round once, whatever the element type."""
    builder = GraphBuilder([TensorType("f16", (1, 4096)), TensorType("f16", (4096, 1))])
    graph = builder.finish([builder.add("matmul", [0, 1])])
    (result,) = interpret(
        graph, [np.full((1, 4096), 0.5, np.float16), np.ones((4096, 1), np.float16)], no_constants
    )
    assert result[0, 0] == 2048


def test_erf_keeps_rank_and_signs() -> None:
    """erf works on any rank and is odd."""
    x = np.array(0.5)
    assert erf(x).shape == ()
    np.testing.assert_allclose(
        erf(np.array([[0.5, -0.5]])), [[0.5204998778130465, -0.5204998778130465]], rtol=1e-15
    )
