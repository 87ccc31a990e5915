"""Graphs that contradict themselves, the standard or what Ingot does: one test per refusal, whole
or in its parts."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.harness.frontend_harness import Array
from tests.hostile.model_builder import FLOAT, INT64, graph_of, load, model, relu_chain, value

from ingot_compiler.ir.errors import ModelError, UnsupportedError, UserError
from ingot_runtime.ingot_error import IngotError


def _refusal(source: ModelProto) -> IngotError:
    with pytest.raises(IngotError) as caught:
        graph_of(source)
    return caught.value


def test_nodes_out_of_order_are_sorted() -> None:
    """The order of the file does not matter; ordinals follow the sorted order."""
    source = relu_chain()
    nodes = list(source.graph.node)
    del source.graph.node[:]
    source.graph.node.extend(reversed(nodes))
    imported, names = load(source)
    assert [name for name, _ in names.nodes] == ["/first/relu", "/second/product"]
    assert imported == load(relu_chain())[0]


def test_cycle() -> None:
    """A cycle is shown node by node."""
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], "first"),
        helper.make_node("Neg", ["a"], ["b"], "second"),
    ]
    error = _refusal(model(nodes, [value("x", [2])], [value("b", [2])]))
    assert isinstance(error, ModelError)
    assert error.what == "the graph has a cycle"
    assert "'first' -> 'second'" in error.why or "'second' -> 'first'" in error.why


def test_duplicate_names() -> None:
    """Every tensor has one maker: nodes, inputs and initializers alike."""
    twice = [
        helper.make_node("Neg", ["x"], ["y"], "one"),
        helper.make_node("Abs", ["x"], ["y"], "two"),
    ]
    inputs, outputs = [value("x", [2])], [value("y", [2])]
    for source in (
        model(twice, inputs, outputs),
        model(twice[:1], [*inputs, value("y", [2])], outputs),
        model(twice[:1], [*inputs, *inputs], outputs),
        model(twice[:1], inputs, outputs, {"y": np.ones(2, np.float32)}),
    ):
        error = _refusal(source)
        assert error.what == "a tensor name is defined twice"
        assert "is defined by" in error.why


def test_undefined_input_is_named_with_a_suggestion() -> None:
    """A tensor that nobody makes: who reads it, and what may have been meant."""
    error = _refusal(
        model(
            [helper.make_node("Neg", ["hiden"], ["y"], "n")],
            [value("hidden", [2])],
            [value("y", [2])],
        )
    )
    assert str(error).splitlines() == [
        "a node reads a tensor that no node computes",
        "  where: node 'n' (Neg)",
        "  why: no tensor is called 'hiden'",
        "  do: did you mean 'hidden'?",
    ]


def test_output_that_nobody_makes() -> None:
    """Named, too."""
    error = _refusal(
        model([helper.make_node("Neg", ["x"], ["y"])], [value("x", [2])], [value("z", [2])])
    )
    assert error.what == "no node computes an output"
    assert "'z'" in error.where


@pytest.mark.parametrize("change", [-4, 4])
def test_tensor_with_wrong_number_of_bytes(change: int) -> None:
    """Bytes against shape, small and large (large tensors take another way through the
    importer)."""
    for count in (4, 4096):
        tensor = TensorProto(
            name="w", data_type=FLOAT, dims=[count], raw_data=b"\0" * (4 * count + change)
        )
        source = model(
            [helper.make_node("Add", ["x", "w"], ["y"])],
            [value("x", [count])],
            [value("y", [count])],
        )
        source.graph.initializer.append(tensor)
        error = _refusal(source)
        assert error.what == f"a tensor has too {'few' if change < 0 else 'many'} bytes"
        assert f"expected {4 * count} bytes" in error.why


def test_typed_field_with_too_few_elements() -> None:
    """The same for tensors that are not raw."""
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[4], float_data=[1.0, 2.0])
    source = model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [4])], [value("y", [4])]
    )
    source.graph.initializer.append(tensor)
    assert _refusal(source).what == "a tensor has too few elements"


def _with_tensor(tensor: TensorProto) -> ModelProto:
    """A model that returns one tensor of its own."""
    output = helper.make_tensor_value_info("y", tensor.data_type, None)
    source = model([helper.make_node("Identity", ["w"], ["y"])], [], [output])
    source.graph.initializer.append(tensor)
    return source


@pytest.mark.parametrize("number", [-129, 256, 1000])
def test_element_outside_of_its_type(number: int) -> None:
    """A zero point of 1000 was 24."""
    tensor = TensorProto(name="w", data_type=TensorProto.INT8, dims=[1], int32_data=[number])
    error = _refusal(_with_tensor(tensor))
    assert error.what == "a tensor has an element outside of its type"
    assert f"expected numbers in [-128, 256) for i8[1], got {number}" in error.why


@pytest.mark.parametrize("dims", [[3], [0], [-1], [2, 2], []])
def test_strings_that_contradict_their_shape(dims: list[int]) -> None:
    """Two strings where a shape says another number of them were a vector of two."""
    tensor = TensorProto(
        name="w", data_type=TensorProto.STRING, dims=dims, string_data=[b"a", b"b"]
    )
    error = _refusal(_with_tensor(tensor))
    assert error.what == "a tensor of strings contradicts its shape"
    assert f"for {dims}, got 2" in error.why


def test_petabyte_initializer() -> None:
    """Dimensions that promise a petabyte are compared with the bytes, not allocated."""
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[1 << 25, 1 << 25], raw_data=b"\0" * 16)
    source = model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [4])], [value("y", None)]
    )
    source.graph.initializer.append(tensor)
    assert _refusal(source).what == "a tensor has too few bytes"


@pytest.mark.parametrize("op", ["ConstantOfShape", "Expand", "Tile", "Range"])
def test_petabyte_made_by_a_node(op: str) -> None:
    """A small constant that asks for a petabyte is refused at compile time, by the node's name."""
    huge = np.array([1 << 25, 1 << 25], np.int64)
    ends = {
        name: np.array(number, np.int64)
        for name, number in (("zero", 0), ("end", 1 << 50), ("one", 1))
    }
    constants: dict[str, Array] = {"shape": huge, "x": np.ones((1, 1), np.float32), **ends}
    operands = {"ConstantOfShape": ["shape"], "Range": ["zero", "end", "one"]}.get(
        op, ["x", "shape"]
    )
    dtype = INT64 if op == "Range" else FLOAT
    node = helper.make_node(op, operands, ["y"], "huge")
    error = _refusal(model([node], [], [value("y", None, dtype)], constants))
    assert error.what == "a tensor is too large"
    assert error.where == f"node 'huge' ({op})"
    assert f"got {1 << (53 if op == 'Range' else 52)} " in error.why


