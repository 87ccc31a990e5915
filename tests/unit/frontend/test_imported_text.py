"""The imported model as text: what is read back, what is refused, where and by which rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hostile.model_builder import load, relu_chain

from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.stages.compile_model import CompiledModel, compile_model
from ingot_build_rules.tools.check.check_stages import check_stages
from ingot_compiler.frontend.model.imported import DeclaredType, ImportedModel, ImportedRegion
from ingot_compiler.frontend.model.parse_imported import parse_imported
from ingot_compiler.frontend.model.print_imported import print_imported
from ingot_compiler.frontend.model.verify_imported import verify_imported
from ingot_compiler.ir.errors import InternalError, ModelError

TEXT = """\
imported(opset onnx 20) {
  expanded 12 bytes
  input %0: f32[s0, 3]
  input %1: bool[]
  specialisation s0 = 4
  initializer %2: f32[3] weight 0
  %3, _, _ = LSTM(%0, %0, %0, _, %2) {activation_alpha=[], activations=["Sigmoid", "Tanh"], clip=-1e-05, hidden_size=3}  # 0
  %6 = If(%1) {else_branch=region from 3, then_branch=region from 2} on "acc"  # 1
    else_branch() {
      initializer %4: i64[0] weight "a \\"b"
      return %3
    }
    then_branch() {
      %5 = Add(%3, %2)  # 2
      return %5
    }
  %7 = Constant() {value=i64[2] weight 1}  # 2
  %8 = Cast(%6) {to=1}  # 3
  output %8: f32[?, 3]
  output %6: ?[..]
  output %7: i64[]
}
"""


def test_everything_is_read_back() -> None:
    """Regions, absent tensors, every kind of attribute, declared types of all sorts."""
    text = (
        TEXT.replace("from 3", "from 5")
        .replace("from 2", "from 4")
        .replace("Add(%3, %2)  # 2", "Add(%3, %2)  # 4")
    )
    model = parse_imported(text)
    assert print_imported(model) == text
    assert parse_imported(print_imported(model)) == model
    branch = dict(model.nodes[1].attributes)["then_branch"]
    assert isinstance(branch, ImportedRegion)
    assert (branch.outputs, branch.first_node) == ((5,), 4)
    assert model.declared[:2] == (DeclaredType("f32", (None, 3)), DeclaredType(None, None))


VALID = TEXT.replace("from 3", "from 5").replace("from 2", "from 4")


@pytest.mark.parametrize(
    ("old", "new", "place", "why"),
    [
        ("opset onnx", "opset onyx", "line 1, column 16", "expected a string, got 'onyx'"),
        ("onnx 20", "onnx 20, onnx 20", "line 1, column 1", "opsets: expected every domain once, in order"),
        ("onnx 20", "onnx 99", "line 7, column 3", "this build reads opsets"),
        ("expanded 12", "expanded -12", "line 1, column 1", "bytes of expanded functions: expected at least 0, got -12"),
        ("input %1", "input %2", "line 4, column 9", "expected %1 next (tensors are numbered in order), got %2"),
        ("f32[s0, 3]", "f33[s0, 3]", "line 3, column 13", "an element type out of"),
        ("f32[s0, 3]", "f32[s0, 2*s0]", "line 3, column 3", "sizes of inputs: expected numbers from 0 on, and symbols"),
        ("specialisation s0", "specialisation s1", "line 1, column 1", "sizes given: expected sizes from 0 on for a symbol of an input, got s1 = 4"),
        ("specialisation s0 = 4", "specialisation s0 = 4, s0 = 5", "line 1, column 1", "one size for each symbol"),
        ("f32[3] weight", "f32[n] weight", "line 6, column 3", "sizes of constants"),
        ("weight 0", "weight w", "line 6, column 33", "expected a string, got 'w'"),
        ("weight 0", 'weight ""', "line 6, column 3", "constants: expected the number of its weight, got none"),
        ("%3, _, _ = LSTM(", "%3, _, _ = LSTN(", "line 7, column 3", "LSTN: ONNX has no such op; did you mean LSTM?"),
        ("%3, _, _ = LSTM(", '%3, _, _ = "com.x".LSTM(', "line 7, column 3", "a node's domain has no opset version"),
        ("LSTM(%0, %0, %0, _, %2)", "LSTM(%0)", "line 7, column 3", "wrong number of operands (expected 3 to 8, got 1)"),
        ("LSTM(%0, %0, %0, _, %2)", "LSTM(%0, _, %0)", "line 7, column 3", "a node lacks an operand"),
        ("LSTM(%0, %0, %0, _, %2)", "LSTM(%0, %9, %0)", "line 7, column 3", "tensors are defined before use: expected a tensor that is defined before, got %9"),
        ("%3, _, _ =", "%1, _, _ =", "line 7, column 3", "tensors are defined once: expected a tensor that is new, got %1"),
        ("clip=-1e-05", "clip=1", "line 7, column 3", "an attribute is of the wrong kind (attribute 'clip': expected float, got int)"),
        ("clip=-1e-05", "clop=-1e-05", "line 7, column 3", "unknown attribute"),
        ("clip=-1e-05, hidden_size=3", "hidden_size=3, clip=-1e-05", "line 7, column 3", "names of attributes: expected each once, in order"),
        ('["Sigmoid", "Tanh"]', '["Sigmoid", 1]', "line 7, column 73", "items of one kind"),
        ("else_branch() {", "else() {", "line 9, column 5", 'expected "else_branch"'),
        ("region from 5", "region from 0", "line 8, column 3", ""),
        ("region from 4", "region from 3", "line 8, column 3", "numbers of nodes: expected numbers that no other node has"),
        ("Add(%3, %2)", "Add(%3, %6)", "line 14, column 7", "defined before, got %6"),
        ("return %5", "return %9", "line 8, column 3", "defined before, got %9"),
        ("Cast(%6)", "Cast(%5)", "line 18, column 3", "defined before, got %5"),
        (" {to=1}", "", "line 18, column 3", "a node lacks an attribute"),
        ("output %8", "output %5", "line 19, column 3", "outputs are defined: expected a tensor of the model, got %5"),
        ("f32[?, 3]", "f32[?, n]", "line 19, column 21", "expected an integer, got 'n'"),
    ],
)  # fmt: skip
def test_errors_name_line_column_and_rule(old: str, new: str, place: str, why: str) -> None:
    """Each thing that can be wrong with a text is refused where it stands; an empty region has no
    numbers to be wrong."""
    assert VALID.count(old) >= 1
    text = VALID.replace(old, new, 1)
    if not why:
        assert parse_imported(text)
        return
    with pytest.raises(ModelError) as caught:
        parse_imported(text)
    assert why in caught.value.why
    assert caught.value.where.startswith(f"{place}: ")


def test_what_is_no_text_is_verified() -> None:
    """Every output has a declared type; what ``--check`` finds is an error of the compiler that
    names stage and node."""
    model, _ = load(relu_chain())
    verify_imported(model)
    node = replace(model.nodes[0], op="Rely")
    for wrong, why in (
        (replace(model, declared=()), "a declared type for each output"),
        (replace(model, nodes=(node, *model.nodes[1:])), "did you mean Relu?"),
    ):
        with pytest.raises(InternalError) as caught:
            verify_imported(wrong)
        assert why in caught.value.why
        assert "--to imported" in caught.value.do


def test_check_verifies_the_imported_model_and_the_steps_of_groups() -> None:
    """Both stages are among those that ``--check`` looks at."""

    def compiled() -> CompiledModel:
        return compile_model(relu_chain(), make_options(("x86-64-v3",)))

    check_stages(compiled())
    first, second = compiled(), compiled()
    first.__dict__["imported"] = replace(first.imported, outputs=(99,))
    with pytest.raises(InternalError, match="outputs are defined"):
        check_stages(first)
    (build,) = second.target_builds
    lowered = build.lowered
    build.__dict__["lowered"] = tuple(replace(item, programs=item.programs * 2) for item in lowered)
    with pytest.raises(InternalError, match="launches of a group"):
        check_stages(second)


@given(st.data())
@settings(max_examples=100)
def test_damaged_texts_are_refused_cleanly(data: st.DataObject) -> None:
    """A text with a piece cut, doubled or replaced is a model that verifies, or a ModelError with a
    line; nothing else."""
    first = data.draw(st.integers(0, len(VALID)))
    last = data.draw(st.integers(first, min(len(VALID), first + 12)))
    piece = data.draw(
        st.sampled_from(
            ["", "{", "}", "-", "%9", "_", "[", '"', "999999999", VALID[first:last] * 2]
        )
    )
    places: list[str] = []
    model: ImportedModel | None = None
    try:
        model = parse_imported(VALID[:first] + piece + VALID[last:])
    except ModelError as error:
        places.append(error.where)
    assert all(place.startswith("line ") for place in places)
    assert (model is None) == bool(places)
