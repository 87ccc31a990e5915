"""Convolutions with large dilations, sizes left open: taps outside of the image are left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor

from ingot_build_rules.tools.cli.main import main

_SIZES = ((1, 1), (5, 3), (13, 30), (40, 26))


@pytest.mark.broad
@pytest.mark.parametrize(
    ("dilation", "pads", "stride", "apart"),
    [(12, 12, 1, True), (12, 9, 2, True), (24, 24, 1, True), (2, 2, 1, False)],
)
def test_right_at_all_sizes(
    tmp_path: Path, dilation: int, pads: int, stride: int, apart: bool
) -> None:
    """From one pixel to sizes where most taps are inside; rows of the image are apart where the
    dilation is large."""
    random = np.random.default_rng(dilation)
    weights = {"w": random.standard_normal((16, 24, 3, 3)).astype(np.float32)}
    attributes = {"dilations": [dilation] * 2, "pads": [pads] * 4, "strides": [stride] * 2}
    conv = node("Conv", "x w", "y", **attributes)
    model = make_model([conv], [tensor("x", ["n", 24, "h", "w"])], [tensor("y", None)], weights)
    least = max(1, 2 * dilation + 1 - 2 * pads)
    feeds = [
        {"x": random.standard_normal((2, 24, h + least - 1, w + least - 1)).astype(np.float32)}
        for h, w in _SIZES
    ]
    check_model(model, feeds, tmp_path)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    text = tmp_path / "loops"
    assert main(["compile", str(tmp_path / "m.onnx"), "-q", "--to", "loops", "-o", str(text)]) == 0
    assert ("tap0 in 3" not in text.read_text()) == apart