def test_negative_dimension_of_a_tensor() -> None:
    """Sizes below zero are no sizes."""
    source = model(
        [helper.make_node("Add", ["x", "w"], ["y"])], [value("x", [4])], [value("y", None)]
    )
    source.graph.initializer.append(TensorProto(name="w", data_type=FLOAT, dims=[-1], raw_data=b""))
    assert _refusal(source).what == "a tensor has a negative dimension"


def test_everything_unsupported_is_listed_at_once() -> None:
    """One error, exit code 3: every node with op, domain, opset, dtype and reason."""
    nodes = [
        helper.make_node("ImageDecoder", ["x"], ["a"], "decoded"),
        helper.make_node("Relu", ["x"], ["b"], "fine"),
        helper.make_node("Fancy", ["x"], ["c"], "own", domain="com.example"),
        helper.make_node("Relux", ["x"], ["d"], "misspelled"),
        helper.make_node("Cast", ["s"], ["e"], "text", to=FLOAT),
    ]
    inputs = [value("x", [1, 2, 3]), value("s", [1], TensorProto.COMPLEX64)]
    source = model(nodes, inputs, [value(name, None) for name in "abcde"])
    source.opset_import.append(helper.make_opsetid("com.example", 3))
    error = _refusal(source)
    assert isinstance(error, UnsupportedError)
    assert error.exit_code == 3
    assert error.why.splitlines()[1:] == [
        "    input 's': dtype complex64: an input type that Ingot has not",
        "    node 'decoded': op ImageDecoder, domain ai.onnx, opset 20, dtype f32: no translation",
        "    node 'own': op Fancy, domain com.example, opset 3, dtype f32: no translation for an op of this domain",
        "    node 'misspelled': op Relux, domain ai.onnx, opset 20, dtype f32: ONNX has no such op; did you mean Relu?",
    ]


