"""The section of values: what it may say, and that a loader may skip it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import ingot
import ingot_runtime
from ingot_artifacts.bundle.encode_plan import encode_values
from ingot_compiler.ir.value_forms import count_of, part_names
from ingot_runtime.format import header
from ingot_runtime.format.plan import BundlePlan, TensorPlan
from ingot_runtime.format.values import decode_values

F32, I64, U8, BOOL = 0, 7, 8, 12
TENSORS = {
    "f": (F32, (-1, 2)), "flat": (F32, (-1,)), "shape": (I64, (-1,)), "shapes": (I64, (-1, 2)),
    "given": (BOOL, ()), "spans": (I64, (-1, 2)), "flat spans": (I64, (-1, 2)), "bytes": (U8, (-1,)),
}  # fmt: skip


def plan(*outputs: str) -> BundlePlan:
    """No inputs, and these outputs."""
    tensors = [TensorPlan(f"{at}", *TENSORS[name]) for at, name in enumerate(outputs)]
    return BundlePlan("m", (), (), ("n",), (), tuple(tensors), ())


GOOD = {
    "t": ["f"],
    "s": ["spans", "bytes"],
    "dt": ["flat", "shape"],
    "qt": ["flat", "shapes"],
    "qs": ["flat spans", "bytes", "shapes"],
    "oqt": ["flat", "shapes", "given"],
    "n": [],
    "le": [],
    "ltsoqte": ["f", "spans", "bytes", "flat", "shapes", "given"],
}


@pytest.mark.parametrize("form", GOOD)
def test_forms(form: str) -> None:
    """Each takes its tensors in order; compiler and loader count alike; names are given to all."""
    tensors = GOOD[form]
    _, (value,) = decode_values(encode_values([[], [("y", form)]]), plan(*tensors))
    assert (value.name, value.form, count_of(form)) == ("y", form, len(tensors))
    assert len(set(part_names(["y", "y.shapes"], [form, "t"]))) == len(tensors) + 1


BAD: dict[str, tuple[str, list[str]]] = {
    "of nothing": ("", []),
    "unknown": ("x", ["f"]),
    "more than one": ("tt", ["f", "f"]),
    "no tensor": ("t", []),
    "a tensor is left": ("t", ["f", "f"]),
    "no end": ("lt", ["f"]),
    "an end alone": ("e", []),
    "a list in a list": ("lltee", ["f"]),
    "an optional in an optional": ("oot", ["f", "given", "given"]),
    "a sequence in a sequence": ("qqt", ["flat", "shapes", "shapes"]),
    "a sequence of a matrix": ("qt", ["f", "shapes"]),
    "shapes of another rank": ("qt", ["flat", "shape"]),
    "a shape of another type": ("dt", ["flat", "flat"]),
    "strings without places": ("s", ["shape", "bytes"]),
    "strings without bytes": ("s", ["spans", "flat"]),
    "an optional without a bool": ("ot", ["f", "flat"]),
}


@pytest.mark.parametrize("case", BAD)
def test_forms_that_mean_nothing_are_refused(case: str) -> None:
    """With the section and the output that it is about."""
    form, tensors = BAD[case]
    with pytest.raises(ingot_runtime.FormatError, match="section values 0"):
        decode_values(encode_values([[], [("y", form)]]), plan(*tensors))


def test_inputs_have_no_lists_and_names_are_unique() -> None:
    """A list is what the model makes; a name is one value."""
    own = BundlePlan("m", (), (), ("n",), (TensorPlan("x", *TENSORS["f"]),), (), ())
    for values in ([("x", "lte")], [("x", "n"), ("x", "t")]):
        with pytest.raises(ingot_runtime.FormatError, match="section values 0"):
            decode_values(encode_values([values, []]), own)
    with pytest.raises(ingot_runtime.FormatError, match="twice"):
        decode_values(encode_values([[], [("y", "t"), ("y", "t")]]), plan("f", "f"))


def test_a_loader_may_skip_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not know the kind runs the same bundle on the tensors that values are made of;
    the minor version is the lowest."""
    text = "m (seq(float[n]) s) => (int64 y) { y = SequenceLength(s) }"
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]>\n{text}')
    ingot.compile(model).save(tmp_path / "m.ingot")
    data = (tmp_path / "m.ingot").read_bytes()
    assert data[8:12] == bytes([1, 0, 0, 0])
    session: Any = ingot_runtime.load(data)
    assert session.run({"s": [np.ones(2, np.float32)]})["y"] == 1
    monkeypatch.setattr(header, "KIND_NAMES", header.KIND_NAMES[: header.VALUES])
    monkeypatch.setattr(header, "VALUES", 99)
    older = ingot_runtime.load(data)
    assert [spec.name for spec in older.inputs] == ["s", "s.shapes"]
    given = {"s": np.ones(5, np.float32), "s.shapes": np.array([[2], [3]])}
    assert older.run(given)["y"] == 2
