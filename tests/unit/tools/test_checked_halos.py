"""``--check`` knows what stands around an image: the zero point, or 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness.end_to_end_harness import make_model, tensor
from tests.harness.quantized_models import Array, Layers, Scheme

from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import compile_model
from ingot_build_rules.tools.check.self_check import check_bundle

CHANNELS = 8
# Kernel, weights' channels by groups, and what the op is told: every form of a window.
WINDOWS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "conv": ("Conv", (16, 8, 3, 3), {"pads": [1] * 4}),
    "of few channels": ("Conv", (3, 8, 3, 3), {"pads": [1] * 4}),
    "strided": ("Conv", (16, 8, 3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
    "dilated": ("Conv", (16, 8, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
    "asymmetric": ("Conv", (16, 8, 3, 3), {"pads": [0, 2, 1, 0]}),
    "same": ("Conv", (16, 8, 2, 4), {"auto_pad": "SAME_UPPER"}),
    "wide": ("Conv", (4, 8, 5, 7), {"pads": [2, 3, 2, 3]}),
    "pointwise": ("Conv", (16, 8, 1, 1), {"pads": [1] * 4}),
    "grouped": ("Conv", (16, 4, 3, 3), {"pads": [1] * 4, "group": 2}),
    "depthwise": ("Conv", (8, 1, 3, 3), {"pads": [1] * 4, "group": 8}),
    "depthwise, strided": (
        "Conv", (8, 1, 5, 5), {"pads": [2] * 4, "strides": [2, 2], "group": 8},
    ),
    "transposed": ("ConvTranspose", (8, 4, 3, 3), {"pads": [1] * 4}),
    "transposed, strided": ("ConvTranspose", (8, 4, 4, 4), {"pads": [1] * 4, "strides": [2, 2]}),
    "max": ("MaxPool", (), {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "average": ("AveragePool", (), {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "average with pads": (
        "AveragePool", (), {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1},
    ),
}  # fmt: skip
ZEROS: dict[Any, tuple[int, ...]] = {
    np.uint8: (127, 0, 1, 128, 255),
    np.int8: (-128, -1, 1, 0, 127),
}


def windows(scheme: Scheme, image: tuple[int | str, ...], first: int) -> ModelProto:
    """Every form of a window over its own quantized copy of ``x``; the zero points take turns,
    beginning at ``first``."""
    layers, results = Layers(scheme), list[str]()
    zeros = ZEROS[scheme.activations]
    for at, (op, shape, told) in enumerate(WINDOWS.values(), first):
        zero = zeros[at % len(zeros)]
        x = layers.requantized("x", 0.0143, zero)
        axis = 1 if op == "ConvTranspose" else 0
        y = layers.add(op, [x, *([layers.weights(*shape, axis=axis)] if shape else [])], **told)
        results.append(layers.requantized(y, 0.0143 if "Pool" in op else 0.09, zero))
    outputs = [tensor(name, None) for name in results]
    return make_model(layers.nodes, [tensor("x", image)], outputs, layers.stored)


def image_of(*shape: int) -> Array:
    """Numbers of which some saturate."""
    return np.random.default_rng(5).normal(0, 1.3, shape).astype(np.float32)


@pytest.mark.parametrize("first", range(5))
@pytest.mark.parametrize(
    ("scheme", "image"),
    [
        (Scheme(), (1, CHANNELS, 9, 10)),
        (Scheme(np.int8), ("n", CHANNELS, "h", "w")),
        (Scheme(weights=np.uint8, skewed=True), ("n", CHANNELS, 9, 10)),
        (Scheme(per_channel=False), (1, CHANNELS, "h", "w")),
    ],
    ids=["u8s8", "s8s8 open", "skewed", "one scale, open"],
)
@pytest.mark.sweep(60)
def test_every_halo_is_what_the_kernels_write(
    scheme: Scheme, image: tuple[int | str, ...], first: int, tmp_path: Path
) -> None:
    """Each form of a window with each zero point, of fixed and of open sizes: no launch differs,
    and some halo holds another number than 0."""
    compiled = compile_model(windows(scheme, image, first), make_options(["native"]))
    path = str(tmp_path / "m.ingot")
    compiled.save(path)
    fills = [
        launch.group.nodes[0].integer("value")
        for launch in compiled.target_builds[0].launches
        if launch.group.fills_halo
    ]
    assert len(set(fills)) > 1
    report = check_bundle(compiled, path, {"x": image_of(1, CHANNELS, 9, 10)})
    report.require_equal()
    assert report.launches == len(compiled.target_builds[0].launches)
