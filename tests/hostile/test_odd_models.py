"""Models that no exporter writes and a fuzzer does: compiled, or refused by name; none is a bug in
Ingot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.harness.build_harness import TARGET

import ingot
from ingot_runtime import load
from ingot_runtime.ingot_error import IngotError

Sizes = Sequence[int | str]
TAPS: list[Sizes] = [["k", "l"], [3, "l"], ["k", 3], ["k", "k"], [3, 3]]
SCALES = [np.inf, -np.inf, np.nan, 0.0, -0.0, -2.0, 1e-45, 1e-30, 1e-6, 1e6, 1e30, 3e38]


def model(
    node: onnx.NodeProto, opset: int = 20, scale: float | None = None, **inputs: Sizes
) -> onnx.ModelProto:
    """Return a model of one node; ``scale``: that of the first of two last axes, as constant s."""
    given = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)
        for name, sizes in inputs.items()
    ]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    constants = (
        []
        if scale is None
        else [numpy_helper.from_array(np.array([1, 1, scale, 2], np.float32), "s")]
    )
    graph = helper.make_graph([node], "odd", given, result, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def assert_told(made: onnx.ModelProto) -> str:
    """Compile; return what is refused, empty for nothing. A refusal has four parts and is no bug."""
    try:
        ingot.compile(made, targets=TARGET)
    except IngotError as error:
        refused = error
    else:
        return ""
    assert "a bug in Ingot" not in refused.what, refused
    assert refused.exit_code in (1, 3), refused
    assert all((refused.what, refused.where, refused.why, refused.do)), refused
    return refused.what


@pytest.mark.sweep(60)
@pytest.mark.parametrize("taps", TAPS)
@pytest.mark.parametrize("channels", [[6, 4], ["o", 4], ["o", "i"]])
@pytest.mark.parametrize(("op", "options"), [
    ("Conv", {}), ("Conv", {"group": 2}), ("Conv", {"auto_pad": "SAME_UPPER"}), ("Conv", {"kernel_shape": [3, 3]}),
    ("ConvTranspose", {}), ("ConvTranspose", {"kernel_shape": [3, 3]}),
])  # fmt: skip
def test_open_weights(op: str, options: dict[str, Any], channels: Sizes, taps: Sizes) -> None:
    """Weights of a call in any size: where a kernel cannot be laid out, the node is named, with what
    would fix its taps."""
    node = helper.make_node(op, ["x", "w"], ["y"], name="odd", **options)
    made = model(node, x=[1, 4 * options.get("group", 1), 8, 8], w=[*channels, *taps])
    told = assert_told(made)
    is_open = any(isinstance(size, str) for size in taps) and "kernel_shape" not in options
    if op == "Conv" and is_open:
        assert told == "a convolution whose kernel has any size is not compiled"
    if op == "Conv" and not is_open and channels[1] == 4:
        assert told == ""


def test_taps_that_the_node_fixes() -> None:
    """What the refusal of open taps tells to do works."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3])
    bundle = ingot.compile(model(node, x=[1, 4, 8, 8], w=[6, 4, "k", "l"]), targets=TARGET)
    x, w = np.ones((1, 4, 8, 8), np.float32), np.ones((6, 4, 3, 3), np.float32)
    (y,) = load(bundle.to_bytes()).run({"x": x, "w": w}).values()
    np.testing.assert_array_equal(y, np.full((1, 6, 6, 6), 36, np.float32))


@pytest.mark.sweep(24)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sizes", [[1, 1, 4, 4], [1, 1, "h", "w"]])
@pytest.mark.parametrize(("op", "mode"), [
    ("Resize", "nearest"), ("Resize", "linear"), ("Resize", "cubic"), ("Upsample", "nearest"), ("Upsample", "linear"),
])  # fmt: skip
def test_odd_scales(op: str, mode: str, sizes: Sizes, scale: float) -> None:
    """A scale that is not finite and above 0 is refused as such; one that is tiny or huge gives what
    it gives, or is too large."""
    words = ["x", "", "s"] if op == "Resize" else ["x", "s"]
    node = helper.make_node(op, words, ["y"], name="odd", mode=mode)
    told = assert_told(model(node, 20 if op == "Resize" else 9, scale, x=sizes))
    if not 0 < scale < np.inf:
        assert told == "a node's operands or attributes contradict its op"