def test_unsupported_forms_are_listed_at_once() -> None:
    """What only types or attributes show is collected over all nodes, too."""
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], "to_complex", to=TensorProto.COMPLEX64),
        helper.make_node(
            "RandomUniformLike", ["x"], ["c"], "draws", seed=1.0, dtype=TensorProto.COMPLEX64
        ),
        helper.make_node("Add", ["c", "c"], ["d"], "behind"),
    ]
    error = _refusal(
        model(
            nodes,
            [value("x", [1, 2, 4])],
            [value("a", None, 14), value("d", None)],
        )
    )
    assert isinstance(error, UnsupportedError)
    assert "'to_complex'" in error.why
    assert "'draws'" in error.why
    assert "behind" not in error.why


def test_opset_newer_than_the_standard() -> None:
    """An opset of the future is unsupported, and the message says which are read."""
    error = _refusal(
        model(
            [helper.make_node("Relu", ["x"], ["y"])],
            [value("x", [2])],
            [value("y", [2])],
            opset=999,
        )
    )
    assert isinstance(error, UnsupportedError)
    assert "this build reads opsets 1 to" in error.why


def test_old_opset_with_other_meaning() -> None:
    """Below opset 7 an op is read as that opset means it; where its types contradict that, it is
    named."""
    inputs, outputs = [value("x", [2, 3, 4])], [value("y", [2, 3, 4])]
    graph_of(model([helper.make_node("Relu", ["x"], ["y"])], inputs, outputs, opset=6))
    graph_of(model([helper.make_node("Add", ["x", "x"], ["y"])], inputs, outputs, opset=6))
    along = helper.make_node("Add", ["x", "w"], ["y"], broadcast=1, axis=2)
    error = _refusal(model([along], inputs, outputs, {"w": np.ones((3, 4), np.float32)}, opset=6))
    assert isinstance(error, ModelError)
    assert "a second operand that begins at axis 2" in error.why


def test_shapes_that_contradict() -> None:
    """The node is named with its operands, expected and got."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "/head/product")
    constants = {"w": np.ones((4, 2), np.float32)}
    error = _refusal(model([node], [value("x", [2, 3])], [value("y", None)], constants))
    assert isinstance(error, ModelError)
    assert error.where == "node '/head/product' (MatMul)"
    assert "MatMul(f32[2, 3], f32[4, 2])" in error.why
    assert "expected" in error.why
    assert "got" in error.why


def test_dtypes_that_contradict() -> None:
    """Mixed element types are refused by name."""
    inputs = [value("x", [2]), value("i", [2], INT64)]
    error = _refusal(
        model([helper.make_node("Add", ["x", "i"], ["y"], "sum")], inputs, [value("y", None)])
    )
    assert isinstance(error, ModelError)
    assert "'sum'" in error.where


def test_output_against_its_declaration() -> None:
    """An output of another element type than its node computes is refused: callers rely on it."""
    error = _refusal(
        model(
            [helper.make_node("Neg", ["x"], ["y"], "n")],
            [value("x", [2])],
            [value("y", [2], INT64)],
        )
    )
    assert error.what == "an output contradicts its declared type"
    assert error.where == "output 'y' of node 'n' (Neg)"


@pytest.mark.parametrize(
    ("node", "what"),
    [
        (helper.make_node("Conv", ["x"], ["y"], "c"), "a node has the wrong number of operands"),
        (
            helper.make_node("Relu", ["x"], ["y", "z"], "c"),
            "a node has the wrong number of results",
        ),
        (helper.make_node("Conv", ["x", ""], ["y"], "c"), "a node lacks an operand"),
        (helper.make_node("Softmax", ["x"], ["y"], "c", axes=1), "a node has an unknown attribute"),
        (
            helper.make_node("Softmax", ["x"], ["y"], "c", axis=1.0),
            "an attribute is of the wrong kind",
        ),
        (helper.make_node("Cast", ["x"], ["y"], "c"), "a node lacks an attribute"),
    ],
)
def test_node_against_its_schema(node: object, what: str) -> None:
    """Counts of operands and results, and attributes, are checked before any translation."""
    error = _refusal(model([node], [value("x", [1, 2, 4])], [value("y", None)]))  # type: ignore[list-item]
    assert error.what == what
    assert "'c'" in error.where


def test_domain_without_opset() -> None:
    """A node of a domain that the model does not import is the model's mistake."""
    node = helper.make_node("Fancy", ["x"], ["y"], domain="com.example")
    assert (
        _refusal(model([node], [value("x", [2])], [value("y", None)])).what
        == "a node's domain has no opset version"
    )


