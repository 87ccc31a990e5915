"""``import_model``: ordinals, names, symbols, marks, digests, functions, and the text view."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from onnx import helper, numpy_helper
from tests.harness.frontend_harness import Array, MemoryStore, run_model
from tests.hostile.model_builder import FLOAT, graph_of, load, model, relu_chain, value

from ingot_compiler.frontend.model.detach_tensors import detach_tensors
from ingot_compiler.frontend.model.print_imported import print_imported
from ingot_compiler.ir.sizes.profile import SizeRange


def test_text_view() -> None:
    """The whole stage as text: ordinals for names, digests for weights, marks at the nodes."""
    digest = hashlib.sha256(np.arange(3 * 512, dtype="<f4").tobytes()).hexdigest()
    imported, names = load(relu_chain(), place=[("/second/*", "acc")])
    assert print_imported(imported) == "\n".join([
        "imported(opset onnx 20) {",
        "  input %0: f32[s0, 3]",
        f'  initializer %1: f32[3, 512] weight "{digest}"',
        "  %2 = Relu(%0)  # 0",
        '  %3 = MatMul(%2, %1) on "acc"  # 1',
        "  output %3: f32[?, 512]",
        "}",
        "",
    ])  # fmt: skip
    assert names.symbols == (("s0", "n"),)
    assert names.inputs == ("x",)
    assert names.outputs == ("y",)
    assert names.nodes == (("/first/relu", "Relu"), ("/second/product", "MatMul"))


def test_names_are_beside_not_inside() -> None:
    """Renaming nodes, tensors and dimensions changes ``Names`` alone."""
    source = relu_chain()
    renamed = relu_chain()
    renamed.graph.node[0].name = "other"
    renamed.graph.node[0].output[0] = renamed.graph.node[1].input[0] = "between"
    renamed.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    assert load(source)[0] == load(renamed)[0]
    assert load(source)[1] != load(renamed)[1]


def test_symbols_by_first_appearance() -> None:
    """Every dimension has a symbol: first one for each name, and for each dimension without a name,
    then one for each further dimension of a name; given sizes name the special case."""
    inputs = [value("a", ["n", None, 4]), value("b", [None, "n"])]
    source = model([helper.make_node("Shape", ["a"], ["y"]), helper.make_node("Shape", ["b"], ["z"])], inputs,
                   [value("y", None, 7), value("z", None, 7)])  # fmt: skip
    imported, names = load(source)
    assert [str(type_) for type_ in imported.inputs] == ["f32[s0, s1, 4]", "f32[s2, s3]"]
    assert imported.alike == (("s0", "s3"),)
    assert names.symbols == (("s0", "n"), ("s1", "a.1"), ("s2", "b.0"), ("s3", "b.1"))
    sized, _ = load(source, {"a": (2, 3, 4)})
    assert sized.inputs == imported.inputs
    sizes = (SizeRange("s0", 2, 2), SizeRange("s3", 2, 2), SizeRange("s1", 3, 3))
    assert sized.profiles == (sizes,)


def test_a_question_mark_is_no_name() -> None:
    """Some exporters call every size that they do not know by it: two of them may differ."""
    nodes = [helper.make_node("Shape", ["a"], ["y"])]
    imported, names = load(model(nodes, [value("a", ["?", 3, "?"])], [value("y", None, 7)]))
    assert [str(type_) for type_ in imported.inputs] == ["f32[s0, 3, s1]"]
    assert names.symbols == (("s0", "a.0"), ("s1", "a.2"))


def test_last_placement_wins() -> None:
    """Globs are applied in the order of the command line."""
    imported, _ = load(relu_chain(), place=[("*", "one"), ("/first/*", "two")])
    assert [node.mark for node in imported.nodes] == ["two", "one"]
    store = MemoryStore()
    assert {node.mark for node in graph_of(relu_chain(), store).nodes} == {""}


def test_initializers_that_are_inputs_are_constants() -> None:
    """Before IR version 4 every initializer was listed as an input; unused ones are not stored at
    all."""
    source = relu_chain()
    source.ir_version = 3
    source.graph.input.append(value("w", [3, 512]))
    source.graph.initializer.append(numpy_helper.from_array(np.ones(9, np.float32), "unused"))
    imported, names = load(source)
    assert names.inputs == ("x",)
    assert len(imported.initializers) == 1


def test_small_constants_become_literals() -> None:
    """Rank 0 of any type and up to 1024 integers are text; everything else is a constant by
    digest."""
    constants: dict[str, Array] = {
        "scalar": np.array(1.5, np.float32),
        "ints": np.arange(1024, dtype=np.int64),
        "floats": np.ones(3, np.float32),
        "many": np.arange(1025, dtype=np.int64),
    }
    nodes = [helper.make_node("Neg", [name], [f"{name}_y"]) for name in constants]
    graph = graph_of(
        model(nodes, [], [value(f"{name}_y", None, 0) for name in constants], constants)
    )
    counts = [node.op for node in graph.nodes]
    assert counts.count("constant") == 2


def test_detached_tensors_are_views_of_the_file() -> None:
    """Large raw data leaves the parsed bytes; what is left and what was taken are the file's bytes,
    uncopied."""
    data = relu_chain().SerializeToString()
    parts = detach_tensors(data)
    assert len(parts.model) < 1000
    view = parts.tensors[0]
    assert view.obj is data
    assert bytes(view) == np.arange(3 * 512, dtype="<f4").tobytes()


def test_functions_of_the_model_are_expanded() -> None:
    """Calls of the model's own functions, nested ones too, are translated in place."""
    opset = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    twice = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], opset
    )
    inner = [
        helper.make_node("Twice", ["a"], ["t"], domain="own"),
        helper.make_node("Twice", ["t"], ["b"], domain="own"),
    ]
    four = helper.make_function("own", "FourTimes", ["a"], ["b"], inner, opset)
    source = model(
        [helper.make_node("FourTimes", ["x"], ["y"], domain="own")],
        [value("x", [3])],
        [value("y", [3])],
    )
    source.opset_import.append(opset[1])
    source.functions.extend([twice, four])
    x = np.arange(3, dtype=np.float32)
    assert run_model(source, [x], [4 * x]).kind == "agrees"


