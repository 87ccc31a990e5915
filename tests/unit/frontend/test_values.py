"""Sequences and optionals that a run decides, as inputs, outputs, and what branches and loops carry:
beside ONNX's reference, in the interpreter and in machine code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator
from tests.harness.codegen_harness import Array
from tests.harness.frontend_harness import Outcome, run_model

import ingot
import ingot_runtime
from ingot_runtime.executor.values import ValueSession

HEAD = '<ir_version: 9, opset_import: ["" : 20]>\n'
AGREES = Outcome("agrees")
ELEMENTS: list[Array] = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.zeros((0, 3), np.float32),
    -np.ones((4, 3), np.float32),
]
ADDED = np.full((1, 3), 7, np.float32)


def model(text: str) -> ModelProto:
    """A model in ONNX's own text."""
    return parser.parse_model(HEAD + text)


def expected(source: ModelProto, values: dict[str, Any]) -> list[Any]:
    """What ONNX's reference gives."""
    evaluator: Any = ReferenceEvaluator(source)
    return list(evaluator.run(None, values))


def agrees(source: ModelProto, values: dict[str, Any]) -> Outcome:
    """Beside the reference."""
    return run_model(source, list(values.values()), expected(source, values))


EVERY = """m (seq(float[n,3]) s, float[k,3] x, int64 i) =>
 (float[a,3] e, seq(float[b,3]) put, seq(float[b,3]) last, seq(float[b,3]) gone, seq(float[b,3]) popped,
  int64 length, float[c,3] rows) {
 e = SequenceAt(s, i)
 put = SequenceInsert(s, x, i)
 last = SequenceInsert(s, x)
 gone = SequenceErase(s, i)
 popped = SequenceErase(gone)
 length = SequenceLength(popped)
 rows = ConcatFromSequence<axis = 0>(put)
}"""


@pytest.mark.parametrize("position", [0, 2, -3])
def test_positions_that_are_inputs(position: int) -> None:
    """Taken, inserted and erased there, counted from the front and from the back."""
    values = {"s": ELEMENTS, "x": ADDED, "i": np.array(position)}
    assert agrees(model(EVERY), values) == AGREES


@pytest.mark.broad
def test_compiled(tmp_path: Path) -> None:
    """The same in machine code, native and stepped, from one call to the next; a position outside is
    refused with the node."""
    source = model(EVERY)
    ingot.compile(source).save(tmp_path / "m.ingot")
    for executor in ("aot", "vm"):
        session: Any = ingot_runtime.load(tmp_path / "m.ingot", executor=executor)
        for elements in (ELEMENTS, ELEMENTS[:2]):
            values: dict[str, Any] = {"s": elements, "x": ADDED, "i": np.array(1)}
            for got, want in zip(
                session.run(values).values(), expected(source, values), strict=True
            ):
                both = [(got, want)]
                if isinstance(want, list):
                    both = list(zip(got, cast("list[Array]", want), strict=True))
                assert all(np.array_equal(*pair) for pair in both)
        with pytest.raises(
            ingot_runtime.InputError, match=r"a position in \[-len\(s\), len\(s\)\)"
        ):
            session.run({"s": ELEMENTS[:2], "x": ADDED, "i": np.array(2)})
    assert str(session.inputs[0]) == "s: sequence of f32[?]"
    with pytest.raises(ingot_runtime.InputError, match="cannot bind"):
        session.bind()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_joined_along_an_axis(axis: int) -> None:
    """Elements of several sizes along it; stacked where they are alike."""
    sizes = (2, 1, 3)
    shapes = [[size if at == axis % 3 else 2 for at in range(3)] for size in sizes]
    parts = [np.random.default_rng(1).random(shape).astype(np.float32) for shape in shapes]
    source = model(
        f"m (seq(float[a,b,c]) s) => (float[d,e,f] y) {{ y = ConcatFromSequence<axis = {axis}>(s) }}"
    )
    assert agrees(source, {"s": parts}) == AGREES
    text = f"m (seq(float[a,b]) s) => (float[d,e,f] y) {{ y = ConcatFromSequence<axis = {axis}, new_axis = 1>(s) }}"
    assert agrees(model(text), {"s": [parts[0][0], parts[0][1] * 2]}) == AGREES


