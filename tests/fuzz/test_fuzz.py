"""Random graphs give the same by ``onnx.reference``, interpreter, native code and vm; the fuzzer
itself works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from tests.fuzz.generate import generate
from tests.fuzz.program import Program, to_model
from tests.fuzz.reference import UndefinedError, Value, run_node
from tests.fuzz.rules import difference

import ingot
import ingot_runtime

RUN = Path(__file__).parent / "run.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command: it forks, which this process, with its threads, must not."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, str(RUN), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.mark.parametrize("count", [20, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.broad
def test_the_first_graphs(count: int) -> None:
    """No difference beyond the rules, no error and no crash over the first seeds: twenty in the
    quick suite, sixty in the slow one."""
    done = run("--count", str(count))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_two_thousand_graphs() -> None:
    """The same over two thousand other seeds."""
    done = run("--count", "2000", "--seed", "100000")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_seed_is_a_program() -> None:
    """A seed gives the same model every time, another seed another one."""
    contents = {to_model([generate(seed)]).SerializeToString() for seed in (1, 1, 2, 2, 3)}
    assert len(contents) == 3


def test_bounds_follow_the_numbers() -> None:
    """Movement is exact, a sum may be off by roundings, a difference of near numbers by as much as
    they were."""
    x = np.array([1.0, 2.0, 3.0], np.float32)
    assert run_node(helper.make_node("Transpose", ["x"], ["y"]), [Value(x)])[0].bound is None
    off = Value(x, np.full(3, 1e-4))
    result = run_node(helper.make_node("Sub", ["x", "z"], ["y"]), [off, Value(x)])[0]
    assert result.bound is not None
    assert (result.bound > 4e-5).all()
    assert difference(result.array + np.float32(1e-4), result) == ""
    assert "differ" in difference(result.array + np.float32(1e-1), result)


def test_a_computed_zero_has_either_sign() -> None:
    """A quotient by it has either infinity, by a zero that was given the one of its sign."""
    x = Value(np.array([1.0, -0.0], np.float32))
    (least,) = run_node(helper.make_node("Relu", ["x"], ["y"]), [x])
    (quotient,) = run_node(helper.make_node("Reciprocal", ["y"], ["z"]), [least])
    assert difference(np.array([1.0, np.inf], np.float32), quotient) == ""
    assert difference(np.array([1.0, -np.inf], np.float32), quotient) == ""
    given = Value(np.array([1.0, 0.0], np.float32))
    (exact,) = run_node(helper.make_node("Reciprocal", ["x"], ["z"]), [given])
    assert "differ" in difference(np.array([1.0, -np.inf], np.float32), exact)


def test_a_sum_of_trees_is_rounded_to_its_terms() -> None:
    """Leaves that cancel leave the rounding of the leaves."""
    names = ("nodes_treeids", "nodes_nodeids", "target_treeids", "target_nodeids", "target_ids")
    columns = ([0, 1], [0, 0], [0, 1], [0, 0], [0, 0])
    zeros = ("nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids")
    lists: dict[str, Any] = dict(zip(names, columns, strict=True))
    lists |= {name: [0, 0] for name in zeros}
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_modes=["LEAF"] * 2, nodes_values=[0.0, 0.0], target_weights=[1e4, -1e4],
        **lists,
    )  # fmt: skip
    (result,) = run_node(node, [Value(np.zeros((1, 1), np.float32))])
    assert result.bound is not None
    assert 1e-3 < result.bound[0, 0] < 1e-2


def test_undefined_numbers_are_left_out() -> None:
    """Integer division by zero, a cast to u32 of what does not fit and a quotient that the
    reference wraps have no right answer."""
    for x in (np.float32(1e20), np.float32(np.inf)):
        large = [Value(np.array(item)) for item in (x, np.float32(0.1), np.uint8(3))]
        with pytest.raises(UndefinedError):
            run_node(helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"]), large)
    zero, one = Value(np.zeros(1, np.int32)), Value(np.ones(1, np.int32))
    with pytest.raises(UndefinedError):
        run_node(helper.make_node("Div", ["x", "z"], ["y"]), [one, zero])
    with pytest.raises(UndefinedError):
        run_node(
            helper.make_node("Cast", ["x"], ["y"], to=12), [Value(np.array([1e10], np.float32))]
        )
    (result,) = run_node(
        helper.make_node("Cast", ["x"], ["y"], to=5), [Value(np.array([np.inf, 1e9], np.float32))]
    )
    assert result.array.tolist() == [0, -13824]


def test_divisors_that_may_be_zero() -> None:
    """A quotient is compared unless its divisor is within its bound of 0: a sum whose terms cancel is
    0 where they are added exactly."""
    divisor = Value(np.array([1.0, 1e-3, 1e-3], np.float32), np.array([1e-3, 1e-3, 1e-6]))
    for op, operands in (
        ("Div", [Value(np.zeros(3, np.float32)), divisor]),
        ("Reciprocal", [divisor]),
    ):
        node = helper.make_node(op, ["x", "y"][: len(operands)], ["z"])
        (result,) = run_node(node, operands)
        assert result.bound is not None
        assert np.isinf(result.bound).tolist() == [False, True, False]


def test_products_in_the_middle_of_two_integers() -> None:
    """Either integer is right where the exact quotient is within some roundings to f32 of the
    middle, and only there: nearly 119.5, as found by fuzzing; 2**-20 beside it; the middle
    itself."""
    node = helper.make_node("QLinearMatMul", [f"x{at}" for at in range(8)], ["y"])
    for scale, is_near in ((0.5, True), (0.5 + 2.0**-24, True), (0.5 + 2.0**-20, False)):
        numbers = (239, scale, 0, 1, 1.0, 0, 1.0, 0)
        types = (np.uint8, np.float32, np.uint8, np.int8, np.float32, np.int8, np.float32, np.uint8)
        arrays = [np.array(n, t) for n, t in zip(numbers, types, strict=True)]
        arrays[0], arrays[3] = arrays[0].reshape(1, 1), arrays[3].reshape(1, 1)
        (result,) = run_node(node, [Value(array) for array in arrays])
        assert (result.bound is not None) == is_near
        assert result.array[0, 0] == 120


def test_sums_of_infinities() -> None:
    """Rule 11: what the reference gives for infinities alone is NaN, and the logarithm of their sum of
    exponentials is expected; NaN and finite numbers are as they were."""
    inf, nan = np.inf, np.nan
    rows = [[inf, inf], [-inf, -inf], [inf, -inf], [nan, inf], [1, inf], [1, -inf]]
    node = helper.make_node("ReduceLogSumExp", ["x", "axes"], ["y"], keepdims=0)
    for dtype in (np.float16, np.float32, np.float64):
        (found,) = run_node(node, [Value(np.array(rows, dtype)), Value(np.array([1]))])
        np.testing.assert_array_equal(found.array, np.array([inf, -inf, inf, nan, inf, 1], dtype))


def test_means_of_what_is_not_a_number() -> None:
    """Rule 14: NaN where a window has one, which the reference leaves out as if it were padding; the
    others are as they were."""
    x = np.array([[[np.nan, 1, 2, 3, 4]]], np.float32)
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3], pads=[1, 1])
    (found,) = run_node(node, [Value(x)])
    np.testing.assert_array_equal(found.array, [[[np.nan, np.nan, 2, 3, 3.5]]])


def test_products_whose_order_decides() -> None:
    """Rule 4: a product is compared unless its factors overflow or vanish in some order; an infinity
    or NaN among them is one in each order. A difference in a single number is told."""
    large, small = 1e30, 1e-30
    rows = [[large, large, 0], [small, small, large], [large, small, 1], [2, 3, 0], [1, np.inf, 0]]
    node = helper.make_node("ReduceProd", ["x", "axes"], ["y"], keepdims=0)
    (found,) = run_node(node, [Value(np.array(rows, np.float32)), Value(np.array([1]))])
    assert found.bound is not None
    assert np.isinf(found.bound).tolist() == [True, True, False, False, False]
    assert "at [] " in difference(np.array(1, np.float32), Value(np.array(2, np.float32)))


def test_the_logarithm_of_a_number_near_one() -> None:
    """Rule 1: a sum of 1 and little is rounded, whatever the operand's size: the true value is right
    beside that of the reference, and 40 times that rounding is not. Found by fuzzing."""
    x = np.array([0, -11.01853], np.float32)
    (found,) = run_node(helper.make_node("LogSoftmax", ["x"], ["y"]), [Value(x)])
    true = (x - np.log(np.exp(x.astype(np.float64)).sum())).astype(np.float32)
    assert not difference(true, found)
    assert found.bound is not None
    assert found.array[0] != true[0]
    assert difference(true + np.float32(32 * 5 * 2.0**-24), found)


def test_dead_parts_are_left_out() -> None:
    """What no output needs is not in a model."""
    program = Program(
        inputs={"a": np.zeros(1, np.float32), "b": np.zeros(1, np.float32)}, shapes={"a": (1,), "b": (1,)},
        nodes=[helper.make_node("Neg", ["a"], ["c"]), helper.make_node("Neg", ["b"], ["d"])],
        outputs={"c": np.dtype(np.float32)},
    ).without_dead_parts()  # fmt: skip
    assert (list(program.inputs), len(program.nodes)) == (["a"], 1)


def test_split_checks_sizes_at_run_time() -> None:
    """Parts that do not add up to a symbolic size are refused when it is known: found by fuzzing,
    read beyond the input."""
    program = Program(
        inputs={"x": np.zeros((7, 5), np.float32)}, shapes={"x": (7, "n")}, constants={"sizes": np.array([0, 5])},
        nodes=[helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=1)], outputs={"b": np.dtype(np.float32)},
    )  # fmt: skip
    session = ingot_runtime.load(ingot.compile(to_model([program])).to_bytes())
    assert session.run({"x": np.ones((7, 5), np.float32)})["b"].shape == (7, 5)
    with pytest.raises(ingot_runtime.BundleError):
        session.run({"x": np.ones((7, 2), np.float32)})


def test_scatter_checks_updates_at_run_time() -> None:
    """Updates too small for a symbolic size are refused when it is known: found by fuzzing, read
    beyond the updates."""
    program = Program(
        inputs={"x": np.zeros((4, 3), np.float32)}, shapes={"x": (4, "n")},
        constants={"i": np.array([[0], [1]]), "u": np.ones((2, 3), np.float32)},
        nodes=[helper.make_node("ScatterND", ["x", "i", "u"], ["y"])], outputs={"y": np.dtype(np.float32)},
    )  # fmt: skip
    session = ingot_runtime.load(ingot.compile(to_model([program])).to_bytes())
    assert session.run({"x": np.zeros((4, 3), np.float32)})["y"].sum() == 6
    with pytest.raises(ingot_runtime.BundleError):
        session.run({"x": np.zeros((4, 30), np.float32)})


def test_attention_of_doubles_is_not_computed_in_singles() -> None:
    """Decomposed attention of f64 keeps its precision: found by fuzzing, the fused kernel gave 7
    digits."""
    random = np.random.default_rng(0)
    shapes = {"q": (2, 1, 6, 4), "k": (2, 1, 4, 5), "v": (2, 1, 5, 3)}
    inputs = {name: random.standard_normal(shape) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"]), helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]  # fmt: skip
    program = Program(
        inputs=inputs, shapes=dict(shapes), nodes=nodes, outputs={"y": np.dtype(np.float64)}
    )
    outputs = ingot_runtime.load(ingot.compile(to_model([program])).to_bytes()).run(inputs)
    powers = np.exp(inputs["q"] @ inputs["k"])
    np.testing.assert_allclose(
        outputs["y"], powers / powers.sum(-1, keepdims=True) @ inputs["v"], rtol=1e-13, atol=1e-14
    )
