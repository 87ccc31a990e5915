"""Ops of the user's own domain: defined by a program or by ONNX functions, compiled into the
bundle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.harness.build_harness import Workbench
from tests.harness.frontend_harness import MemoryStore, no_external

import ingot
import ingot_runtime
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.op_option import OpOption
from ingot_build_rules.making.options.op_options import read_ops
from ingot_build_rules.making.values.custom_ops import custom_ops, op_file
from ingot_build_rules.tools.reproduce.recorded_options import recorded_options
from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import infer_types
from ingot_compiler.ir.errors import ModelError, UnsupportedError, UserError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.oracles.interpret import interpret
from ingot_runtime.ingot_error import IngotError

DOMAIN = "acme.signal"
PROGRAM = """
def @Foo(%x: f32[rows, columns], %y: f32[columns], %limit: f32[]) -> f32[rows, columns] {
  max(add(%x, %y), %limit)
}
"""
FUNCTION = """
<opset_import: ["" : 17], domain: "acme.signal">
Foo <limit, scale: float = 2.0> (x, y) => (z)
{
   sum = Add (x, y)
   low = Constant <value_float: float = @limit> ()
   factor = Constant <value_float: float = @scale> ()
   high = Max (sum, low)
   z = Mul (high, factor)
}
"""
TWO_FUNCTIONS = "def @A() -> f32[] { @A() }\ndef @B() -> f32[] { @A() }"
CALLS_ITSELF = FUNCTION.replace("Max (", "acme.signal.Foo <limit = 1.0> (").replace(
    "17]", '17, "acme.signal" : 1]'
)
X = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
Y = np.array([1, 0, -1], np.float32)


def node_model(
    inputs: int = 2,
    rows: int | str = 2,
    columns: int = 3,
    dtype: int = TensorProto.FLOAT,
    **given: Any,
) -> ModelProto:
    """A model of one node of ``acme.signal::Foo``."""
    values = [
        helper.make_tensor_value_info("x", dtype, [rows, 3]),
        helper.make_tensor_value_info("y", dtype, [columns]),
        helper.make_tensor_value_info("w", dtype, [columns]),
    ][:inputs]
    names = [value.name for value in values]
    node = helper.make_node("Foo", names, ["z"], "/the/node", domain=DOMAIN, **given)
    output = helper.make_empty_tensor_value_info("z")
    graph = helper.make_graph([node], "g", values, [output])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def typed(model: ModelProto, text: str | bytes, file: str, op: str = "Foo") -> Graph:
    """What the two rules make of a model with one definition."""
    content = text if isinstance(text, bytes) else text.encode()
    files = [op_file(f"{DOMAIN}::{op}", file, content)]
    store = MemoryStore()
    source = model.SerializeToString()
    imported, _ = import_model(source, no_external, store.write, [], [], op_files=files)
    return infer_types(imported, store.read, custom_ops(files)).graph


def run(model: ModelProto, text: str | bytes, file: str) -> np.ndarray[Any, Any]:
    """The one result."""
    return interpret(typed(model, text, file), [X, Y], MemoryStore().read)[0]


@pytest.mark.parametrize("rows", [2, "n"])
def test_a_program_takes_the_place_of_a_node(rows: int | str) -> None:
    """Operands are its first parameters, attributes those of their names; sizes may be unknown."""
    found = run(node_model(rows=rows, limit=0.5), PROGRAM, "foo.ingot-text")
    np.testing.assert_array_equal(found, np.maximum(X + Y, 0.5))


@pytest.mark.parametrize("scale", [None, 3.0])
def test_a_function_takes_the_place_of_a_node(scale: float | None) -> None:
    """Attributes that the node leaves out have the function's defaults."""
    given: dict[str, Any] = {} if scale is None else {"scale": scale}
    found = run(node_model(limit=0.5, **given), FUNCTION, "foo.txt")
    np.testing.assert_array_equal(found, np.maximum(X + Y, 0.5) * (scale or 2.0))


def test_a_model_of_functions_defines_an_op() -> None:
    """The function of the op's name counts, whatever its domain; it may call the others."""
    function = onnx.parser.parse_function(FUNCTION)
    function.domain = "elsewhere"
    model = node_model()
    model.functions.append(function)
    found = run(node_model(limit=0.5), model.SerializeToString(), "foo.onnx")
    np.testing.assert_array_equal(found, np.maximum(X + Y, 0.5) * 2)