@pytest.mark.parametrize("split", [np.array(2), np.array([1, 0, 3])])
@pytest.mark.parametrize("axis", [0, 1])
def test_split_by_sizes_that_are_inputs(axis: int, split: Array) -> None:
    """Equal parts, the last of which is smaller, and parts of their own sizes; of a size that is
    open."""
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    shape = "n" if split.ndim else ""
    text = f"m (float[a,b] x, int64[{shape}] k) => (seq(float) y) {{ y = SplitToSequence<axis = {axis}>(x, k) }}"
    source = model(text)
    if not split.ndim:
        del source.graph.input[1].type.tensor_type.shape.dim[:]
    assert agrees(source, {"x": x, "k": split}) == AGREES
    one = model(
        "m (float[a,b] x) => (seq(float) y) { y = SplitToSequence<axis = 1, keepdims = 0>(x) }"
    )
    assert agrees(one, {"x": x}) == AGREES


def test_rows_that_are_repeated_as_often_as_a_run_says() -> None:
    """``torch.repeat_interleave`` of a tensor, as PyTorch's exporter writes it: sizes of the parts
    decide how many dimensions the results of Expand have, and are known though their number is
    not."""
    source = model("""m (float[n,3] x, int64[n] k) => (float[d,3] y) {
 shape = Shape(k)
 ones = ConstantOfShape<value = int64[1] {1}>(shape)
 rows = SplitToSequence<axis = 0>(x, ones)
 counts = SplitToSequence<axis = 0>(k, ones)
 zero = Constant<value = int64 {0}>()
 length = Gather(shape, zero)
 go = Constant<value = bool {1}>()
 none = SequenceEmpty()
 parts = Loop(length, go, none) <body = b (int64 t, bool c, seq(float) q) => (bool d, seq(float) r) {
  d = Identity(c)
  one = Constant<value = int64[1] {1}>()
  width = Constant<value = int64[1] {3}>()
  row = SequenceAt(rows, t)
  count = SequenceAt(counts, t)
  tall = Unsqueeze(row, one)
  wanted = Concat<axis = 0>(one, count, width)
  wide = Expand(tall, wanted)
  flat = Constant<value = int64[2] {-1, 3}>()
  p = Reshape(wide, flat)
  r = SequenceInsert(q, p) }>
 y = ConcatFromSequence<axis = 0>(parts)
}""")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert agrees(source, {"x": x, "k": np.array([2, 1, 3, 1])}) == AGREES


def test_sizes_that_all_parts_have_are_known() -> None:
    """The axes that were not split, and parts of size 1 without their axis: a product needs them."""
    text = """m (float[a,4] x, int64[n] k, int64 i) => (float[b,2] y, float[c] z) {
 w = Constant<value = float[4,2] {1, 2, 3, 4, 5, 6, 7, 8}>()
 s = SplitToSequence<axis = 0>(x, k)
 p = SequenceAt(s, i)
 y = MatMul(p, w)
 t = SplitToSequence<axis = 0, keepdims = 0>(x)
 r = SequenceAt(t, i)
 z = MatMul(r, w)
}"""
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    values = {"x": x, "k": np.array([2, 3]), "i": np.array(1)}
    assert agrees(model(text), values) == AGREES


def test_a_loop_that_collects() -> None:
    """A trip count that is an input; elements of growing sizes behind those of an input, and an empty
    sequence to begin with."""
    body = """<body = b (int64 t, bool c, seq(float) q) => (bool d, seq(float) r) {
  d = Identity(c)
  one = Constant<value = int64 {1}>()
  zero = Constant<value = int64[1] {0}>()
  u = Add(t, one)
  w = Unsqueeze(u, zero)
  p = Slice(x, zero, w)
  r = SequenceInsert(q, p) }>"""
    text = f"m (int64 k, bool go, float[n] x, seq(float[a]) s) => (seq(float) y, seq(float) z) {{ y = Loop(k, go, s) {body}\n e = SequenceEmpty()\n z = Loop(k, go, e) {body} }}"
    values = {
        "k": np.array(3), "go": np.array(True), "x": np.arange(5, dtype=np.float32),
        "s": [np.ones(2, np.float32)],
    }  # fmt: skip
    assert agrees(model(text), values) == AGREES


