"""Inputs that are initializers, too: optional in a call, with the initializer as default."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, no_external, translate
from tests.stage_checks import check_imported

import ingot
import ingot_runtime
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.model.imported import ImportedModel
from ingot_compiler.ir.errors import ModelError
from ingot_runtime.errors import FormatError
from ingot_runtime.format.defaults import decode_default
from ingot_runtime.format.plan import TensorPlan

X = np.array([[1, 2, 3]], np.float32)
CONSTANTS = {"b": np.array([1, 2, 3], np.float32), "k": np.array([2], np.float32)}


def model(b: int | str = 3, ir_version: int = 9) -> ModelProto:
    """y = x * k + b; b and k have defaults."""
    made = make_model(
        [node("Mul", "x k", "t"), node("Add", "t b", "y")],
        [tensor("b", [b]), tensor("x", ["n", 3]), tensor("k", ["j"])],
        [tensor("y", ["n", 3])],
        CONSTANTS,
    )
    made.ir_version = ir_version
    return made


def imported(made: ModelProto) -> ImportedModel:
    """Stage 2, checked."""
    result, _ = import_model(made.SerializeToString(), no_external, MemoryStore().write, [], [])
    check_imported(result)
    return result


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model."""
    path = tmp_path_factory.mktemp("defaults") / "m.ingot"
    ingot.compile(model(), targets=["x86-64-v3"]).save(path)
    return path


@pytest.mark.parametrize("executor", ["aot", "vm"])
def test_calls_with_and_without(bundle: Path, executor: str) -> None:
    """Any of them may be given, of any shape that the model allows, in any order of calls."""
    session = ingot_runtime.load(bundle, executor=executor)
    assert [spec.has_default for spec in session.inputs] == [True, False, True]
    zero, scale = np.zeros(3, np.float32), np.array([1, 0, -1], np.float32)
    for _ in range(2):
        assert session.run({"x": X})["y"].tolist() == [[3, 6, 9]]
        assert session.run({"x": X, "b": zero})["y"].tolist() == [[2, 4, 6]]
        assert session.run({"k": scale, "x": X, "b": zero})["y"].tolist() == [[1, 0, -3]]


def test_what_is_still_asked_for(bundle: Path) -> None:
    """An input without a default, and the type of one with it."""
    session = ingot_runtime.load(bundle)
    with pytest.raises(ingot_runtime.InputError, match="missing input 'x'"):
        session.run({"b": CONSTANTS["b"]})
    with pytest.raises(ingot_runtime.InputError, match="wrong shape of input 'b'"):
        session.run({"x": X, "b": np.zeros(2, np.float32)})


def test_bound_arrays(bundle: Path) -> None:
    """An input that is left out is bound to a copy of its default, which may be changed."""
    session = ingot_runtime.load(bundle)
    bound = session.bind({"x": X})
    bound.inputs["b"][:] = 0
    bound.run()
    assert bound.outputs["y"].tolist() == [[2, 4, 6]]
    assert session.run({"x": X})["y"].tolist() == [[3, 6, 9]]


def test_weights_that_are_listed_as_inputs() -> None:
    """Older files list all of them, and some exporters still do: then no call gives them."""
    assert [position for position, _ in imported(model()).defaults] == [0, 2]
    assert imported(model(ir_version=3)).defaults == ()
    many = [f"w{number}" for number in range(9)]
    made = make_model(
        [node("Sum", " ".join(["x", *many]), "y")],
        [tensor(name, [3]) for name in ("x", *many)], [tensor("y", [3])],
        dict.fromkeys(many, CONSTANTS["b"]),
    )  # fmt: skip
    assert imported(made).defaults == ()
    (told,) = translate(made, MemoryStore())[1].ignored
    assert told == "that 9 inputs have defaults: so many are the weights, which no call gives"


def test_a_default_that_is_no_value_of_its_input() -> None:
    """The shape or element type that the input declares is another one."""
    with pytest.raises(ModelError, match="the default of an input contradicts it"):
        imported(model(b=4))


def test_an_input_without_a_declared_shape() -> None:
    """Its default has one."""
    made = model()
    made.graph.input[0].type.tensor_type.ClearField("shape")
    assert str(imported(made).inputs[0]) == "f32[3]"


@pytest.mark.parametrize(("start", "end", "put", "what"), [
    (15, 76, b"", "ends inside its head"),
    (0, 8, struct.pack("<q", 2), "another rank"),
    (8, 16, struct.pack("<q", 4), "another shape"),
    (8, 16, struct.pack("<q", -1), "another shape"),
    (76, 76, b"\0", "another size"),
    (20, 21, b"\1", "not zero"),
])  # fmt: skip
def test_forged_sections(start: int, end: int, put: bytes, what: str) -> None:
    """Every rule of the section is checked."""
    good = struct.pack("<2q", 1, 3).ljust(64, b"\0") + CONSTANTS["b"].tobytes()
    plan = TensorPlan("b", 0, (3,))
    assert decode_default(good, plan, "section")[0] == (3,)
    with pytest.raises(FormatError, match=what):
        decode_default(good[:start] + put + good[end:], plan, "section")
