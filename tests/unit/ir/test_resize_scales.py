"""Scales of Resize and Upsample mean the decimals and fractions that were rounded to them: sizes
and nearest elements are those of exact arithmetic, whether a model or a run says the scale.

In: scales, sizes. Out: nothing. Not done here: resizing to sizes (``test_resize_exact``).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, run_all_ways, tensor

import ingot
import ingot_runtime
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.sizes.simplest_fraction import F32_BITS, F64_BITS, simplest_fraction

# One and two decimals, thirds, and factors that are exact in f32.
TEXTS = [
    "0.7",
    "0.9",
    "0.35",
    "1.1",
    "1.4",
    "2.3",
    "1/3",
    "2/3",
    "0.1",
    "0.29",
    "1.05",
    "3.7",
    "0.5",
    "2",
    "1.25",
]
PIXELS = {"asymmetric": "floor", "half_pixel": "round_prefer_floor", "half_pixel_symmetric": "ceil"}
SIZES = range(1, 61)


def expected(size: int, scale: Fraction, coordinates: str) -> list[int]:
    """The nearest elements, by fractions."""
    new, found = size * scale.numerator // scale.denominator, list[int]()
    for place in range(new):
        centre = (place + Fraction(1, 2)) / scale - Fraction(1, 2)
        if coordinates == "half_pixel_symmetric":
            centre += Fraction(size, 2) * (1 - new / (size * scale))
        nearest = {
            "asymmetric": (place / scale).__floor__(),
            "half_pixel": (centre - Fraction(1, 2)).__ceil__(),
            "half_pixel_symmetric": centre.__ceil__(),
        }
        found.append(min(max(nearest[coordinates], 0), size - 1))
    return found


def resized(coordinates: str, scale: str, result: str) -> onnx.NodeProto:
    """A Resize of ``x`` to nearest elements."""
    rounding = PIXELS[coordinates]
    return node("Resize", f"x - {scale}", result, nearest_mode=rounding,
                coordinate_transformation_mode=coordinates)  # fmt: skip


def row(size: int) -> Array:
    """Elements that tell their places."""
    return np.arange(size, dtype=np.float32).reshape(1, 1, size)


def three(text: str) -> Array:
    """Scales of the three axes, as a file has them."""
    return np.array([1, 1, Fraction(text)], np.float32)


@pytest.mark.broad
@pytest.mark.parametrize("coordinates", PIXELS)
def test_known_scales(coordinates: str, tmp_path: Path) -> None:
    """Of open sizes, and of known ones."""
    names = [f"y{number}" for number in range(len(TEXTS))]
    scales = {f"s{number}": three(text) for number, text in enumerate(TEXTS)}
    nodes = [resized(coordinates, *pair) for pair in zip(scales, names, strict=True)]
    shapes: list[tuple[list[int | str], Sequence[int]]] = [([1, 1, "w"], SIZES)]
    shapes.extend(([1, 1, size], [size]) for size in (10, 20, 40))
    for shape, sizes in shapes:
        outputs = [tensor(name, None) for name in names]
        ingot.compile(make_model(nodes, [tensor("x", shape)], outputs, scales)).save(tmp_path / "m")
        calls = [{"x": row(size)} for size in sizes]
        for size, found in zip(sizes, run_all_ways(tmp_path / "m", calls), strict=True):
            for name, text in zip(names, TEXTS, strict=True):
                right = expected(size, Fraction(text), coordinates)
                assert found[name].ravel().tolist() == right, (size, text)


@pytest.mark.broad
@pytest.mark.parametrize("coordinates", PIXELS)
def test_scales_of_a_run(coordinates: str, tmp_path: Path) -> None:
    """A scale that is an input gives what the same one in a model gives."""
    inputs = [tensor("x", [1, 1, "w"]), tensor("s", [3])]
    nodes = [resized(coordinates, "s", "y")]
    ingot.compile(make_model(nodes, inputs, [tensor("y", None)])).save(tmp_path / "m")
    cases = [(size, text) for size in (1, 2, 9, 10, 20, 30, 57, 100, 1000) for text in TEXTS]
    calls = [{"x": row(size), "s": three(text)} for size, text in cases]
    for (size, text), found in zip(cases, run_all_ways(tmp_path / "m", calls), strict=True):
        right = expected(size, Fraction(text), coordinates)
        assert found["y"].ravel().tolist() == right, (size, text)


def test_a_quotient_of_sizes_is_what_it_was_made_from() -> None:
    """Where a model divides the size that it wants by the one that it has, in f32, it gets the size
    that it wants, and the elements that the size gives."""
    nodes = [
        node("Shape", "x", "i"),
        node("Cast", "i", "old", to=1),
        node("Cast", "n", "new", to=1),
        node("Div", "new old", "s"),
        resized("asymmetric", "s", "y"),
        resized("asymmetric", "- n", "z"),
    ]
    inputs = [tensor("x", [1, 1, "w"]), tensor("n", [3], onnx.TensorProto.INT64)]
    model = make_model(nodes, inputs, [tensor("y", None), tensor("z", None)])
    with ingot_runtime.load(ingot.compile(model, targets=["native"]).to_bytes()) as session:
        for size, new in ((size, new) for size in SIZES for new in SIZES):
            given: dict[str, Array] = {"x": row(size), "n": np.array([1, 1, new])}
            found = session.run(given)
            assert found["y"].tolist() == found["z"].tolist(), (size, new)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("op", ["Upsample-7", "Upsample-9", "Resize-10"])
def test_old_forms(op: str, tmp_path: Path) -> None:
    """Upsample, with scales as an attribute or an operand, and the first Resize."""
    name, _, opset = op.partition("-")
    for text in TEXTS[:8]:
        attributes = {"scales": three(text).tolist()} if opset == "7" else {}
        operands = "x" if opset == "7" else "x s"
        tensors = [] if opset == "7" else [numpy_helper.from_array(three(text), "s")]
        graph = helper.make_graph(
            [node(name, operands, "y", **attributes)], "g", [tensor("x", [1, 1, "w"])],
            [tensor("y", None)], tensors,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", int(opset))]
        ingot.compile(helper.make_model(graph, opset_imports=opsets, ir_version=6)).save(
            tmp_path / "m"
        )
        for size, found in zip(
            (10, 20, 33),
            run_all_ways(tmp_path / "m", [{"x": row(size)} for size in (10, 20, 33)]),
            strict=True,
        ):
            right = expected(size, Fraction(text), "asymmetric")
            assert found["y"].ravel().tolist() == right


@pytest.mark.parametrize(
    ("size", "text", "declared", "right"),
    [
        (100, "0.29", None, 29),
        (100, "0.29", 29, 29),
        # What PyTorch makes of it in f64.
        (100, "0.29", 28, 28),
        # What f32 makes of it.
        (100, "0.53", 52, 52),
        (100, "0.53", None, 53),
        # No number that rounds to the scale gives these.
        (100, "0.29", 27, 29),
        (100, "0.29", 30, 29),
        (10, "0.75", 8, 7),
    ],
)
@pytest.mark.parametrize("is_inside", [True, False])
def test_declared_sizes(
    size: int, text: str, declared: int | None, right: int, is_inside: bool
) -> None:
    """Where a number that rounds to the scale gives the size that the file declares, that is the
    size; of an output, or of a tensor between nodes."""
    nodes = [resized("asymmetric", "s", "z"), node("Neg", "z", "y")]
    shape = None if declared is None else [1, 1, declared]
    name = "z" if is_inside else "y"
    outputs = [tensor("y", None if is_inside else shape)]
    model = make_model(
        nodes if is_inside else [resized("asymmetric", "s", "y")],
        [tensor("x", [1, 1, size])],
        outputs,
        {"s": three(text)},
    )
    if is_inside and shape is not None:
        model.graph.value_info.append(tensor(name, shape))
    found = ingot_runtime.load(ingot.compile(model, targets=["native"]).to_bytes()).run(
        {"x": row(size)}
    )
    assert found["y"].shape == (1, 1, right)


@pytest.mark.parametrize("scale", [np.inf, np.nan, 0.0, -1.0])
def test_a_scale_is_a_finite_number_above_0(scale: float) -> None:
    """Anything else is refused by name."""
    scales = {"s": np.array([1, 1, scale], np.float32)}
    nodes = [resized("asymmetric", "s", "y")]
    model = make_model(nodes, [tensor("x", [1, 1, "w"])], [tensor("y", None)], scales)
    with pytest.raises(ModelError, match="finite scales > 0"):
        ingot.compile(model)


@pytest.mark.broad
def test_the_fraction_that_a_float_was_written_for() -> None:
    """Quotients of small integers are found again, from f32 and from f64."""
    for above in range(1, 100):
        for below in range(1, 100):
            exact = Fraction(above, below)
            assert simplest_fraction(float(np.float32(above / below)), F32_BITS) == exact
            assert simplest_fraction(above / below, F64_BITS) == exact