@pytest.mark.parametrize(
    ("shapes", "do"),
    [({"X": (2, 3)}, "did you mean 'x'?"), ({"weights": (1,)}, "the inputs are 'x'")],
)
def test_shape_for_an_unknown_input(shapes: dict[str, tuple[int, ...]], do: str) -> None:
    """--shape NAME is checked against the inputs, with a suggestion."""
    with pytest.raises(UserError) as caught:
        load(relu_chain(), shapes)
    assert caught.value.exit_code == 1
    assert caught.value.do == do


@pytest.mark.parametrize("shape", [(2, 4), (2,), (2, 3, 1), (2, (1, 3)), (2, "3..4")])
def test_shape_against_the_model(shape: tuple[int, ...]) -> None:
    """--shape may fix what the model leaves open, nothing else."""
    with pytest.raises(UserError, match="a shape contradicts the model") as caught:
        load(relu_chain(), {"x": shape})
    assert "expected" in caught.value.why
    assert "the model declares 'x' as [" in caught.value.do
    assert "inspect" not in caught.value.do


def test_shape_gives_one_name_two_sizes() -> None:
    """One dimension name has one size over all inputs."""
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    source = model(nodes, [value("a", ["n"]), value("b", ["n"])], [value("y", ["n"])])
    with pytest.raises(UserError, match="contradicts"):
        load(source, {"a": (2,), "b": (3,)})


_BATCHES = model(
    [helper.make_node("Add", ["a", "b"], ["y"])],
    [value("a", ["n", "m"]), value("b", ["n", "m"])],
    [value("y", None)],
)


@pytest.mark.parametrize(
    ("profiles", "words"),
    [
        ([{"a": "2x?", "b": "3x?"}], ("contradicts the model", "2, as another input has 'n'", "got 3")),
        ([{"a": "1..8x?", "b": "1..9x?"}], ("contradicts the model", "1..8", "got 1..9")),
        ([{"a": "2x3"}, {"b": "2x3"}], ("given twice", "--shape b=2x3", "leave one")),
        ([{"a": "?x3"}, {"a": "2x3"}], ("never used", "m = 3", "first")),
        ([{"a": "1..8x?"}, {"a": "2..3x?"}], ("never used", "n = 1 to 8", "first")),
        ([{"a": "1..8x?"}, {"a": "4..9x?"}], ("ranges overlap", "n = 1 to 8 and n = 4 to 9", "4..8")),
        ([{"a": "0x3"}], ("has no elements", "expected 1 or more", "write ?")),
        ([{"a": "2x?"}, {"c": "2x?"}], ("no input 'c'", "expected one of 'a', 'b'", "the inputs are 'a', 'b'")),
    ],
)  # fmt: skip
def test_profiles_that_contradict(
    profiles: list[dict[str, object]], words: tuple[str, ...]
) -> None:
    """Themselves, the model or each other; the user's words, in four parts."""
    with pytest.raises(UserError) as caught:
        load(_BATCHES, profiles)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_profiles_in_an_order_of_preference() -> None:
    """What lies inside another comes first; what is apart in one size may overlap in another; what
    names nothing is the general version."""
    profiles = [{"a": "2x3"}, {"a": "?x3"}, {"a": "1..8x4"}, {"a": "4..9x5"}, {"b": "?x?"}]
    imported, _ = load(_BATCHES, profiles)
    found = [", ".join(map(str, profile)) for profile in imported.profiles]
    assert found == [
        "s0 = 2, s2 = 2, s1 = 3, s3 = 3", "s1 = 3, s3 = 3",
        "s0 = 1 to 8, s2 = 1 to 8, s1 = 4, s3 = 4", "s0 = 4 to 9, s2 = 4 to 9, s1 = 5, s3 = 5",
    ]  # fmt: skip


