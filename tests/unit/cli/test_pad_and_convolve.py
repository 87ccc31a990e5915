"""A convolution behind a pad, as TensorFlow's exporters write it, pads its operand itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor

from ingot_build_rules.tools.cli.main import main

_RANDOM = np.random.default_rng(0)
_PADS = [0, 0, 0, 1, 0, 0, 2, 1]


def _model(
    pads: Sequence[int], value: float = 0.0, mode: str = "constant", twice: bool = False
) -> ModelProto:
    """Pad, then a convolution that pads too; ``twice``: the padded image is a result as well."""
    constants: dict[str, Array] = {
        "p": np.array(pads, np.int64),
        "v": np.array(value, np.float32),
        "w": _RANDOM.standard_normal((4, 3, 3, 3)).astype(np.float32),
    }
    nodes = [
        node("Pad", "x p v", "padded", mode=mode),
        node("Conv", "padded w", "y", pads=[1, 0, 0, 1], strides=[2, 1]),
    ]
    results = [tensor(name, None) for name in ("y", "padded")[: 2 if twice else 1]]
    return make_model(nodes, [tensor("x", ["b", 3, "h", "w"])], results, constants)


def _feed() -> dict[str, Array]:
    return {"x": _RANDOM.standard_normal((2, 3, 9, 8)).astype(np.float32)}


def _pads_left(model: ModelProto, folder: Path) -> bool:
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    text = folder / "optimized"
    assert (
        main(["compile", str(folder / "m.onnx"), "-q", "--to", "optimized", "-o", str(text)]) == 0
    )
    return "= pad(" in text.read_text()


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("pads", "value", "mode", "stays"),
    [
        (_PADS, 0.0, "constant", False),
        (_PADS, -0.0, "constant", False),
        (_PADS, 1.0, "constant", True),
        (_PADS, 0.0, "reflect", True),
        ([0, 0, 1, 0, 1, 0, 0, 0], 0.0, "constant", True),  # of the batch
    ],
)
def test_a_pad_of_zeros_is_the_convolutions(
    tmp_path: Path, pads: Sequence[int], value: float, mode: str, stays: bool
) -> None:
    """Others stay; all are right."""
    model = _model(pads, value, mode)
    check_model(model, [_feed()], tmp_path)
    assert _pads_left(model, tmp_path) == stays


def test_what_others_read_stays(tmp_path: Path) -> None:
    """The padded image is a result, and the convolution is right."""
    check_model(_model(_PADS, twice=True), [_feed()], tmp_path)


@pytest.mark.parametrize("zero", [0, 7])
def test_of_bytes(tmp_path: Path, zero: int) -> None:
    """Zeros around bytes whose zero point is another number stay what they are."""
    constants: dict[str, Array] = {
        "p": np.array(_PADS, np.int64),
        "v": np.array(0, np.uint8),
        "w": _RANDOM.integers(-9, 9, (4, 3, 3, 3)).astype(np.int8),
        "z": np.array(zero, np.uint8),
    }
    nodes = [
        node("Pad", "x p v", "padded"),
        node("ConvInteger", "padded w z", "y", pads=[1, 1, 1, 1]),
    ]
    x = tensor("x", [1, 3, 6, 6], TensorProto.UINT8)
    model = make_model(nodes, [x], [tensor("y", None, TensorProto.INT32)], constants)
    check_model(model, [{"x": _RANDOM.integers(0, 255, (1, 3, 6, 6)).astype(np.uint8)}], tmp_path)
