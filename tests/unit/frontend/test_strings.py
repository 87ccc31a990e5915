"""Strings as inputs, outputs and constants, and the ops on them, beside Python's own: in the
interpreter and in machine code."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.frontend_harness import MemoryStore, Outcome, run_model, translate
from tests.harness.pattern_tables import accepts

import ingot
import ingot_runtime
from ingot_compiler.frontend.families.strings.automaton import PatternError, automaton
from ingot_compiler.frontend.families.strings.letters import changes_of
from ingot_compiler.ir.errors import UnsupportedError

AGREES = Outcome("agrees")
TEXT, I64, BOOL = TensorProto.STRING, TensorProto.INT64, TensorProto.BOOL
WORDS = [
    "",
    "a",
    "Straße",
    "日本語",
    "ÄÖÜ é",
    "the",
    "THE",
    "x" * 40,
    "a,b,,c",
    "  two  words ",
    "ǆ\u2003ß",
]


def texts(*items: Any, shape: tuple[int, ...] | None = None) -> Array:
    """An array of str."""
    found = np.empty(len(items), object)
    found[:] = items
    return found.reshape(shape or (len(items),))


def model(
    nodes: list[NodeProto], *outputs: tuple[str, int], shape: Any = ("n",), **constants: Any
) -> ModelProto:
    """x, strings of a shape, to some outputs; constants may be strings."""
    made = make_model(
        nodes, [tensor("x", shape, TEXT)], [tensor(name, None, kind) for name, kind in outputs]
    )
    for name, value in constants.items():
        array = np.asarray(value)
        kind: int
        flat: Any
        kind, flat = (
            (TEXT, [str(item).encode() for item in array.ravel()])
            if array.dtype.kind in "UO"
            else (I64, array.ravel().tolist())
        )
        made.graph.initializer.append(helper.make_tensor(name, kind, array.shape, flat))
    made.opset_import.append(helper.make_opsetid("ai.onnx.ml", 4))
    return made


def ml(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node of ai.onnx.ml."""
    made = node(op, inputs, outputs, **attributes)
    made.domain = "ai.onnx.ml"
    return made


def agrees(source: ModelProto, x: Array, *expected: Any) -> Outcome:
    """One call in the interpreter."""
    return run_model(source, [x], [np.asarray(each) for each in expected])


@pytest.mark.broad
@pytest.mark.parametrize("case", ["LOWER", "UPPER", "NONE"])
@pytest.mark.parametrize("is_case_sensitive", [0, 1])
def test_normalised(case: str, is_case_sensitive: int) -> None:
    """Each character for itself; stop words by all their bytes, in either case where it does not
    count."""
    changes: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}
    change = changes[case]
    stop = "straße" if not is_case_sensitive and case != "UPPER" else "Straße"
    attributes: dict[str, Any] = {
        "case_change_action": case,
        "is_case_sensitive": is_case_sensitive,
        "stopwords": ["the", stop, "not there"],
    }
    source = model([node("StringNormalizer", "x", "y", **attributes)], ("y", TEXT))
    gone = ["the", stop] if is_case_sensitive else ["the", "THE", "Straße"]
    expected = ["".join(map(change, word)) for word in WORDS if word not in gone]
    assert agrees(source, texts(*WORDS), texts(*expected)) == AGREES
    assert agrees(source, texts("the"), texts("")) == AGREES


@pytest.mark.parametrize(("case", "count", "digest"), [
    ("LOWER", 1433, "f1d003b61487adac"), ("UPPER", 1525, "63de7f47108b06b2"),
])  # fmt: skip
def test_letters_are_those_of_one_unicode(case: str, count: int, digest: str) -> None:
    """The tables are the same with every Python, and so are bundles."""
    table = changes_of(case)
    assert (len(table), hashlib.sha256(repr(table).encode()).hexdigest()[:16]) == (count, digest)


@pytest.mark.parametrize("delimiter", ["", ",", "aa", "ab", "語"])
@pytest.mark.parametrize("limit", [None, 0, 1])
def test_split(delimiter: str, limit: int | None) -> None:
    """Between delimiters from the front, or words between white space of Unicode; with a limit, the
    rest stays whole."""
    given: dict[str, Any] = {"delimiter": delimiter} if delimiter else {}
    given |= {} if limit is None else {"maxsplit": limit}
    source = model([node("StringSplit", "x", "y n", **given)], ("y", TEXT), ("n", I64))
    words = [*WORDS, "aaaa aaa", "abab", "語日語"]
    parts = [word.split(delimiter or None, -1 if limit is None else limit) for word in words]
    most = max(map(len, parts))
    rows = [each + [""] * (most - len(each)) for each in parts]
    expected = texts(*(part for row in rows for part in row), shape=(len(words), most))
    assert agrees(source, texts(*words), expected, list(map(len, parts))) == AGREES