def test_shapes_of_an_input_without_dimensions() -> None:
    """Their number comes from the user; a size that all shapes have is the model's."""
    source = model([helper.make_node("Neg", ["a"], ["y"])], [value("a", None)], [value("y", None)])
    imported, names = load(source, [{"a": "2x3"}, {"a": "4x3"}])
    assert [str(kind) for kind in imported.inputs] == ["f32[s0, 3]"]
    assert names.symbols == (("s0", "a.0"),)
    assert len(imported.profiles) == 2
    with pytest.raises(UserError, match="contradicts the model"):
        load(source, [{"a": "2x3"}, {"a": "4"}])


def test_a_size_of_zero_in_the_model_is_explained() -> None:
    """Some exporters write 0 where they mean any size."""
    source = model([helper.make_node("Neg", ["a"], ["y"])], [value("a", [0])], [value("y", None)])
    with pytest.raises(UserError, match="contradicts the model") as caught:
        load(source, {"a": (3,)})
    assert "without elements" in caught.value.do


def test_placement_that_matches_nothing() -> None:
    """--place GLOB is checked against the nodes, with a suggestion."""
    with pytest.raises(UserError, match="a placement matches no node") as caught:
        load(relu_chain(), place=[("/frist/relu", "acc")])
    assert caught.value.do == "did you mean '/first/relu'?"


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Transpose", ["x"], ["y"], "n", perm=[0, 0, 1]),
        helper.make_node("Flatten", ["x"], ["y"], "n", axis=9),
        helper.make_node("Split", ["x"], ["y", "z"], "n", axis=1, num_outputs=3),
        helper.make_node("Einsum", ["x"], ["y"], "n", equation="ij->i"),
        helper.make_node("MaxPool", ["x"], ["y"], "n", kernel_shape=[0]),
        helper.make_node("MaxPool", ["x"], ["y"], "n", kernel_shape=[2, 2]),
        helper.make_node("AveragePool", ["x"], ["y"], "n", kernel_shape=[2], pads=[1]),
        helper.make_node("DepthToSpace", ["x"], ["y"], "n", blocksize=2),
        helper.make_node("Trilu", ["s"], ["y"], "n"),
        helper.make_node("Concat", ["x", "s"], ["y"], "n", axis=0),
        helper.make_node("Gather", ["s", "s"], ["y"], "n"),
        helper.make_node("GlobalAveragePool", ["s"], ["y"], "n"),
        helper.make_node("Gemm", ["x", "x"], ["y"], "n"),
        helper.make_node("MatMul", ["s", "s"], ["y"], "n"),
        helper.make_node("BatchNormalization", ["s", "s", "s", "s", "s"], ["y"], "n"),
        helper.make_node("GroupNormalization", ["s", "s", "s"], ["y"], "n", num_groups=0),
        helper.make_node("DepthToSpace", ["x"], ["y"], "n", blocksize=0),
        helper.make_node("LayerNormalization", ["s", "s"], ["y"], "n"),
    ],
    ids=lambda node: node.op_type,
)
def test_attributes_that_contradict_the_operand(node: object) -> None:
    """A wrong axis, permutation, count or rank is one of our errors and names the node."""
    inputs = [value("x", [1, 3, 4]), value("s", [])]
    error = _refusal(model([node], inputs, [value("y", None)]))  # type: ignore[list-item]
    assert "'n'" in error.where