def test_attributes_of_programs_are_numbers_and_vectors() -> None:
    """Integers, lists, and floats for parameters of these types."""
    text = "def @Foo(%x: f32[a, b], %y: f32[b], %by: i64[2], %n: i64[]) -> i64[2] { mul(%by, %n) }"
    graph = typed(node_model(by=[3, 4], n=2), text, "foo.ingot-text")
    assert interpret(graph, [X, Y], MemoryStore().read)[0].tolist() == [6, 8]
    assert graph.types[graph.outputs[0]].dtype == "i64"


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (node_model(inputs=1, limit=0.5), "expected attribute y, or an operand 1 in its place"),
        (node_model(), "expected attribute limit, or an operand 2 in its place"),
        (node_model(inputs=3, limit=0.5), "got limit"),
        (node_model(limit=0.5, more=1), "expected attributes limit, got more"),
        (node_model(limit="much"), "attribute limit to be numbers"),
        (node_model(limit=0.5, dtype=TensorProto.DOUBLE), "f32[rows, columns] as parameter x"),
        (node_model(limit=0.5, columns=4), "size columns of parameter y to be 3, got 4"),
    ],
)
def test_a_node_that_does_not_fit_its_program_is_named(model: ModelProto, why: str) -> None:
    """Operands, attributes, types and sizes: the error says what the definition expects."""
    with pytest.raises(ModelError, match=re.escape(why)) as caught:
        typed(model, PROGRAM, "foo.ingot-text")
    assert "node #0" in str(caught.value.where) or "/the/node" in str(caught.value.where)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (node_model(inputs=1, limit=0.5), "expected 2, as Foo is defined, got 1"),
        (node_model(inputs=3, limit=0.5), "expected 2, as Foo is defined, got 3"),
        (node_model(), "attribute 'limit' of Foo must be given"),
        (node_model(limit=0.5, more=1), "attribute 'more'; Foo has limit, scale"),
    ],
)
def test_a_node_that_does_not_fit_its_function_is_named(model: ModelProto, why: str) -> None:
    """Operands and attributes."""
    with pytest.raises(ModelError, match=re.escape(why)) as caught:
        typed(model, FUNCTION, "foo.txt")
    assert caught.value.where == "node '/the/node' (Foo)"


@pytest.mark.parametrize(
    ("text", "file", "why"),
    [
        ("nothing", "foo.txt", "ONNX's text form"),
        (b"\xff\xff", "foo.txt", "is not a function"),
        (b"\xff\xff", "foo.ingot-text", "expected UTF-8"),
        ("nothing", "foo.ingot-text", "an op file cannot be used"),
        (b"\xff\xff", "foo.onnx", "not an ONNX model"),
        (node_model().SerializeToString(), "foo.onnx", "no definition of the op in the file"),
        (TWO_FUNCTIONS, "f.ingot-text", "call one of them @Foo"),
        ('device "host" id 0 type "host"\n' + PROGRAM, "foo.ingot-text", "leave them out"),
        (PROGRAM.replace("max(", "@Foo("), "foo.ingot-text", "an op file cannot be used"),
        (CALLS_ITSELF, "foo.txt", "an op that calls itself"),
    ],
)  # fmt: skip
def test_a_file_that_defines_nothing_is_named(text: str | bytes, file: str, why: str) -> None:
    """Each error names the option, and says what to do."""
    with pytest.raises(IngotError, match=re.escape(why)) as caught:
        typed(node_model(limit=0.5), text, file)
    assert str(caught.value.where) == f"--op {DOMAIN}::Foo={file}"
    assert caught.value.do


def test_a_program_without_weights_and_control_flow() -> None:
    """What has them is written as an ONNX function."""
    body = 'add(%x, constant() {dtype="f32", shape=[], weight="0"})'
    text = f"def @Foo(%x: f32[a, b], %y: f32[b], %limit: f32[]) -> f32[a, b] {{ {body} }}"
    with pytest.raises(UnsupportedError, match="stored weights: write it as an ONNX function"):
        typed(node_model(limit=0.5), text, "foo.ingot-text")