def test_joined_and_compared() -> None:
    """With broadcasting, and with strings that the model holds; of equal and of other lengths."""
    nodes = [node("StringConcat", "x t", "y"), node("Equal", "x t", "e"), node("Equal", "x x", "s")]
    source = model(nodes, ("y", TEXT), ("e", BOOL), ("s", BOOL), shape=("n", 1), t=["", "é", "the"])
    column = texts(*WORDS, shape=(len(WORDS), 1))
    row = ["", "é", "the"]
    both = texts(*(word + end for word in WORDS for end in row), shape=(len(WORDS), 3))
    equal = [[word == end for end in row] for word in WORDS]
    assert agrees(source, column, both, equal, np.ones_like(column, bool)) == AGREES


def test_moved() -> None:
    """What moves elements moves strings; shapes are numbers; a branch and a sequence hold them."""
    branch = {
        "then_branch": helper.make_graph([node("Identity", "x", "p")], "t", [], [tensor("p", None, TEXT)]),
        "else_branch": helper.make_graph([node("Concat", "x t", "q", axis=0)], "e", [], [tensor("q", None, TEXT)]),
    }  # fmt: skip
    nodes = [
        node("Concat", "x t", "a", axis=0), node("Gather", "a i", "b", axis=0),
        node("Shape", "b", "s"), node("Size", "x", "n"), node("Equal", "n one", "c"),
        node("If", "c", "y", **branch), node("Unsqueeze", "y zero", "m"), node("Transpose", "m", "w"),
        node("SplitToSequence", "x", "q"), node("SequenceAt", "q one", "l"),
    ]  # fmt: skip
    outputs = [("b", TEXT), ("s", I64), ("w", TEXT), ("l", TEXT)]
    source = model(nodes, *outputs, t=["é", "t"], i=[[1, -1], [0, 2]], one=1, zero=[0])
    b = texts("z", "t", "日", "é", shape=(2, 2))
    w = texts("日", "z", "é", "t", shape=(4, 1))
    assert agrees(source, texts("日", "z"), b, [2, 2], w, texts("z")) == AGREES


def test_labels() -> None:
    """Strings to numbers and strings, and back: the last of equal keys counts, a default elsewhere."""
    keys = ["the", "日本語", "the", "x" * 40]
    nodes = [
        ml("LabelEncoder", "x", "a", keys_strings=keys, values_int64s=[1, 2, 3, 4], default_int64=-7),
        ml("LabelEncoder", "x", "b", keys_strings=keys, values_strings=["p", "é", "r", ""], default_string="?"),
        ml("LabelEncoder", "a", "c", keys_int64s=[3, 2], values_strings=["three", "zwei"]),
        ml("CategoryMapper", "x", "d", cats_strings=["a", "the"], cats_int64s=[5, 6]),
        ml("CategoryMapper", "d", "e", cats_strings=["a", "the"], cats_int64s=[5, 6], default_string="none"),
    ]  # fmt: skip
    source = model(nodes, ("a", I64), ("b", TEXT), ("c", TEXT), ("d", I64), ("e", TEXT))
    x = ["the", "THE", "日本語", "日本", "x" * 40, "x" * 41, "a", ""]
    a = [3, -7, 2, -7, 4, -7, -7, -7]
    b = texts(*({3: "r", 2: "é", 4: ""}.get(number, "?") for number in a))
    c = texts(*({3: "three", 2: "zwei"}.get(number, "_Unused") for number in a))
    d = [{"a": 5, "the": 6}.get(word, -1) for word in x]
    e = texts(*({5: "a", 6: "the"}.get(number, "none") for number in d))
    assert agrees(source, texts(*x), a, b, c, d, e) == AGREES


@pytest.mark.sweep(4)
@pytest.mark.parametrize("labels", [["a", "日本語", "é"], ["", "a", "日本語"], ["x"]])
def test_few_labels_of_many_numbers(tmp_path: Path, labels: list[str]) -> None:
    """What the loader decodes once for each label, and what it decodes one by one where a label
    without bytes begins where another one does."""
    node = ml("LabelEncoder", "x", "y", keys_int64s=[1, 2, 3][: len(labels)], values_strings=labels)
    source = model([node], ("y", TEXT))
    source.graph.input[0].CopyFrom(tensor("x", ["n", 2], I64))
    x = np.arange(400).reshape(200, 2) % (len(labels) + 1)
    wanted = [["_Unused", *labels][number] for number in x.ravel()]
    ingot.compile(source).save(tmp_path / "m.ingot")
    y = ingot_runtime.load(tmp_path / "m.ingot").run({"x": x})["y"]
    assert y.tolist() == texts(*wanted, shape=x.shape).tolist()


