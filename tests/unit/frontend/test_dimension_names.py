"""Names of dimensions are data: any text is one, and no name is taken for a computed size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime
from ingot_build_rules.making.values.interface import make_interface
from ingot_compiler.ir.dims import dim_add, format_dim_in_names, symbol
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.types import TensorType


def decoder(past: str, sequence: str, total: str) -> ModelProto:
    """One layer of a decoder as optimum exports it: a mask of both lengths, the cache as input and
    output."""
    nodes = [
        node("MatMul", "x w", "k"), node("Concat", "past k", "present", axis=1),
        node("Transpose", "present", "columns", perm=[0, 2, 1]), node("MatMul", "x columns", "s"),
        node("Unsqueeze", "mask one", "rows"), node("Add", "s rows", "masked"),
        node("Softmax", "masked", "p", axis=-1), node("MatMul", "p present", "y"),
    ]  # fmt: skip
    inputs = [
        tensor("x", ["batch", sequence, 4]), tensor("mask", ["batch", total]),
        tensor("past", ["batch", past, 4]),
    ]  # fmt: skip
    outputs = [tensor("y", ["batch", sequence, 4]), tensor("present", ["batch", total, 4])]
    weights = np.arange(16, dtype=np.float32).reshape(4, 4) / 16
    return make_model(nodes, inputs, outputs, {"w": weights, "one": np.array([1])})


@pytest.mark.sweep(60)
@pytest.mark.parametrize("named", [
    ("past_sequence_length", "sequence_length", "past_sequence_length + sequence_length"),
    ("p", "s", "s + p"), ("a*b", "2", "'2' + 'a*b'"), ("max(a, b)", "\u00e9 \u4e2d", "s0"),
    ("line\nbreak", "\x1b[0m", "n" * 5000), ("", "?", "x.1"),
])  # fmt: skip
def test_a_decoder_with_a_cache(tmp_path: Path, named: tuple[str, str, str]) -> None:
    """It compiles, loads and is right, whatever its dimensions are called."""
    model = decoder(*named)
    ingot.compile(model, targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    random = np.random.default_rng(1)
    shapes = {"x": (2, 3, 4), "mask": (2, 8), "past": (2, 5, 4)}
    feed = {name: random.random(shape, np.float32) for name, shape in shapes.items()}
    expected: Any = ReferenceEvaluator(model).run(None, dict(feed))  # pyright: ignore[reportUnknownMemberType]
    for got, wanted in zip(session.run(feed).values(), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    shown = [size for spec in (*session.inputs, *session.outputs) for size in spec.shape]
    assert (
        len({size for size in shown if isinstance(size, str)}) == 5
    )  # batch, past, x.1, both, sum


def test_a_name_that_is_spelled_like_a_sum_keeps_its_spelling() -> None:
    """The computed size is the one that is written in another way."""
    kinds = [TensorType("f32", (symbol(name),)) for name in ("s0", "s1", "s2")]
    total = TensorType("f32", (dim_add(symbol("s0"), symbol("s1")),))
    called = (("s0", "a"), ("s1", "b"), ("s2", "a + b"))
    interface = make_interface(
        tuple(kinds), (total,), Names("g", ("x", "y", "z"), ("o",), (), called)
    )
    assert [tensor.shape for tensor in interface.inputs] == [("a",), ("b",), ("a + b",)]
    assert interface.outputs[0].shape == ("(a + b)",)
    assert interface.signatures()[1] == ((interface.signatures()[0][0][0], (-4,)),)


def test_a_name_in_an_expression_is_one_word() -> None:
    """A name that looks like a number or an expression is quoted inside a larger one."""
    total = dim_add(symbol("s0"), symbol("s1"))
    assert format_dim_in_names(total, {"s0": "2", "s1": "p - q"}) == "'2' + 'p - q'"
    assert format_dim_in_names(total, {"s0": "n.0", "s1": "l\u00e4nge"}) == "n.0 + l\u00e4nge"
    assert format_dim_in_names(symbol("s1"), {"s1": "p - q"}) == "p - q"


def test_a_name_and_a_place_are_two_dimensions(tmp_path: Path) -> None:
    """A dimension without a name is called by its place, and is no other one that has this name."""
    inputs = [tensor("x", ["", "x.0"]), tensor("y", ["x.0"])]
    model = make_model([node("Relu", "x", "a"), node("Relu", "y", "b")], inputs, [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "ab"
    ])  # fmt: skip
    ingot.compile(model, targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    feed = {"x": np.ones((2, 3), np.float32), "y": np.ones(3, np.float32)}
    assert [array.shape for array in session.run(feed).values()] == [(2, 3), (3,)]
