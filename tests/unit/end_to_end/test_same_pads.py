"""``auto_pad`` SAME over open sizes: right, and with sizes that stay small however deep a network
is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.harness.end_to_end_harness import make_model, node, reference, run_all_ways, tensor

import ingot

_LEVELS = 7


@pytest.mark.sweep(60)
@pytest.mark.parametrize("kernel", [2, 3])
def test_pools_halve_an_open_size_many_times(kernel: int, tmp_path: Path) -> None:
    """A network of TensorFlow with open height and width was refused: each level tripled the
    expression of its size."""
    names = ["x", *(f"v{level}" for level in range(1, _LEVELS)), "y"]
    attributes = {"kernel_shape": [kernel], "strides": [2], "auto_pad": "SAME_UPPER"}
    pools = [node("MaxPool", before, after, **attributes) for before, after in pairwise(names)]
    model = make_model(pools, [tensor("x", [1, 2, "n"])], [tensor("y", None)])
    path = tmp_path / "m.ingot"
    ingot.compile(model).save(path)
    feeds = [
        {"x": np.random.default_rng(size).standard_normal((1, 2, size)).astype(np.float32)}
        for size in (1, 127, 128, 300)
    ]
    for feed, found in zip(feeds, run_all_ways(path, feeds), strict=True):
        np.testing.assert_array_equal(found["y"], reference(model, feed)["y"])


@pytest.mark.broad
def test_images_of_open_sizes_are_halved(tmp_path: Path) -> None:
    """Batch, height and width are open, and pads are two numbers for each of these."""
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    weights = {"w": np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype(np.float32)}
    made = node("Conv", "x w", "y", **attributes)
    given = [tensor("x", ["n", 3, "h", "w"])]
    model = make_model([made], given, [tensor("y", None)], weights)
    path = tmp_path / "m.ingot"
    ingot.compile(model).save(path)
    feed = {"x": np.random.default_rng(4).standard_normal((2, 3, 7, 8)).astype(np.float32)}
    (found,) = run_all_ways(path, [feed])
    np.testing.assert_allclose(found["y"], reference(model, feed)["y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [5, 6, 7, 8])
def test_windows_that_do_not_touch_have_no_pads_below_zero(size: int, tmp_path: Path) -> None:
    """One weight for every third number."""
    attributes = {"kernel_shape": [1], "strides": [3], "auto_pad": "SAME_LOWER"}
    made = node("Conv", "x w", "y", **attributes)
    weights = {"w": np.full((1, 1, 1), 2, np.float32)}
    model = make_model([made], [tensor("x", [1, 1, "n"])], [tensor("y", None)], weights)
    path = tmp_path / "m.ingot"
    ingot.compile(model).save(path)
    feed = {"x": np.arange(size, dtype=np.float32).reshape(1, 1, size)}
    (found,) = run_all_ways(path, [feed])
    np.testing.assert_array_equal(found["y"], 2 * feed["x"][:, :, ::3])