def test_strings_of_several_kinds(tmp_path: Path) -> None:
    """Text goes in at once; what is mixed with bytes, or has the character that parts it, one by
    one."""
    source = model([node("Identity", "x", "y")], ("y", TEXT))
    ingot.compile(source).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    zeros = (["a\0", "b"], ["\0"], ["a\0b", "", "日\0"], ["", "a\0"])
    for given in (
        ["a", "", "bc"],
        ["a", b"b"],
        ["日", "a"],
        [b"a", "日".encode()],
        [""],
        [],
        *zeros,
    ):
        x = texts(*given)
        wanted = [item.decode() if isinstance(item, bytes) else item for item in given]
        assert session.run({"x": x})["y"].tolist() == wanted


MANY: list[Array] = [
    np.array([f"n{index}" for index in range(100)]),
    np.array([f"n{index}" for index in range(200)])[::-2],
    np.array([f"n{index}" for index in range(100)]).astype(">U5"),
    np.array([*"ab", "日本語é"] * 40),
    np.array(["a\0b", "", "\0a"] * 40),
    np.array(["", "abc"] * 50, object),
    np.array(["", "日", "a\0", "\0"] * 50, object),
    np.array(["", "a" * 1000] + [""] * 98),
    np.array(["b" * 1000] * 100),
    np.array([""] * 100),
]


@pytest.mark.parametrize("x", MANY, ids=range(len(MANY)))
def test_many_strings(tmp_path: Path, x: Array) -> None:
    """The padding of numpy's strings goes in as it is, and texts come out together: not where a
    character is no byte, has the number that parts them, or they are long."""
    source = model([node("StringConcat", "x x", "y")], ("y", TEXT))
    ingot.compile(source).save(tmp_path / "m.ingot")
    y = ingot_runtime.load(tmp_path / "m.ingot").run({"x": x})["y"]
    assert y.tolist() == [2 * item for item in x.tolist()]


def test_counted_words() -> None:
    """Grams of strings, as those of the numbers that stand for them."""
    attributes: dict[str, Any] = {
        "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
        "ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], "pool_strings": ["é", "b", "b", "é"],
    }  # fmt: skip
    source = model([node("TfIdfVectorizer", "x", "y", **attributes)], ("y", 1), shape=[4])
    assert agrees(source, texts("b", "é", "b", "é"), np.array([2, 2, 2], np.float32)) == AGREES


def test_classes_that_are_strings() -> None:
    """The label of a classifier is one of the strings that the file lists."""
    attributes: dict[str, Any] = {
        "coefficients": [1.0, -1.0], "intercepts": [0.0, 0.0], "classlabels_strings": ["ja", "nein"],
        "multi_class": 0, "post_transform": "NONE",
    }  # fmt: skip
    source = model([ml("LinearClassifier", "f", "y s", **attributes)], ("y", TEXT), ("s", 1))
    source.graph.input[0].CopyFrom(tensor("f", [3, 1]))
    x = np.array([[1.0], [-2.0], [3.0]], np.float32)
    assert agrees(source, x, texts("ja", "nein", "ja"), np.hstack([x, -x])) == AGREES


PATTERNS = ["", "a*b+", "(a|b)*?abb", "[^a]é+", "a{2,3}", "(?i)ab[c-e]", "日.本|\\.", "[é-日]{2}", "\\d+|\\s*",
            "(?s)a.c", "^a\\b.*$", "\\Ba", "\\W[\\wé.-]{0,25}"]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns(pattern: str) -> None:
    """A table says what Python's ``re`` says of every text."""
    table, wanted = automaton(pattern), re.compile(pattern, re.ASCII)
    draw = np.random.default_rng(len(pattern))
    for _ in range(400):
        text = "".join(draw.choice(list("abcéAB日本 1\n.x"), draw.integers(0, 6)))
        assert accepts(table, text.encode()) == bool(wanted.fullmatch(text)), text


@pytest.mark.sweep(5)
@pytest.mark.parametrize(("pattern", "why"), [
    ("(a)\\1", "groupref"), ("(?=a)b", "assert"), ("a(", "unterminated"), ("(?i)[é]", "beyond ASCII"),
    ("a{2000}", "repetitions"), ("(a|b)*a(a|b){14}", "4096 states"), ("(?m)^a", "at"),
])  # fmt: skip
def test_patterns_without_a_table(pattern: str, why: str) -> None:
    """Each has a reason, which the refusal of the node tells."""
    with pytest.raises(PatternError, match=why):
        automaton(pattern)
    source = model([node("RegexFullMatch", "x", "y", pattern=pattern)], ("y", BOOL))
    with pytest.raises(UnsupportedError, match=why):
        translate(source, MemoryStore())


