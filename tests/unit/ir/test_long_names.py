"""Names of thousands of bytes: those that only people read are cut, those by which callers give and
take tensors are refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.c_loader import CBundle
from tests.harness.end_to_end_harness import node, tensor

import ingot
import ingot_runtime
from ingot_compiler.ir.errors import LimitError

LONG = {"letters": "n" * 5000, "two bytes each": "\u00e9" * 2500, "odd": "n" + "\u00e9" * 2500}
PLACES = ("graph", "node", "inner", "constant", "dimension", "input", "output")


def _model(place: str, name: str) -> ModelProto:
    names = {each: name if each == place else each for each in PLACES}
    x = tensor(names["input"], (names["dimension"], 2))
    constant = helper.make_tensor(names["constant"], 1, [2], [1.0, 2.0])
    first = helper.make_node(
        "Add", [names["input"], names["constant"]], [names["inner"]], name=names["node"]
    )
    last = helper.make_node("Relu", [names["inner"]], [names["output"]])
    made = helper.make_graph(
        [first, last], names["graph"], [x], [tensor(names["output"], None)], [constant]
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("form", LONG)
@pytest.mark.parametrize("place", PLACES[:5])
def test_names_that_only_people_read(place: str, form: str, tmp_path: Path) -> None:
    """The model compiles, and both loaders take the bundle."""
    ingot.compile(_model(place, LONG[form])).save(tmp_path / "m.ingot")
    feed = {"input": np.ones((3, 2), np.float32)}
    for run in (ingot_runtime.load(tmp_path / "m.ingot").run, CBundle(tmp_path / "m.ingot").run):
        np.testing.assert_array_equal(run(feed)["output"], [[2, 3]] * 3)


@pytest.mark.parametrize("form", LONG)
@pytest.mark.parametrize("place", PLACES[5:])
def test_names_that_callers_use(place: str, form: str) -> None:
    """They are what the format can hold, or the model is refused with what to do."""
    with pytest.raises(LimitError, match="4096 bytes in a name") as caught:
        ingot.compile(_model(place, LONG[form]))
    assert caught.value.do.startswith("rename it")
    assert caught.value.where.startswith(place)


def test_a_size_that_is_made_of_many(tmp_path: Path) -> None:
    """A result of 30 open sizes with long names has a size that is too long to be written out."""
    count, long = 30, "a_size_with_a_very_long_name" * 8
    inputs = [tensor(f"x{number}", (f"{long}{number}", 2)) for number in range(count)]
    joined = node("Concat", " ".join(f"x{number}" for number in range(count)), "y", axis=0)
    made = helper.make_graph([joined], "g", inputs, [tensor("y", None)])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ingot.compile(model).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    feed = {f"x{number}": np.full((number % 3, 2), number, np.float32) for number in range(count)}
    np.testing.assert_array_equal(session.run(feed)["y"], np.concatenate(list(feed.values())))
