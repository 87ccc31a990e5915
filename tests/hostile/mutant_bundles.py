"""The bundles that are mutated: small, of sizes and control flow that inputs decide, with an LSTM,
with states, with several variants, with 200 MB of weights.

In: a folder. Out: bundles in it. Not done here: mutants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper
from tests.harness.decoder_harness import decoder
from tests.hostile.model_builder import INT64, model, value
from tests.hostile.tiny import tiny_contents, tree_entry

import ingot
from ingot_artifacts.bundle.write import write_bundle


def small(path: Path) -> None:
    """One kernel, launched twice, by hand."""
    write_bundle(tiny_contents(), path, tree_entry)


def two_variants(path: Path) -> None:
    """The same with an open dimension, for two levels, one of which has a variant for some
    processors too."""
    contents = tiny_contents("batch", targets=("x86-64-v2", "x86-64-v3", "x86-64-v3:haswell"))
    *others, last = contents.variants
    models = ("GenuineIntel 6 3c", "GenuineIntel 6 4", "GenuineIntel 6 c")
    variants = (*others, replace(last, processors=models))
    write_bundle(replace(contents, variants=variants), path, tree_entry)


def dynamic(path: Path) -> None:
    """A loop as often as an input says, a branch on another, positions whose count the data
    decide."""
    ingot.compile(_dynamic(), targets=["x86-64-v3"]).save(path)


def _dynamic() -> ModelProto:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Add", ["state", "w"], ["next"], "/loop/add"),
        ],
        "body",
        [value("i", [], INT64), value("go", [], TensorProto.BOOL), value("state", ["n", 4])],
        [value("on", [], TensorProto.BOOL), value("next", ["n", 4])],
    )
    then, otherwise = (
        helper.make_graph(
            [helper.make_node(op, ["looped"], [name], f"/{name}")],
            name,
            [],
            [value(name, ["n", 4])],
        )
        for name, op in (("then", "Relu"), ("else", "Neg"))
    )
    nodes = [
        helper.make_node("Loop", ["count", "", "x"], ["looped"], "/loop", body=body),
        helper.make_node("If", ["which"], ["y"], "/if", then_branch=then, else_branch=otherwise),
        helper.make_node("NonZero", ["x"], ["places"], "/places"),
    ]
    inputs = [value("x", ["n", 4]), value("count", [], INT64), value("which", [], TensorProto.BOOL)]
    outputs = [value("y", ["n", 4]), value("places", [2, None], INT64)]
    return model(nodes, inputs, outputs, {"w": np.arange(4, dtype=np.float32)})


def lstm(path: Path) -> None:
    """A recurrent layer over an open sequence."""
    rng = np.random.default_rng(0)
    weights = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in (("W", (1, 32, 6)), ("R", (1, 32, 8)), ("B", (1, 64)))
    }
    node = helper.make_node("LSTM", ["x", "W", "R", "B"], ["y", "h", "c"], "/lstm", hidden_size=8)
    outputs = [value("y", ["time", 1, 2, 8]), value("h", [1, 2, 8]), value("c", [1, 2, 8])]
    made = model([node], [value("x", ["time", 2, 6])], outputs, weights)
    ingot.compile(made, targets=["x86-64-v3"]).save(path)


def states(path: Path) -> None:
    """A decoder of one layer, whose caches are states."""
    ingot.compile(decoder(), targets=["x86-64-v3"]).save(path)


def large(path: Path) -> None:
    """A product with 200 MB of weights."""
    weights = np.random.default_rng(0).standard_normal((7168, 7168), np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "/product")
    made = model([node], [value("x", [1, 7168])], [value("y", [1, 7168])], {"w": weights})
    ingot.compile(made, targets=["x86-64-v3"]).save(path)


BUNDLES: dict[str, Callable[[Path], None]] = {
    "small": small, "two_variants": two_variants, "dynamic": dynamic, "lstm": lstm, "states": states,
    "large": large,
}  # fmt: skip