def test_function_bodies_of_the_standard_stand_in() -> None:
    """An op without a translation of its own is translated through ONNX's function body."""
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[1])
    x = np.random.RandomState(1).rand(2, 64).astype(np.float32)
    want = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    source = model([node], [value("x", ["n", 64])], [value("y", ["n", 64])])
    assert run_model(source, [x], [want], rtol=1e-4, atol=1e-5).kind == "agrees"


@pytest.mark.parametrize(
    "dtype",
    [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.uint64, np.bool_, np.float16],
)
def test_typed_fields_give_the_same_bytes_as_raw_data(dtype: type[np.generic]) -> None:
    """A tensor that is written element by element has the same digest as one that is written
    raw."""
    array = np.array([0, 1, 1, 0, 1] if dtype is np.bool_ else [0, 1, 100, 3, 7]).astype(dtype)
    raw = numpy_helper.from_array(array, "w")
    typed = helper.make_tensor("w", raw.data_type, array.shape, array.tolist())
    sources = [
        model([helper.make_node("Identity", ["w"], ["y"])], [], [value("y", None, 0)])
        for _ in range(2)
    ]
    for source, tensor in zip(sources, (raw, typed), strict=True):
        source.graph.initializer.append(tensor)
    assert load(sources[0])[0] == load(sources[1])[0]


def test_bools_are_stored_as_zero_and_one() -> None:
    """Code relies on it; a file may hold any byte."""
    tensor = helper.make_tensor("w", 9, [4], bytes([0, 1, 2, 255]), raw=True)
    source = model([helper.make_node("Identity", ["w"], ["y"])], [], [value("y", None, 9)])
    source.graph.initializer.append(tensor)
    store = MemoryStore()
    load(source, store=store)
    assert list(store.constants.values()) == [bytes([0, 1, 1, 1])]


def test_float_type_is_what_the_file_says() -> None:
    """The model's declared element type reaches the graph."""
    graph = graph_of(
        model(
            [helper.make_node("Relu", ["x"], ["y"])], [value("x", [2], 10)], [value("y", [2], 10)]
        )
    )
    assert [str(graph.types[output]) for output in graph.outputs] == ["f16[2]"]
    assert FLOAT != 10