@pytest.mark.parametrize("given", [True, False])
def test_optional_inputs_and_outputs(given: bool) -> None:  # a parameter of the test
    """None where there is nothing; what it holds decides a branch."""
    source = model("""m (optional(float[n]) o) => (optional(float[n]) same, bool has, float[k] y) {
 same = Identity(o)
 has = OptionalHasElement(o)
 y = If(has) <then_branch = t () => (float[n] a) { g = OptionalGetElement(o) a = Neg(g) },
  else_branch = e () => (float[1] b) { b = Constant<value = float[1] {5.0}>() }>
}""")
    value = np.arange(3, dtype=np.float32) if given else None
    wanted = [value, np.array(given), -value if value is not None else np.full(1, 5, np.float32)]
    assert run_model(source, [value], wanted) == AGREES


def test_branches_that_give_sequences() -> None:
    """Of other lengths, and of elements of another rank; one is the input."""
    source = model("""m (bool c, seq(float[n]) s) => (seq(float) y) {
 y = If(c) <then_branch = t () => (seq(float) a) { a = Identity(s) },
  else_branch = e () => (seq(float) b) {
   u = Constant<value = float {1.0}>()
   v = Constant<value = float[2] {1.0, 2.0}>()
   b = SequenceConstruct(u, v) }>
}""")
    for condition in (True, False):
        elements = [np.ones(2, np.float32), np.zeros(3, np.float32)]
        assert agrees(source, {"c": np.array(condition), "s": elements}) == AGREES


def _no_length(values: dict[str, Any]) -> None:
    values["s"] = ELEMENTS[0]


def _other_rank(values: dict[str, Any]) -> None:
    values["s"] = [*ELEMENTS, np.zeros(3, np.float32)]


def _other_dtype(values: dict[str, Any]) -> None:
    values["s"] = [*ELEMENTS, np.zeros((3, 3))]


def _not_there(values: dict[str, Any]) -> None:
    del values["s"]


def _unknown(values: dict[str, Any]) -> None:
    values["t"] = values.pop("s")


def _ragged(values: dict[str, Any]) -> None:
    values["s"] = [[[1.0], [1.0, 2.0]]]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_no_length, r"input 's' is not a list"),
        (_other_rank, r"wrong rank of an element of input 's'(?s:.*)element 3"),
        (
            _other_dtype,
            r"wrong dtype of an element of input 's'(?s:.*)expected float32, got float64",
        ),
        (_not_there, r"missing input 's'"),
        (_unknown, r"no input 't'"),
        (_ragged, r"an element of input 's' is not an array"),
    ],
)
def test_values_that_do_not_fit(change: Any, text: str, session: ValueSession) -> None:
    """Each is an error that names the input, and the element."""
    values: dict[str, Any] = {"s": list(ELEMENTS), "x": ADDED, "i": np.array(0)}
    change(values)
    with pytest.raises(ingot_runtime.InputError, match=text):
        session.run(values)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> ValueSession:
    """A session of a model of a sequence, a tensor and a number."""
    path = tmp_path_factory.mktemp("values") / "m.ingot"
    text = "m (seq(float[n,3]) s, float[k,3] x, int64 i) => (float[a,3] e) { e = SequenceAt(s, i) }"
    source = model(text)
    del source.graph.input[1:]
    unread = [
        helper.make_tensor_value_info("x", 1, ["k", 3]),
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
    ]
    source.graph.input.extend(unread)
    ingot.compile(source).save(path)
    found = ingot_runtime.load(path)
    assert isinstance(found, ValueSession)
    return found
