"""Random ops: the generator, the documented stream, seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import NodeProto, TensorProto
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.harness.frontend_harness import run_model
from tests.harness.lowering_harness import Builder, check_graph

import ingot
import ingot_runtime
from ingot_compiler.ir.philox import philox
from ingot_compiler.ir.types import TensorType

U64 = npt.NDArray[np.uint64]


def bits_of(count: int, seed: int, stream: int = 0) -> U64:
    """The documented stream."""
    counter = np.arange(count, dtype=np.uint64) + np.uint64(stream << 40)
    return np.asarray(philox(counter, np.uint64(seed), lambda x, n: x >> np.uint64(n)))


def uniform_of(bits: U64) -> Array:
    """24 bits of each number."""
    return ((bits & np.uint64(0xFFFFFFFF)) >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)


def test_known_answers() -> None:
    """The vectors that the authors of Philox publish, and numpy's own generator."""
    full = (1 << 64) - 1
    zero = philox(0, 0, lambda x, n: x >> n)
    assert zero == 0x6627E8D5 | 0xE169C58D << 32
    # Their third and second words are all ones, too, in the other vector: another counter here.
    assert philox(full, full, lambda x, n: x >> n) != zero


def test_compiled_generator() -> None:
    """Every level of this machine gives the bits of the interpreter."""
    rng = np.random.default_rng(0)
    counters, keys = (rng.integers(0, 1 << 64, 77, np.uint64, endpoint=False) for _ in range(2))
    builder = Builder([TensorType("u64", (77,))] * 2)
    check_graph(builder, [builder.op("philox", 0, 1)], [counters, keys], 0, RUNNABLE)


def compiled(nodes: list[NodeProto], folder: Path, **inputs: Any) -> ingot_runtime.Session:
    """A session over all ways."""
    outputs = [tensor("y", None)]
    model = make_model(nodes, [tensor(name, shape) for name, shape in inputs.items()], outputs)
    model.graph.output[0].type.ClearField("tensor_type")
    ingot.compile(model).save(folder / "m.ingot")
    return ingot_runtime.load(folder / "m.ingot")


def test_seed_of_a_node(tmp_path: Path) -> None:
    """An attribute ``seed`` fixes the numbers; threads and the way of running do not matter."""
    made = [node("RandomUniform", "", "y", shape=[300, 7], seed=3.0, low=-1.0, high=3.0)]
    session = compiled(made, tmp_path)
    assert [given.name for given in session.inputs] == []
    (result,) = run_all_ways(tmp_path / "m.ingot", [{}])
    seed = int(np.float32(3.0).view(np.uint32))
    wanted = uniform_of(bits_of(2100, seed)) * np.float32(4) - np.float32(1)
    np.testing.assert_array_equal(result["y"].ravel(), wanted)


def test_seed_of_a_call(tmp_path: Path) -> None:
    """Nodes without a seed take it from an input that a call may leave out; two of them differ."""
    made = [
        node("RandomNormalLike", "x", "a"), node("RandomNormalLike", "x", "b", mean=10.0),
        node("Concat", "a b", "y", axis=0),
    ]  # fmt: skip
    session = compiled(made, tmp_path, x=["n", 5])
    assert [given.name for given in session.inputs] == ["x", "random_seed"]
    x = np.zeros((2000, 5), np.float32)
    first = session.run({"x": x})["y"].copy()
    again = session.run({"x": x, "random_seed": np.array(0)})["y"].copy()
    other = session.run({"x": x, "random_seed": np.array(-5)})["y"].copy()
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first.ravel(), other.ravel()).all()
    halves = first[:2000], first[2000:]
    for half, mean in zip(halves, (0, 10), strict=True):
        assert abs(float(half.mean()) - mean) < 0.05
        assert abs(float(half.std()) - 1) < 0.05
    assert abs(float(np.corrcoef(halves[0].ravel(), halves[1].ravel())[0, 1])) < 0.05


@pytest.mark.parametrize("number", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE])
def test_element_types(number: int) -> None:
    """Numbers of every float type."""
    made = node("RandomUniformLike", "x", "y", dtype=number, seed=1.0)
    model = make_model([made], [tensor("x", [40])], [tensor("y", None, number)])
    bits = bits_of(40, int(np.float32(1.0).view(np.uint32)))
    x = uniform_of(bits)
    if number == TensorProto.DOUBLE:
        expected: Any = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    else:
        from onnx.helper import tensor_dtype_to_np_dtype

        expected = x.astype(tensor_dtype_to_np_dtype(number))
    assert run_model(model, [x], [expected], 0, 0).kind == "agrees"


def test_an_element_type_without_random_numbers() -> None:
    """It is refused by name."""
    made = node("RandomUniform", "", "y", shape=[3], dtype=TensorProto.COMPLEX64)
    found = run_model(make_model([made], [], [tensor("y", None)]), [], [])
    assert found.kind == "unsupported"
    assert "random numbers of complex64" in found.detail


def test_bernoulli(tmp_path: Path) -> None:
    """One where the stream is below the probability."""
    p = np.random.default_rng(0).random((500, 3)).astype(np.float32)
    session = compiled([node("Bernoulli", "p", "y", seed=2.0)], tmp_path, p=["n", 3])
    drawn = uniform_of(bits_of(1500, int(np.float32(2.0).view(np.uint32)))).reshape(500, 3)
    np.testing.assert_array_equal(session.run({"p": p})["y"], (drawn < p).astype(np.float32))


def test_multinomial(tmp_path: Path) -> None:
    """Classes come as often as their probabilities say, and none beyond the last."""
    p = np.array([[0.1, 0.6, 0.3], [0.0, 0.5, 0.5]])
    logits = np.log(p + 1e-30).astype(np.float32)
    made = [node("Multinomial", "p", "y", sample_size=20000, seed=1.0, dtype=TensorProto.INT64)]
    y = compiled(made, tmp_path, p=["n", 3]).run({"p": logits})["y"]
    assert (y.shape, y.dtype) == ((2, 20000), np.dtype(np.int64))
    for row, wanted in zip(y, p, strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 20000, wanted, atol=0.02)


def test_dropout_that_trains(tmp_path: Path) -> None:
    """Elements are 0 or larger by 1 / (1 - ratio); a mode known at run time only decides there."""
    made = node("Dropout", "x r t", "y m", seed=7)
    inputs = [tensor("x", ["n"]), tensor("r", []), tensor("t", [], TensorProto.BOOL)]
    model = make_model([made], inputs, [tensor("y", None), tensor("m", None, TensorProto.BOOL)])
    ingot.compile(model).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    x = np.arange(1, 4001, dtype=np.float32)
    for train in (True, False):
        feed = {"x": x, "r": np.array(0.25, np.float32), "t": np.array(train)}
        result = session.run(feed)
        kept = result["m"]
        assert abs(float(kept.mean()) - (0.75 if train else 1)) < 0.03
        np.testing.assert_allclose(result["y"], np.where(kept, x / (0.75 if train else 1), 0), 1e-6)
