"""The elements that Resize takes from the nearest place are those of exact arithmetic, for every
pair of sizes and every mode.

In: sizes, modes. Out: nothing. Not done here: weights of neighbours (``test_ops_resize``), scales
(``test_resize_scales``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from tests.c_source import CModel, export
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor
from tests.ptx.fake_driver import installed

import ingot
import ingot_runtime
from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.ops.resize import NEAREST_MODES
from ingot_compiler.ir.rules.resample_rules import coordinates, taps

COORDINATES = (
    "align_corners",
    "asymmetric",
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
)
MODES = tuple(itertools.product(COORDINATES, NEAREST_MODES))
# Where the quotient of two sizes is rounded and then divided by, most of these take a neighbour.
PAIRS = ((14, 18), (28, 36), (56, 116), (14, 17), (30, 22), (14, 9), (49, 1), (1, 5), (7, 38))


def exact(how: tuple[str, str], size: int, new: int) -> Array:
    """The nearest element for each of ``new`` places, by integers alone."""
    coordinate, rounding = how
    place = np.arange(new)
    above, below = (2 * place + 1) * size - new, np.asarray(2 * new)
    if coordinate == "asymmetric":
        above, below = place * size, np.asarray(new)
    elif coordinate == "align_corners":
        above, below = place * (size - 1), np.asarray(max(new - 1, 1))
    elif coordinate == "pytorch_half_pixel" and new == 1:
        above = place
    rounded = {
        "floor": above // below,
        "ceil": -(-above // below),
        "round_prefer_ceil": (2 * above + below) // (2 * below),
        "round_prefer_floor": -((below - 2 * above) // (2 * below)),
    }
    nearest: Array = np.clip(rounded[rounding], 0, size - 1)
    return nearest


@pytest.mark.broad
@pytest.mark.parametrize("coordinate", COORDINATES)
def test_the_interpreter_is_exact(coordinate: str) -> None:
    """Every pair of sizes up to 100."""
    for size, new in itertools.product(range(1, 101), repeat=2):
        attributes: dict[str, Attribute] = {
            "coordinates": coordinate, "sizes": (new,), "scales": (0.0,), "roi": (0.0, 0.0),
            "mode": "nearest", "antialias": False,
        }  # fmt: skip
        where, scale = coordinates(attributes, 0, size)
        for rounding in NEAREST_MODES:
            found = taps({**attributes, "nearest_mode": rounding}, where, scale, size)[0][:, 0]
            assert (found == exact((coordinate, rounding), size, new)).all(), (rounding, size, new)


def all_modes(shape: Sequence[int | str], sizes: Sequence[int] | None) -> onnx.ModelProto:
    """One output for each mode, of one row; ``sizes``: None where a call gives them."""
    nodes = [
        node(
            "Resize",
            "x - - s",
            f"{coordinate}.{rounding}",
            coordinate_transformation_mode=coordinate,
            nearest_mode=rounding,
        )
        for coordinate, rounding in MODES
    ]
    inputs = [tensor("x", shape, TensorProto.INT32)]
    if sizes is None:
        inputs.append(tensor("s", [4], TensorProto.INT64))
    constants = {} if sizes is None else {"s": np.array(sizes)}
    outputs = [tensor(".".join(how), None, TensorProto.INT32) for how in MODES]
    return make_model(nodes, inputs, outputs, constants)


def row(size: int) -> Array:
    """Elements that tell their places."""
    return np.arange(size, dtype=np.int32).reshape(1, 1, 1, size)


def check(found: dict[str, Array], size: int, new: int, axis: int = 3) -> None:
    """Every output is exact."""
    for how in MODES:
        one = np.moveaxis(found[".".join(how)], axis, 0).reshape(new, -1)[:, 0]
        assert (one == exact(how, size, new)).all(), (how, size, new, one)


@pytest.fixture(scope="module")
def of_open_sizes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for all sizes."""
    path = tmp_path_factory.mktemp("open") / "m.ingot"
    ingot.compile(all_modes(["a", "b", "c", "d"], None)).save(path)
    return path


