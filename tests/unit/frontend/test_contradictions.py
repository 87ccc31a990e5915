"""What a file says of shapes, where its nodes compute others: told with both, run by what is
computed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, no_external

import ingot_runtime
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import infer_types
from ingot_compiler.frontend.model.parse_imported import parse_imported
from ingot_compiler.frontend.model.print_imported import print_imported
from ingot_compiler.ir.in_names import text_in_names


def model(declared: list[int | str], **inside: list[int | str]) -> ModelProto:
    """y = |-x| of x: float[b, 2]; the tensor between is t."""
    made = make_model(
        [node("Neg", "x", "t", name="n"), node("Abs", "t", "y", name="m")],
        [tensor("x", ["b", 2])],
        [tensor("y", declared)],
    )
    told = [tensor(name, shape) for name, shape in inside.items()]
    made.graph.value_info.extend(told)
    return made


def told(made: ModelProto) -> list[str]:
    """The warnings of a model; its imported form has all that they need."""
    store = MemoryStore()
    imported, names = import_model(made.SerializeToString(), no_external, store.write, [], [])
    assert parse_imported(print_imported(imported)) == imported
    texts = infer_types(imported, store.read).contradictions
    return [text_in_names(text, names) for text in texts]


END = "; the model runs by what is computed"


@pytest.mark.parametrize(("made", "expected"), [
    (model(["b", 2], t=["b", 2]), []),
    (model(["c", 2], t=[3, 2], other=[1]), []),
    (model(["b", 3]),
     [f"output 'y' of node 'm' (Abs): the model declares f32[?, 3], its nodes compute f32[b, 2]{END}"]),
    (model([2]), [f"output 'y' of node 'm' (Abs): the model declares f32[2], its nodes compute f32[b, 2]{END}"]),
    (model(["b", 2], t=[1, 1, 1]),
     [f"a result of node 'n' (Neg): the model declares f32[1, 1, 1], its nodes compute f32[b, 2]{END}"]),
])  # fmt: skip
def test_what_is_told(made: ModelProto, expected: list[str]) -> None:
    """Both shapes, in the user's names; nothing where they agree or one is open."""
    assert told(made) == expected


def test_tensors_inside_are_one_text() -> None:
    """However many there are: exporters that keep old shapes keep them everywhere."""
    made = make_model(
        [node("Neg", f"t{number}", f"t{number + 1}") for number in range(4)],
        [tensor("t0", [2])], [tensor("t4", [2])],
    )  # fmt: skip
    made.graph.value_info.extend(tensor(f"t{number}", [3]) for number in (1, 2, 3))
    (text,) = told(made)
    assert "(and so of 2 more tensors)" in text


def test_a_bundle_runs_by_what_is_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command warns once, for a person and for a program, also where the cache knows all."""
    path, bundle = tmp_path / "m.onnx", tmp_path / "m.ingot"
    path.write_bytes(model(["b", 3], t=[7]).SerializeToString())
    command = ["compile", str(path), "-o", str(bundle), "--target", "x86-64-v3"]
    assert main(command) == 0
    assert capsys.readouterr().err.count("the model declares") == 2
    assert main([*command, "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert [text.count("f32[b, 2]") for text in warnings] == [1, 1]
    session = ingot_runtime.load(bundle)
    assert session.outputs[0].shape == ("b", 2)
    x = np.ones((4, 2), np.float32)
    assert session.run({"x": -x})["y"].tolist() == x.tolist()


def test_a_tensor_of_another_kind_inside() -> None:
    """A declared type that is no tensor, and one of an unknown element type, say nothing."""
    made = model(["b", 2])
    made.graph.value_info.append(
        helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)
    )
    assert told(made) == []
