"""Pixels of many channels that are picked from an image: its channels are laid beside each other.

In: images of few and many channels. Out: pass or fail; the oracle is ONNX's reference. Not done
here: what the ops mean (the conformance cases).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor

import ingot

_SIZE, _POINTS = (9, 7), (6, 8)


@pytest.mark.sweep(60)
@pytest.mark.parametrize(
    ("channels", "mode", "padding"),
    [
        (3, "linear", "zeros"),
        (8, "linear", "border"),
        (19, "nearest", "zeros"),
        (8, "cubic", "reflection"),
    ],
)
def test_points_of_an_image(tmp_path: Path, channels: int, mode: str, padding: str) -> None:
    """Inside, outside, between; two images; sizes that only a call knows, for 19 channels their
    number too."""
    attributes: dict[str, Any] = {"mode": mode, "padding_mode": padding}
    model = make_model(
        [node("GridSample", "x g", "y", **attributes)],
        [
            tensor("x", [2, "c" if channels == 19 else channels, "h", _SIZE[1]]),
            tensor("g", [2, *_POINTS, 2]),
        ],
        [tensor("y", None)],
    )
    random = np.random.default_rng(channels)
    x = random.standard_normal((2, channels, *_SIZE)).astype(np.float32)
    grid = random.uniform(-1.3, 1.3, (2, *_POINTS, 2)).astype(np.float32)
    check_model(model, [{"x": x, "g": grid}], tmp_path, relative=1e-4, floor=1e-5)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("shape", "points", "copies"),
    [
        ([1, 16, 20, 20], 60, 1),
        ([1, 16, 20, 20], 2, 0),
        ([1, 4, 20, 20], 60, 0),
        ([1, "c", 20, 20], 60, 1),
    ],
)
def test_when_an_image_is_copied(shape: list[Any], points: int, copies: int) -> None:
    """Once for all neighbours; not for few points, nor for few channels."""
    model = make_model(
        [node("GridSample", "x g", "y")],
        [tensor("x", shape), tensor("g", [1, points, points, 2])],
        [tensor("y", None)],
    )
    text = ingot.compile(model).text("fused")
    size = "400*s0" if shape[1] == "c" else str(400 * shape[1])
    assert text.count(f"f32 x {size}, workspace") == copies
