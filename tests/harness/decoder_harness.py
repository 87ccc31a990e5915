"""A decoder of one layer with caches, as exporters write it: small enough to be compiled in a test.

In: the number of query heads. Out: an ONNX model, arrays. Not done here: exports of whole networks
(``models``).
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor

WIDTH, DEPTH, KEY_HEADS = 8, 16, 2


def decoder(heads: int = 4) -> ModelProto:
    """``y = attention(q, past.key + k, past.value + v)`` over x[batch, length, 8]; the caches are
    inputs and outputs."""
    nodes: list[NodeProto] = []
    for name, count in (("q", heads), ("k", KEY_HEADS), ("v", KEY_HEADS)):
        nodes += [
            node("MatMul", f"x w{name}", f"{name}0"),
            node("Reshape", f"{name}0 split{count}", f"{name}1"),
            node("Transpose", f"{name}1", name, perm=[0, 2, 1, 3]),
        ]
    for name in ("key", "value"):
        nodes += [
            node("Concat", f"past.{name} {name[0]}", f"present.{name}", axis=2),
            node("Unsqueeze", f"present.{name} two", f"{name}5"),
            node("Expand", f"{name}5 repeats", f"{name}r"),
            node("Reshape", f"{name}r joined", f"{name}j"),
        ]
    nodes += [
        node("Transpose", "keyj", "keyt", perm=[0, 1, 3, 2]),
        node("MatMul", "q keyt", "raw"),
        node("Mul", "raw scale", "scores"),
        node("Softmax", "scores", "weights", axis=-1),
        node("MatMul", "weights valuej", "attended"),
        node("Transpose", "attended", "swapped", perm=[0, 2, 1, 3]),
        node("Reshape", "swapped flat", "y"),
    ]
    cache: list[int | str] = ["batch", KEY_HEADS, "past", DEPTH]
    whole: list[int | str] = ["batch", KEY_HEADS, "past + length", DEPTH]
    rng = np.random.default_rng(0)
    constants = {
        "two": np.array([2]),
        "repeats": np.array([1, 1, heads // KEY_HEADS, 1, 1]),
        "joined": np.array([0, heads, -1, DEPTH]),
        "flat": np.array([0, 0, heads * DEPTH]),
        "scale": np.array(0.25, np.float32),
        f"split{heads}": np.array([0, 0, heads, DEPTH]),
        f"split{KEY_HEADS}": np.array([0, 0, KEY_HEADS, DEPTH]),
        **{
            f"w{name}": rng.standard_normal((WIDTH, count * DEPTH)).astype(np.float32)
            for name, count in (("q", heads), ("k", KEY_HEADS), ("v", KEY_HEADS))
        },
    }
    return make_model(
        nodes,
        [
            tensor("x", ["batch", "length", WIDTH]),
            tensor("past.key", cache),
            tensor("past.value", cache),
        ],
        [
            tensor("y", ["batch", "length", heads * DEPTH]),
            tensor("present.key", whole),
            tensor("present.value", whole),
        ],
        constants,
    )


def step(length: int, batch: int = 2, seed: int = 0) -> dict[str, Array]:
    """The input of one call."""
    rng = np.random.default_rng([seed, length, batch])
    return {"x": rng.standard_normal((batch, length, WIDTH)).astype(np.float32)}


def empty_caches(batch: int = 2) -> dict[str, Array]:
    """Caches without rows, for calls that hold none."""
    return {
        f"past.{name}": np.zeros((batch, KEY_HEADS, 0, DEPTH), np.float32)
        for name in ("key", "value")
    }
