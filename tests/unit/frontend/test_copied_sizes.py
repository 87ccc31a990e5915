"""A size of Reshape that is 0 in a call only copies the operand's, as one that the model writes
down.

In: shapes that are computed from sizes or are data. Out: shapes beside numpy's. Not done here:
numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto
from tests.c_loader import CBundle, LoaderError
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime

SIZES = range(4)
Size = int | str


def _wanted(shape: Sequence[Size], sizes: dict[str, int]) -> list[int]:
    return [sizes[size] if isinstance(size, str) else size for size in shape]


def _expected(x: Array, wanted: Sequence[int]) -> Array | None:
    """What ONNX says; None where that is an error, and where it does not say how long -1 is."""
    if any(size == 0 and axis >= x.ndim for axis, size in enumerate(wanted)):
        return None
    read = [x.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    try:
        return x.reshape(read)
    except ValueError:
        return None


FORMS: list[tuple[Sequence[Size], Sequence[Size]]] = [
    (("n", "m"), ("m", -1)),
    (("n", "m"), (-1, "n")),
    (("n", "m"), ("m", "n")),
    (("n", "m"), ("k", -1)),
    (("n", "m"), ("k", "m")),
    (("n", "m", 2), ("m", -1, 2)),
    ((3, "m"), ("m", -1)),
    ((2, 3), ("k", -1)),
    ((2, 3), ("k", 3)),
    ((2, 3), (2, "k")),
    ((2, 3), ("k", "m")),
    ((2, 3, 2), ("k", -1, 2)),
    (("n", 2, "m"), ("m", "n", -1)),
]


@pytest.mark.sweep(60)
@pytest.mark.parametrize("way", ["sizes", "data"])
@pytest.mark.parametrize(("own", "wanted"), FORMS, ids=str)
def test_a_size_of_0_is_that_of_the_operand(
    own: Sequence[Size], wanted: Sequence[Size], way: str, tmp_path: Path
) -> None:
    """For all small sizes the result has ONNX's shape and elements, or both loaders refuse, where
    ONNX does."""
    names = sorted({size for size in (*own, *wanted) if isinstance(size, str)})
    inputs = [tensor("x", own)]
    constants = {"minus": np.array([-1]), "axis": np.array([0])}
    nodes = [node("Reshape", "x shape", "y")]
    if way == "data":
        inputs.append(tensor("shape", (len(wanted),), TensorProto.INT64))
    else:
        inputs += [tensor(f"of_{name}", (name,)) for name in names]
        parts = [f"s{axis}" for axis in range(len(wanted))]
        made = [
            node("Shape", f"of_{size}", part)
            for part, size in zip(parts, wanted, strict=True)
            if isinstance(size, str)
        ]
        constants |= {
            part: np.array([size])
            for part, size in zip(parts, wanted, strict=True)
            if isinstance(size, int)
        }
        nodes = [*made, node("Concat", " ".join(parts), "shape", axis=0), *nodes]
    path = tmp_path / "model.ingot"
    ingot.compile(make_model(nodes, inputs, [tensor("y", None)], constants)).save(path)
    sessions = [ingot_runtime.load(path, executor=executor) for executor in ("aot", "vm")]
    in_c = CBundle(path)
    for chosen in itertools.product(SIZES, repeat=len(names)):
        sizes = dict(zip(names, chosen, strict=True))
        x = np.arange(np.prod(_wanted(own, sizes)), dtype=np.float32).reshape(_wanted(own, sizes))
        shape = np.array(_wanted(wanted, sizes))
        feed = {"x": x, **({"shape": shape} if way == "data" else {})}
        if way == "sizes":
            feed |= {f"of_{name}": np.zeros(size, np.float32) for name, size in sizes.items()}
        expected = _expected(x, shape.tolist())
        for run in (*(session.run for session in sessions), in_c.run):
            try:
                found = run(feed)["y"]
            except (ingot_runtime.BundleError, LoaderError):
                found = None
            if x.size or expected is not None:
                assert (found is None) == (expected is None), (sizes, found)
            if found is not None and expected is not None:
                np.testing.assert_array_equal(found, expected, str(sizes))
    in_c.close()


def test_sizes_that_only_split_have_no_condition(tmp_path: Path) -> None:
    """Nothing is asked at run time of what every model with open lengths does: rows of all
    sentences go back to sentences."""
    nodes = [
        node("Shape", "ids", "s"),
        node("Concat", "s last", "wanted", axis=0),
        node("Reshape", "x flat", "rows"),
        node("MatMul", "rows w", "products"),
        node("Reshape", "products wanted", "y"),
    ]
    inputs = [tensor("ids", ("b", "s")), tensor("x", ("b", "s", 4))]
    constants = {
        "last": np.array([-1]),
        "flat": np.array([-1, 4]),
        "w": np.eye(4, dtype=np.float32),
    }
    path = tmp_path / "model.ingot"
    ingot.compile(make_model(nodes, inputs, [tensor("y", None)], constants)).save(path)
    (output,) = ingot_runtime.load(path).outputs
    assert output.shape == ("b", "s", 4)