def test_an_op_that_no_node_is_is_refused() -> None:
    """A misspelled op says which one was perhaps meant; one that the model defines is not taken."""
    with pytest.raises(UserError, match=r"did you mean acme\.signal::Foo") as caught:
        typed(node_model(limit=0.5), PROGRAM, "foo.ingot-text", "Fo")
    assert str(caught.value.where) == f"--op {DOMAIN}::Fo=foo.ingot-text"
    model = node_model(limit=0.5)
    model.functions.append(onnx.parser.parse_function(FUNCTION))
    with pytest.raises(UserError, match="two definitions"):
        typed(model, FUNCTION, "foo.txt")


def test_an_unknown_op_suggests_a_definition() -> None:
    """The refusal of a foreign op shows the option that defines it."""
    with pytest.raises(UnsupportedError) as caught:
        import_model(
            node_model(limit=0.5).SerializeToString(), no_external, MemoryStore().write, [], []
        )
    assert "--op acme.signal::Foo=FILE" in str(caught.value.do)


def test_options_name_an_op_and_a_file(tmp_path: Path) -> None:
    """A domain, a name, a file that is there, each op once."""
    (tmp_path / "foo.txt").write_text(FUNCTION)
    (option,) = read_ops([(f"{DOMAIN}::Foo", "foo.txt")], str(tmp_path))
    assert option == OpOption(f"{DOMAIN}::Foo", "foo.txt", FUNCTION.encode())
    for op, path, why in (
        ("Foo", "foo.txt", "not understood"),
        ("::Foo", "foo.txt", "not understood"),
        ("com.microsoft::Gelu", "foo.txt", "not understood"),
        (f"{DOMAIN}::Foo", "bar.txt", "no such op file"),
        (f"{DOMAIN}::Foo", ".", "no such op file"),
    ):
        with pytest.raises(UserError, match=why):
            read_ops([(op, path)], str(tmp_path))
    (tmp_path / "other.txt").write_text(PROGRAM)
    with pytest.raises(UserError, match="defined twice"):
        read_ops([(f"{DOMAIN}::Foo", "foo.txt"), (f"{DOMAIN}::Foo", "other.txt")], str(tmp_path))


@pytest.mark.parametrize("content", [FUNCTION.encode(), b"\xff\x00\x01", b"a\tb\n"])
def test_a_record_has_the_definition(content: bytes) -> None:
    """A bundle's record of options reads back, texts as lines, anything else encoded."""
    options = CompileOptions(("x86-64-v3",), ops=(OpOption(f"{DOMAIN}::Foo", "foo.txt", content),))
    assert recorded_options(options.plain()).ops == options.ops


def test_a_bundle_runs_with_the_loader_alone(tmp_path: Path) -> None:
    """``ops`` of ``ingot.compile``: the file's content decides the bundle, its folder does not."""
    model = node_model(limit=0.5).SerializeToString()
    digests: list[str] = []
    for folder, text in (("a", PROGRAM), ("b", PROGRAM), ("c", PROGRAM.replace("max", "min"))):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "foo.ingot-text"
        file.write_text(text)
        bundle = ingot.compile(model, targets=["x86-64-v3"], ops={f"{DOMAIN}::Foo": str(file)})
        bundle.save(str(tmp_path / f"{folder}.ingot"))
        digests.append(bundle.digest)
    assert digests[0] == digests[1] != digests[2]
    session = ingot_runtime.load(str(tmp_path / "a.ingot"))
    np.testing.assert_array_equal(session.run({"x": X, "y": Y})["z"], np.maximum(X + Y, 0.5))


@pytest.mark.broad
def test_a_changed_file_makes_a_bundle_again(tmp_path: Path) -> None:
    """``ops`` of ``ingot.toml``: the file is a source of the bundle."""
    bench = Workbench(tmp_path / "p", tmp_path / "cache")
    bench.write("ops/foo.ingot-text", PROGRAM)
    table = f'ops = {{ "{DOMAIN}::Foo" = "ops/foo.ingot-text" }}\n'
    bench.project({"a": node_model(limit=0.5)}, table)
    bench.build()
    (built,) = bench.build().results
    assert built.status == "unchanged"
    bench.write("ops/foo.ingot-text", PROGRAM.replace("max", "min"))
    report = bench.build()
    assert [item.status for item in report.results] == ["built"]
    assert any("import_model: ops changed" in line for line in report.explanations["a"])