@pytest.mark.broad
def test_kernels_of_open_sizes_are_exact(of_open_sizes: Path) -> None:
    """Every pair of sizes up to 50, given by calls."""
    with ingot_runtime.load(of_open_sizes) as session:
        for size, new in itertools.product(range(1, 51), repeat=2):
            given = {"x": row(size), "s": np.array([1, 1, 1, new])}
            check(dict(session.run(given)), size, new)


@pytest.mark.parametrize(("size", "new"), PAIRS)
@pytest.mark.sweep(18)
def test_every_way_of_running_is_exact(
    size: int, new: int, of_open_sizes: Path, tmp_path: Path
) -> None:
    """Known sizes along lanes and along rows, and open ones; aot, vm, and the loader in C."""
    x = row(size)
    for axis, shape in ((3, (1, 1, 1, size)), (2, (1, 2, size, 3))):
        image = np.broadcast_to(np.moveaxis(x, 3, axis), shape).copy()
        target = [*shape[:axis], new, *shape[axis + 1 :]]
        given: dict[str, Array] = {"x": image}
        ingot.compile(all_modes(shape, target)).save(tmp_path / "known")
        check(run_all_ways(tmp_path / "known", [given])[0], size, new, axis)
        given["s"] = np.array(target)
        check(run_all_ways(of_open_sizes, [given])[0], size, new, axis)


@pytest.fixture
def gpu() -> Iterator[None]:
    """A GPU that a program of Python stands for."""
    with installed():
        yield


@pytest.mark.broad
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("device", [pytest.param("opencl", marks=pytest.mark.opencl), "cuda"])
def test_devices_are_exact(device: str) -> None:
    """On the devices beside the host."""
    target = {"opencl": "x86-64-v2", "cuda": "x86-64-v3"}[device]
    for size, new in PAIRS[:3]:
        made = ingot.compile(
            all_modes([1, 1, 1, size], [1, 1, 1, new]),
            targets=[target],
            devices={"acc": device},
            place={"*": "acc"},
        )
        with ingot_runtime.load(made.to_bytes()) as session:
            check(dict(session.run({"x": row(size)})), size, new)
            assert session.device_counts().launches["acc"] > 0


@pytest.mark.broad
def test_c_source_is_exact(tmp_path: Path) -> None:
    """As a model in C."""
    for size, new in PAIRS[:2]:
        model = all_modes([1, 1, 1, size], [1, 1, 1, new])
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        made = CModel(export(tmp_path / "m.onnx", tmp_path / f"c{size}", "--name", "m"))
        check(made.run({"x": row(size)}), size, new)


@pytest.mark.parametrize("size", [14, 30, 49, 5, 1])
@pytest.mark.sweep(60)
def test_a_region_reaches_its_last_element(size: int, tmp_path: Path) -> None:
    """The region from 0 to 1 begins and ends within the image, whatever the sizes are; one element
    lies in its middle."""
    new = [1, 2, 17, 22, 53]
    nodes = [
        node("Resize", f"x roi - s{size}", f"y{size}", mode="linear", extrapolation_value=-9.0,
             coordinate_transformation_mode="tf_crop_and_resize")
        for size in new
    ]  # fmt: skip
    tables = {f"s{size}": np.array([1, 1, 1, size]) for size in new}
    tables["roi"] = np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32)
    x = row(size).astype(np.float32)
    outputs = [tensor(f"y{size}", None) for size in new]
    ingot.compile(make_model(nodes, [tensor("x", [1, 1, 1, "w"])], outputs, tables)).save(
        tmp_path / "m"
    )
    (found,) = run_all_ways(tmp_path / "m", [{"x": x}])
    for count in new:
        expected = np.linspace(0, size - 1, count) if count > 1 else np.array([(size - 1) / 2])
        np.testing.assert_allclose(found[f"y{count}"].ravel(), expected, rtol=1e-6)