@pytest.mark.broad
def test_compiled(tmp_path: Path) -> None:
    """Native and stepped, with any number of strings; arrays of str objects, of numpy's own strings
    and of bytes give the same; what a session tells."""
    nodes = [
        node("StringNormalizer", "x", "u", case_change_action="UPPER"),
        node("StringConcat", "u t", "y"),
        node("RegexFullMatch", "x", "m", pattern="[a-z]*"),
        ml("LabelEncoder", "x", "l", keys_strings=["the", "日本語"], values_int64s=[1, 2]),
    ]
    ingot.compile(model(nodes, ("y", TEXT), ("m", BOOL), ("l", I64), t=["!"])).save(
        tmp_path / "m.ingot"
    )
    for executor in ("aot", "vm"):
        session: Any = ingot_runtime.load(tmp_path / "m.ingot", executor=executor)
        for words in (WORDS, ["the"], []):
            for given in (
                texts(*words),
                np.array(words, str),
                np.array([word.encode() for word in words], object),
            ):
                got = session.run({"x": given})
                want = ["".join(map(str.upper, word)) + "!" for word in words] if words else ["!"]
                assert got["y"].tolist() == want
                assert got["m"].tolist() == [bool(re.fullmatch("[a-z]*", word)) for word in words]
                assert got["l"].tolist() == [
                    {"the": 1, "日本語": 2}.get(word, -1) for word in words
                ]
    assert (str(session.inputs[0]), session.inputs[0].dtype) == ("x: string[n]", "str")
    for wrong, why in (
        (texts("a\ud800"), "surrogates"),
        (texts(b"\xff"), "utf-8"),
        (texts("a", 1), "expected str"),
        (texts("日".encode()[:1], "日".encode()[1:]), "utf-8"),
        (np.ones(2), "expected str"),
    ):
        with pytest.raises(
            ingot_runtime.InputError, match=f"(?s)input 'x' is not an array of strings.*{why}"
        ):
            session.run({"x": wrong})
    with pytest.raises(ingot_runtime.InputError, match="wrong rank of input 'x'"):
        session.run({"x": texts("a", shape=(1, 1))})


@pytest.mark.broad
def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both commands read and write strings and lists as arrays; a bundle is checked against the
    interpreter when it is made."""
    from ingot_build_rules.tools.cli.main import main
    from ingot_runtime.command import main as loader_main

    nodes = [
        node("StringNormalizer", "x", "y", case_change_action="UPPER"),
        node("SequenceInsert", "s x", "t"),
    ]
    source = model(nodes, ("y", TEXT))
    source.graph.input.append(helper.make_tensor_sequence_value_info("s", TEXT, ["m"]))
    source.graph.output.append(helper.make_tensor_sequence_value_info("t", TEXT, ["m"]))
    bundle, given, made = (str(tmp_path / name) for name in ("m.ingot", "in.npz", "out.npz"))
    (tmp_path / "m.onnx").write_bytes(source.SerializeToString())
    words = np.array(["é", "the"])
    feed: dict[str, Any] = {"x": words, "s[0]": words[:1], "s[1]": words}
    np.savez(given, **feed)
    assert main(["compile", str(tmp_path / "m.onnx"), "-o", bundle, "--check", given]) == 0
    for run in (main, loader_main):
        assert run(["run", bundle, "--inputs", given, "--outputs", made]) == 0
        found = np.load(made)
        assert found["y"].tolist() == ["É", "THE"]
        assert [found[f"t[{at}]"].tolist() for at in range(3)] == [
            ["é"],
            ["é", "the"],
            ["é", "the"],
        ]
        assert run(["run", bundle, "--inputs", given]) == 0
    assert "'THE'" in capsys.readouterr().out


def test_refusals() -> None:
    """Low-bit floats of strings, ops on numbers, and strings of a file that are no UTF-8, each by name."""
    for nodes, why in (
        ([node("Cast", "x", "y", to=19)], "a cast of strings to f8e5m2"),
        ([node("Neg", "x", "y")], "strings in the place of numbers"),
        ([node("Constant", "", "y", value_strings=[b"\xff"])], "no UTF-8"),
    ):
        with pytest.raises(UnsupportedError, match=why):
            translate(model(nodes, ("y", 1)), MemoryStore())
