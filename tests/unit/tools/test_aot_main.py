"""What ``main`` of a small model does, call by call: which kernels run on which buffers, what shares memory,
what is written straight to an output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, helper
from tests.hostile.model_builder import model, value

import ingot
from ingot_artifacts.inspect.describe import opened, variant_program
from ingot_build_rules.tools.view.evaluate_call import EvaluatedCall, LaunchStep, evaluate_call
from ingot_runtime.format.source import read_plan

SIDE = 32
BYTES = 4 * SIDE * SIDE


def products(*texts: str) -> list[NodeProto]:
    """Matrix products ``y = a b``, which never fuse with each other."""
    nodes: list[NodeProto] = []
    for text in texts:
        result, first, second = text.replace("=", " ").split()
        nodes.append(helper.make_node("MatMul", [first, second], [result], f"/{result}"))
    return nodes


def call_of(nodes: list[NodeProto], inputs: str, outputs: str, folder: Path) -> EvaluatedCall:
    """One call of a model whose tensors are square; ``w`` and ``v`` are constants."""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((SIDE, SIDE), np.float32) for name in ("w", "v")}
    used = {name for node in nodes for name in node.input}
    made = model(
        nodes,
        [value(name, [SIDE, SIDE]) for name in inputs.split()],
        [value(name, [SIDE, SIDE]) for name in outputs.split()],
        {name: array for name, array in weights.items() if name in used},
    )
    path = folder / "m.ingot"
    ingot.compile(made, targets=["x86-64-v3"]).save(path)
    with opened(path) as source:
        plan = read_plan(source)
        shapes = [tensor.dims for tensor in plan.inputs]
        return evaluate_call(variant_program(source, plan, 0), shapes, 1)


def text_of(call: EvaluatedCall) -> list[str]:
    """Of each launch its buffers: tensors by number, the workspace by offset in tensors."""
    lines: list[str] = []
    for step in call.steps:
        assert isinstance(step, LaunchStep), "one host has nothing to copy"
        names: list[str] = []
        for span in step.buffers:
            number = span.offset // BYTES if span.origin == "workspace" else span.offset
            names.append(span.origin if span.origin == "weights" else f"{span.origin}{number}")
        lines.append(" ".join(sorted(names)))
    return lines


# Model, inputs, outputs -> what each launch names; how many tensors the workspace holds.
CASES: dict[str, tuple[list[NodeProto], str, str, list[str], int]] = {
    "one call": (products("y=a a"), "a", "y", ["input0 output0"], 0),
    "constant": (products("y=a w"), "a", "y", ["input0 output0 weights"], 0),
    "two inputs": (products("y=a b"), "a b", "y", ["input0 input1 output0"], 0),
    "two calls": (
        products("h=a w", "y=h v"),
        "a",
        "y",
        ["input0 weights workspace0", "output0 weights workspace0"],
        1,
    ),
    "two outputs": (
        products("y=a w", "z=a v"),
        "a",
        "y z",
        ["input0 output0 weights", "input0 output1 weights"],
        0,
    ),
    "two values": (
        products("g=a w", "h=a v", "y=g h"),
        "a",
        "y",
        ["input0 weights workspace0", "input0 weights workspace1", "output0 workspace0 workspace1"],
        2,
    ),
    "an output that is read": (
        products("y=a w", "z=y v"),
        "a",
        "y z",
        ["input0 output0 weights", "output0 output1 weights"],
        0,
    ),
    "a chain shares": (
        products("g=a w", "h=g v", "i=h w", "y=i v"),
        "a",
        "y",
        [
            "input0 weights workspace0", "weights workspace0 workspace1",
            "weights workspace0 workspace1", "output0 weights workspace0",
        ],
        2,
    ),
    "an input that is returned": (
        [helper.make_node("Identity", ["a"], ["y"], "/y")],
        "a",
        "y",
        ["input0 output0"],
        0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_shape_of_main(case: str, tmp_path: Path) -> None:
    """Launches in order, with the buffers that they name; no memory that no launch needs."""
    nodes, inputs, outputs, launches, count = CASES[case]
    call = call_of(nodes, inputs, outputs, tmp_path)
    found = text_of(call)
    if count == 2:  # which of two places a value has is the planner's choice
        swapped = [
            line.replace("workspace0", "-").replace("workspace1", "workspace0") for line in found
        ]
        other = [" ".join(sorted(line.replace("-", "workspace1").split())) for line in swapped]
        assert launches in (found, other)
    else:
        assert found == launches
    assert call.workspace_bytes == (count * BYTES,)
