"""Constant expressions: what is folded, how it is cut out, and that its bytes are the same on every
machine."""

import hashlib
import importlib
import math
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.ir_harness import op_name

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.constants.constant_expression import (
    EXPRESSION_NODES_MAX,
    constant_values,
    extract,
)
from ingot_compiler.lowering.constants.constant_functions import FUNCTIONS
from ingot_compiler.lowering.constants.evaluate_constant import evaluate
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.passes.fold_batch_norm import fold_batch_norm
from ingot_compiler.passes.fold_literals import fold_literals

# Private in numpy, and the only place that says which extensions this build can use.
multiarray: Any = importlib.import_module("numpy._core._multiarray_umath")
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3.4e38, -1.5)


def contents(digest: str, dtype: str, size: int) -> Array:
    """Deterministic numbers by digest, special ones between them."""
    draw = np.random.default_rng(
        int.from_bytes(hashlib.sha256(digest.encode()).digest()[:4], "little")
    )
    if dtype[0] in "iu":
        return draw.integers(0, 100, size).astype(dtype.replace("i", "int").replace("u", "uint"))
    if dtype == "bf16":
        return draw.integers(0, 1 << 16, size).astype(np.uint16)
    numbers = draw.normal(size=size)
    numbers[:: max(size // 16, 1)] = np.resize(SPECIAL, numbers[:: max(size // 16, 1)].size)
    with np.errstate(over="ignore"):
        return numbers.astype(STORAGE_DTYPES[dtype])


class Weights:
    """A builder of constants and the reader that goes with it."""

    def __init__(self, inputs: Sequence[TensorType] = ()) -> None:
        self.builder = GraphBuilder(inputs)
        self.arrays: dict[str, Array] = {}

    def constant(self, digest: str, dtype: str, *shape: int) -> int:
        """A constant node; its bytes follow from the digest."""
        self.arrays[digest] = contents(digest, dtype, int(np.prod(shape)))
        return self.add("constant", (), weight=digest, dtype=dtype, shape=shape)

    def add(self, op: str, operands: Sequence[int], **attributes: Attribute) -> int:
        """Any node."""
        return self.builder.add(op_name(op), operands, attributes)

    def read(self, digest: str) -> memoryview:
        """The reader; its memory is read-only, as a mapped file's."""
        return memoryview(self.arrays[digest].tobytes())


def folded_batch_norm() -> tuple[Graph, Weights]:
    """A convolution and a batch norm, folded."""
    weights = Weights([TensorType("f32", (1, 8, 5, 5))])
    kernel = weights.constant("kernel", "f32", 16, 8, 3, 3)
    window = {"strides": (1, 1), "pads_before": (1, 1), "pads_after": (1, 1), "dilations": (1, 1)}
    value = weights.add("conv", (0, kernel), groups=1, **window)
    parameters = [weights.constant(name, "f32", 16) for name in ("scale", "bias", "mean")]
    weights.arrays["variance"] = np.abs(contents("variance", "f32", 16))
    variance = weights.add("constant", (), weight="variance", dtype="f32", shape=(16,))
    value = weights.add("batch_norm", (value, *parameters, variance), epsilon=1e-5)
    return fold_batch_norm(weights.builder.finish((value,))), weights


def everything() -> tuple[Graph, Weights]:
    """One expression with every foldable op."""
    weights = Weights()
    add = weights.add
    first, second = (weights.constant(name, "f32", 64, 96) for name in "ab")
    value = add("add", (add("mul", (first, second)), add("neg", (second,))))
    value = add("div", (value, add("sqrt", (add("abs", (first,)),))))
    value = add("min", (value, add("max", (second, add("sub", (first, second))))))
    value = add("add", (value, add("reciprocal", (second,))))
    value = add("reshape", (add("transpose", (value,), permutation=(1, 0)),), shape=(8, 12, 64))
    value = add("slice", (value,), starts=(7, 1, 0), sizes=(4, 10, 32), steps=(-2, 1, 2))
    zero = add("literal", (), dtype="f32", shape=(), value=(0.5,))
    value = add("pad", (value, zero), before=(1, 0, 0), after=(0, 0, 2), mode="constant")
    value = add("pad", (value, zero), before=(0, 1, 0), after=(0, 1, 0), mode="reflect")
    index = weights.constant("i", "i64", 3)
    value = add(
        "gather",
        (
            value,
            add(
                "sub",
                (
                    add("min", (index, add("literal", (), dtype="i64", shape=(), value=(4,)))),
                    add("literal", (), dtype="i64", shape=(1,), value=(5,)),
                ),
            ),
        ),
        axis=0,
    )
    value = add("concat", (value, value), axis=2)
    value = add("mul", (value, add("broadcast_to", (zero,), shape=(3, 12, 68))))
    wide = add("cast", (weights.constant("h", "f16", 68),), dtype="f64")
    narrow = add("cast", (add("sqrt", (wide,)),), dtype="f32")
    value = add("add", (value, narrow))
    value = add("add", (value, add("cast", (weights.constant("n", "i32", 12, 1),), dtype="f32")))
    value = add("add", (value, add("cast", (weights.constant("w", "bf16", 68),), dtype="f32")))
    return weights.builder.finish((value,)), weights


def functions() -> tuple[Graph, Weights]:
    """Functions, comparisons and a sort."""
    weights = Weights()
    add, numbers = weights.add, weights.constant("f", "f32", 4096)
    wide = add("cast", (numbers,), dtype="f64")
    value = add("add", (add("sin", (numbers,)), add("cos", (numbers,))))
    value = add("sub", (value, add("exp", (numbers,))))
    size = add("abs", (numbers,))
    found = [add("log", (size,)), add("tanh", (numbers,)), add("erf", (numbers,))]
    for part in (*found, add("pow", (size, numbers))):
        value = add("add", (value, part))
    both = add("logical_and", (add("less", (numbers, value)), add("equal", (wide, wide))))
    either = add("logical_or", (add("isnan", (value,)), add("logical_not", (both,))))
    value = add("select", (either, value, numbers))
    bits = add("bitwise_not", (add("bit_cast", (numbers,), dtype="u32"),))
    places = [add("literal", (), dtype="u32", shape=(), value=(count,)) for count in (3, 40)]
    moved = add("shift_right", (add("shift_left", (bits, places[0])), places[0]))
    bits = add(
        "bitwise_or", (bits, add("bitwise_xor", (moved, add("shift_left", (bits, places[1])))))
    )
    order = add("argsort", (bits,), count=4000)
    return weights.builder.finish((add("gather", (value, order), axis=0),)), weights


def reductions() -> tuple[Graph, Weights]:
    """What is made of many elements: each function over floats and integers, and a product."""
    weights = Weights()
    numbers, counts = weights.constant("r", "f32", 37, 70, 5), weights.constant("k", "i32", 9, 30)

    def of(operand: int, function: str, *axes: int) -> int:
        keepdims = function != "max"
        return weights.add("reduce", (operand,), function=function, axes=axes, keepdims=keepdims)

    found = [of(numbers, name, 0, 2) for name in ("sum", "mean", "product", "max", "min")]
    found += [of(counts, name, 1) for name in ("sum", "product", "max", "min")]
    left, right = weights.constant("m", "f32", 3, 8, 33), weights.constant("w", "f32", 33, 20)
    wide = of(weights.add("cast", (numbers,), dtype="f64"), "sum", 1)
    return weights.builder.finish((*found, weights.add("matmul", (left, right)), wide)), weights


def test_reductions_agree_with_the_interpreter() -> None:
    """Integers are equal; floats as near as an f32 sum of the interpreter is."""
    graph, weights = reductions()
    assert set(graph.outputs) <= constant_values(graph)
    for value in graph.outputs:
        expression = expression_of(graph, value)
        (expected,) = interpret(expression, (), weights.read)
        found = np.frombuffer(evaluate(expression, weights.read), expected.dtype)
        np.testing.assert_allclose(found, expected.ravel(), rtol=1e-5)


def test_a_folded_sum_is_rounded_once() -> None:
    """Nearer to the true sum than a chain of f32: the last bit is that of the exact sum."""
    weights = Weights()
    total = weights.add(
        "reduce", (weights.constant("s", "f32", 5000),), function="sum", axes=(0,), keepdims=False
    )
    weights.arrays["s"] = np.random.default_rng(0).normal(1, 1, 5000).astype(np.float32)
    found = np.frombuffer(
        evaluate(expression_of(weights.builder.finish((total,)), total), weights.read), np.float32
    )
    assert found[0] == np.float32(math.fsum(map(float, weights.arrays["s"])))


@pytest.mark.parametrize(
    ("name", "exact", "least", "greatest"),
    [
        ("erf", math.erf, -7.0, 7.0), ("erf", math.erf, -0.01, 0.01), ("exp", math.exp, -30.0, 30.0),
        ("log", math.log, 1e-300, 1e-290), ("log", math.log, 0.5, 2.0), ("log", math.log, 2.0, 1e300),
        ("pow", math.pow, -3.0, 300.0), ("tanh", math.tanh, -25.0, 25.0), ("tanh", math.tanh, -0.01, 0.01),
    ],
)  # fmt: skip
def test_functions_in_f64(
    name: str, exact: Callable[..., float], least: float, greatest: float
) -> None:
    """Within three units in the last place of the C library."""
    x = np.random.default_rng(0).uniform(least, greatest, 5000)
    operands = (np.abs(x), x / 3) if name == "pow" else (x,)
    found = FUNCTIONS[name](operands, np.empty_like(x))
    expected = np.array([exact(*numbers) for numbers in zip(*operands, strict=True)])
    assert (np.abs(found - expected) <= 3 * np.spacing(np.abs(expected))).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_special_values(dtype: str) -> None:
    """0, infinities, NaN and what leaves the range, signs included, as C99 has them."""
    x = np.array([0.0, -0.0, 1, -1, 2, -3, 0.5, np.inf, -np.inf, np.nan, 1e38, 1e-45], dtype)
    with np.errstate(all="ignore"):
        powers = np.power(x[:, None].astype("f8"), x.astype("f8")).astype(dtype)
        expected = {"log": np.log(x), "tanh": np.tanh(x), "pow": powers}
        for name, numbers in expected.items():
            operands = (x[:, None], x) if name == "pow" else (x,)
            found = FUNCTIONS[name](operands, np.empty_like(numbers))
            np.testing.assert_allclose(found, numbers, rtol=3e-7 if dtype == "f4" else 1e-15)
            assert (np.signbit(found) == np.signbit(numbers))[~np.isnan(numbers)].all()
    found = FUNCTIONS["erf"]((x,), np.empty_like(x))
    np.testing.assert_array_equal(found[[0, 7, 8, 9]], np.array([0, 1, -1, np.nan], dtype))


def expression_of(graph: Graph, value: int) -> Graph:
    """What computes a constant of a graph."""
    return extract(graph, value, graph.makers())


def digest_of(graph: Graph, weights: Weights) -> str:
    """sha256 of the folded bytes of the graph's first constant output."""
    (value,) = graph.outputs
    return hashlib.sha256(evaluate(expression_of(graph, value), weights.read)).hexdigest()


def enabled_features() -> str:
    """The vector extensions that this process's numpy uses."""
    return " ".join(
        name for name in multiarray.__cpu_dispatch__ if multiarray.__cpu_features__.get(name)
    )


def all_digests() -> str:
    """One line for the whole module, printed by the processes that run with fewer features."""
    graph, weights = folded_batch_norm()
    conv = next(node for node in graph.nodes if node.op == "conv")
    bound = [
        hashlib.sha256(evaluate(expression_of(graph, value), weights.read)).hexdigest()
        for value in conv.operands[1:]
    ]
    graph, weights = reductions()
    bound += [
        hashlib.sha256(evaluate(expression_of(graph, value), weights.read)).hexdigest()
        for value in graph.outputs
    ]
    return " ".join([*bound, digest_of(*everything()), digest_of(*functions())])


def test_folded_batch_norm_is_constant() -> None:
    """The new weights and bias are constant expressions; the input and the convolution are not."""
    graph, _ = folded_batch_norm()
    conv = next(node for node in graph.nodes if node.op == "conv")
    assert set(conv.operands[1:]) <= constant_values(graph)
    assert not {0, *conv.results} & constant_values(graph)


@pytest.mark.parametrize("make", [folded_batch_norm, everything, functions])
def test_evaluation_agrees_with_the_interpreter(make: Callable[[], tuple[Graph, Weights]]) -> None:
    """The folded bytes are the numbers of the reference, NaN for NaN."""
    graph, weights = make()
    for value in sorted(constant_values(graph)):
        expression = expression_of(graph, value)
        dtype = STORAGE_DTYPES[graph.types[value].dtype]
        found = np.frombuffer(evaluate(expression, weights.read), dtype)
        (expected,) = interpret(expression, (), weights.read)
        np.testing.assert_array_equal(found, expected.ravel())


def test_equal_expressions_are_equal_graphs() -> None:
    """Numbering, sources and marks of the surrounding graph leave no trace: one artifact for equal
    layers."""
    found: list[Graph] = []
    for swap in (False, True):
        weights = Weights([TensorType("f32", (2,))])
        order = ("b", "a") if swap else ("a", "b")
        constants = {name: weights.constant(name, "f32", 2) for name in order}
        weights.builder.add("relu", (0,), {})
        value = weights.builder.add(
            "mul", (constants["a"], constants["b"]), {}, (3,), "acc" if swap else ""
        )
        found.append(expression_of(weights.builder.finish((value,)), value))
    assert found[0] == found[1]
    assert found[0].inputs == ()


def test_what_is_left_to_run_time() -> None:
    """Functions that differ between machines, f16 arithmetic, symbols, and what grows too much."""
    weights = Weights([TensorType("f32", (symbol("s0"),))])
    big, half = weights.constant("a", "f32", 1024), weights.constant("h", "f16", 4)
    none = weights.constant("e", "f32", 0, 3)
    left = [
        weights.add("tan", (big,)),
        weights.add("reduce", (half,), function="sum", axes=(0,), keepdims=False),
        weights.add("reduce", (none,), function="max", axes=(0,), keepdims=False),
        weights.add("add", (half, half)),
        weights.add("broadcast_to", (weights.constant("o", "f32", 1),), shape=(symbol("s0"),)),
        weights.add("broadcast_to", (big,), shape=(300, 1024)),
    ]
    left.append(weights.add("neg", (left[0],)))
    taken = [
        weights.add("broadcast_to", (big,), shape=(200, 1024)),
        weights.add("cast", (half,), dtype="f32"),
        weights.add("log", (big,)),
        weights.add("iota", (), dtype="i64", length=7),
    ]
    read = weights.add("tan", (taken[0],))  # as an output, it would be computed
    found = constant_values(weights.builder.finish((*left, read, *taken[1:])))
    assert not found & set(left)
    assert found >= set(taken)


def test_a_constant_index_out_of_range_names_itself() -> None:
    """Folding never reads outside of a constant."""
    weights = Weights()
    index = weights.add("literal", (), dtype="i64", shape=(2,), value=(0, 5))
    value = weights.add("gather", (weights.constant("a", "f32", 5), index), axis=0)
    with pytest.raises(ModelError, match="out of range"):
        digest_of(weights.builder.finish((value,)), weights)


def test_a_plain_constant_is_not_copied() -> None:
    """Reshapes and slices of leading rows give a view of the reader's memory."""
    weights = Weights()
    value = weights.add("reshape", (weights.constant("a", "f32", 64, 64),), shape=(4096,))
    kept = weights.read("a")
    result = evaluate(expression_of(weights.builder.finish((value,)), value), lambda digest: kept)
    assert np.shares_memory(np.frombuffer(kept, np.uint8), np.frombuffer(result, np.uint8))
    assert result.readonly


def test_memory_stays_near_the_result() -> None:
    """Scaling 16 MiB of weights takes one buffer of that size, however many steps it has."""
    weights = Weights()
    kernel = weights.constant("a", "f32", 2048, 2048)
    factor = weights.constant("f", "f32", 2048, 1)
    value = kernel
    for _ in range(4):
        value = weights.add("mul", (value, factor))
    expression = expression_of(weights.builder.finish((value,)), value)
    buffers = {digest: array.data.cast("B") for digest, array in weights.arrays.items()}
    tracemalloc.start()
    evaluate(expression, buffers.__getitem__)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 1.1 * (16 << 20)


@pytest.mark.broad
def test_same_bytes_under_other_dispatch_levels() -> None:
    """numpy folds the same bytes with all, some and none of the vector extensions that it could
    use."""
    folder = Path(__file__).parents[3]
    path = os.pathsep.join(str(folder / name) for name in ("compiler", "runtime"))
    code = f"import runpy; m = runpy.run_path({__file__!r}); print(m['enabled_features']()); print(m['all_digests']())"
    features: Sequence[str] = multiarray.__cpu_dispatch__
    found: dict[str, str] = {}
    for disabled in ("", " ".join(features[1:]), " ".join(features)):
        environment = {"PATH": os.defpath, "PYTHONPATH": path, "NPY_DISABLE_CPU_FEATURES": disabled}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        enabled, digests = run.stdout.splitlines()
        assert not set(enabled.split()) & set(disabled.split())
        found[enabled] = digests
    assert set(found.values()) == {all_digests()}
    assert "" in found


@pytest.mark.parametrize(
    "op", [op.name for op in OPS_BY_NAME.values() if Trait.DIVIDES in op.traits]
)
def test_a_division_of_integers_by_zero_is_left_to_the_call(op: str) -> None:
    """Of literals it is not folded, by one it is; of weights no division of integers is."""
    for divisor, folded in ((0, False), (1, True)):
        builder = GraphBuilder([])
        seven, by = (
            builder.add("literal", (), {"dtype": "i32", "shape": (), "value": (number,)})
            for number in (7, divisor)
        )
        graph = fold_literals(builder.finish([builder.add(op_name(op), (seven, by))]))
        assert ({node.op for node in graph.nodes} == {"literal"}) == folded
        weight = builder.add("constant", (), {"dtype": "i32", "shape": (), "weight": "0"})
        quotient = builder.add(op_name(op), (weight, by))
        assert quotient not in constant_values(builder.finish([quotient]))


def test_a_value_that_is_read_often_counts_once() -> None:
    """Each of 40 steps reads the one before twice: 2**40 readings of 41 nodes, which are few."""
    weights = Weights()
    value = weights.constant("a", "f32", 4)
    for _ in range(40):
        value = weights.add("add", (value, value))
    graph = weights.builder.finish((value,))
    assert value in constant_values(graph)


def test_a_long_expression_is_left_to_run_time() -> None:
    """The first value with too many nodes, and what needs it."""
    weights = Weights()
    value = weights.constant("a", "f32", 4)
    values = [value := weights.add("add", (value, value)) for _ in range(2 * EXPRESSION_NODES_MAX)]
    found = constant_values(weights.builder.finish((value,)))
    # The constant is one of the nodes.
    assert [each in found for each in values].index(False) == EXPRESSION_NODES_MAX - 1
    assert value not in found


def test_what_takes_the_place_of_a_widened_matrix_needs_no_room_of_its_own() -> None:
    """A matrix of 300 MB, widened and transposed: a bundle stores one of the three."""
    weights = Weights()
    stored = weights.add("constant", (), weight="w", dtype="bf16", shape=(40000, 4096))
    wide = weights.add("cast", (stored,), dtype="f32")
    turned = weights.add("transpose", (wide,), permutation=(1, 0))
    found = constant_values(weights.builder.finish((turned,)))
    assert {stored, wide, turned} <= found


def _outputs_of_a_matrix(size: int, *, also_read: bool = False) -> tuple[Graph, list[int]]:
    """A matrix of ones and zeros, of comparisons of two vectors, as an output."""
    weights = Weights()
    numbers = weights.add("iota", (), dtype="i64", length=size)
    rows = weights.add("reshape", (numbers,), shape=(size, 1))
    is_one = weights.add("equal", (rows, numbers))
    matrix = weights.add("cast", (is_one,), dtype="f32")
    outputs = [matrix]
    if also_read:
        outputs.append(weights.add("neg", (matrix,)))
    return weights.builder.finish(outputs), [rows, is_one, matrix]


def test_large_outputs_of_small_values_are_computed() -> None:
    """A copy would read as much as it writes: what takes no longer to compute is no constant, and
    neither is what only it needs; small values are, and so is what something else reads."""
    graph, (rows, is_one, matrix) = _outputs_of_a_matrix(300)
    assert constant_values(graph) & {rows, is_one, matrix} == {rows}
    for graph, values in (_outputs_of_a_matrix(50), _outputs_of_a_matrix(300, also_read=True)):
        assert constant_values(graph).issuperset(values)


@pytest.mark.parametrize("count", [1, 2])
def test_zeros_that_others_are_scattered_into_are_computed(count: int) -> None:
    """They are written where the result lies: as a constant they would be copied there. What two
    scatters read is one."""
    places, ones = TensorType("i64", (5,)), TensorType("f32", (5,))
    weights = Weights([places, ones])
    zero = weights.builder.scalar("f32", 0.0)
    zeros = weights.add("broadcast_to", (zero,), shape=(10000,))
    made = [
        weights.add("scatter_elements", (zeros, 0, 1), axis=0, reduction="none")
        for _ in range(count)
    ]
    assert (zeros in constant_values(weights.builder.finish(made))) == (count > 1)


def test_large_outputs_of_large_constants_are_copied() -> None:
    """A comparison of weights that are as large takes no less than a copy."""
    weights = Weights()
    own = weights.constant("w", "i32", 200, 200)
    less = weights.add("less", (own, weights.constant("v", "i32", 200, 1)))
    result = weights.add("cast", (less,), dtype="i32")
    assert result in constant_values(weights.builder.finish([result]))


def test_long_tables_of_literals_are_constants() -> None:
    """What the graph's text holds is stored anyway: a table of more than a MiB, in more parts than
    an expression has other nodes, is no copy in each call."""
    weights, numbers = Weights(), tuple(range(200))
    count = EXPRESSION_NODES_MAX + 1
    parts = [
        weights.add("literal", (), dtype="i64", shape=(200,), value=numbers) for _ in range(count)
    ]
    table = weights.add("concat", parts, axis=0)
    assert table in constant_values(weights.builder.finish([table]))
