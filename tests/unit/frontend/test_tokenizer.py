"""Tokenizer of com.microsoft beside Python's ``re``, and what text classifiers make of its words:
n-grams of rows whose length a run decides, in large pools."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import node
from tests.harness.frontend_harness import MemoryStore, Outcome, translate
from tests.harness.pattern_tables import longest
from tests.unit.frontend.test_strings import agrees, model, texts

import ingot
import ingot_runtime
from ingot_compiler.frontend.families.strings.pattern_search import search_table

AGREES = Outcome("agrees")
TEXT, FLOAT = TensorProto.STRING, TensorProto.FLOAT
TEXTS = ("the quick  brown-fox", "", "Ünï code, 日本語 x", "a b", "  lead", "ab")


def tokens(nodes: list[NodeProto], output: tuple[str, int], shape: Any = ("n",)) -> ModelProto:
    """A model of x, strings, with ops of com.microsoft."""
    made = model(nodes, output, shape=shape)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


def tokenizer(operand: str = "x", **attributes: Any) -> NodeProto:
    """A node that pads by ``#``."""
    given = {"mark": 0, "mincharnum": 1, "pad_value": "#", **attributes}
    made = node("Tokenizer", operand, "y", **given)
    made.domain = "com.microsoft"
    return made


def table_of(rows: list[list[str]]) -> Array:
    """Rows of words, filled up."""
    width = max(map(len, rows))
    filled = [word for row in rows for word in (*row, *"#" * (width - len(row)))]
    return texts(*filled, shape=(len(rows), width))


def words(pattern: str) -> Callable[[str], list[str]]:
    """What ``re`` finds, of characters of ASCII."""
    found = re.compile(pattern, re.ASCII)
    return lambda text: [match[0] for match in found.finditer(text) if match[0]]


def parts(pattern: str) -> Callable[[str], list[str]]:
    """What ``re`` leaves between its matches."""
    return lambda text: [part for part in re.split(pattern, text) if part]


CASES: list[tuple[dict[str, Any], Callable[[str], list[str]]]] = [
    ({"tokenexp": "[a-zA-Z0-9_]+"}, words("[a-zA-Z0-9_]+")),
    ({"tokenexp": "\\b\\w\\w+\\b"}, words("\\b\\w\\w+\\b")),
    # A word may be a shorter one's end, or need bytes that turn out not to follow.
    ({"tokenexp": "a b c|a|x?o"}, words("a b c|a|x?o")),
    # Of the words at one place it is the longest, whatever stands first.
    ({"tokenexp": "a|ab|b *"}, words("ab|a|b *")),
    ({"tokenexp": "\\S+", "mincharnum": 3}, lambda text: [w for w in text.split() if len(w) > 2]),
    ({"separators": [" "]}, parts(" ")),
    ({"separators": ["[ ,]", "-"]}, parts("[ ,-]")),
    ({"separators": ["  +|-"]}, parts("  +|-")),
    ({"separators": [""]}, list),
    ({"separators": [" "], "mark": 1}, lambda text: ["\x02", *filter(None, text.split(" ")), "\x03"]),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "wanted"), CASES)
def test_words(attributes: dict[str, Any], wanted: Callable[[str], list[str]]) -> None:
    """The words of each text, then what fills the row."""
    source = tokens([tokenizer(**attributes)], ("y", TEXT))
    assert agrees(source, texts(*TEXTS), table_of([wanted(text) for text in TEXTS])) == AGREES


def test_no_texts_and_no_words() -> None:
    """Rows without a place."""
    source = tokens([tokenizer(tokenexp="z")], ("y", TEXT), shape=("n", "m"))
    for shape in ((0, 2), (2, 3), (1, 0)):
        x = texts(*["a"] * (shape[0] * shape[1]), shape=shape)
        assert agrees(source, x, texts(shape=(*shape, 0))) == AGREES


PATTERNS = [
    "a*b+",
    "(a|b)*?abb",
    "[^a]é+",
    "a{2,3}",
    "日.本|\\.",
    "\\d+|\\s*",
    "^a\\b",
    "\\Ba",
    "x$|aa",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_longest_matches(pattern: str) -> None:
    """The table finds at each place what is the longest text there that ``re`` takes."""
    table = search_table(pattern)
    draw = np.random.default_rng(len(pattern))
    for _ in range(100):
        text = "".join(draw.choice(list("abé日本 1.x"), draw.integers(0, 7)))
        for start in range(len(text)):
            before = len(text[:start].encode())
            ends = [
                end for end in range(start, len(text) + 1) if _matches(pattern, text, start, end)
            ]
            found = longest(table, text.encode(), before)
            assert found == (len(text[: ends[-1]].encode()) if ends else -1), (text, start)


def _matches(pattern: str, text: str, start: int, end: int) -> bool:
    """Whether a pattern matches a part of a text where it is."""
    exact = re.compile(f"(?:{pattern})(?<=\\A.{{{end}}})", re.ASCII | re.DOTALL)
    return exact.match(text, start) is not None


@pytest.mark.parametrize(("attributes", "why"), [
    ({"tokenexp": "(a)\\1"}, "groupref"), ({"separators": ["a", "b("]}, "unterminated"),
    ({"separators": ["a", "bc"]}, "not a single character"), ({}, "either tokenexp or separators"),
    ({"separators": [""], "mincharnum": 2}, "mincharnum 1"),
])  # fmt: skip
def test_refused(attributes: dict[str, Any], why: str) -> None:
    """Patterns without a table, and attributes that contradict each other."""
    with pytest.raises(ingot.IngotError, match=why):
        translate(tokens([tokenizer(**attributes)], ("y", TEXT)), MemoryStore())


@pytest.mark.broad
def test_counted_words_of_a_large_pool(tmp_path: Path) -> None:
    """Native: pairs of words of rows whose length a run decides, with a weight for each of
    5,000."""
    draw = np.random.default_rng(0)
    pool = [f"w{number}" for number in range(1000)]
    pairs = sorted({(int(a), int(b)) for a, b in draw.integers(0, 1000, (4000, 2))})
    width = len(pool) + len(pairs)
    columns = draw.permutation(width)
    weights = draw.random(width, np.float32)
    grams = node(
        "TfIdfVectorizer", "y", "f", mode="TFIDF", min_gram_length=1, max_gram_length=2,
        max_skip_count=1, ngram_counts=[0, len(pool)], ngram_indexes=columns.tolist(),
        pool_strings=pool + [pool[number] for pair in pairs for number in pair],
        weights=weights.tolist(),
    )  # fmt: skip
    chosen = [[pairs[5][0], pairs[5][1], 7], [*pairs[9], 1, *pairs[9]], []]
    x = texts(*(" ".join(pool[number] for number in row) + " unknown" for row in chosen))
    expected = np.zeros((3, width), np.float32)
    for row, numbers in zip(expected, chosen, strict=True):
        found = [columns[number] for number in numbers]
        for step in (1, 2):
            both = zip(numbers, numbers[step:], strict=False)
            found += [columns[1000 + pairs.index(pair)] for pair in both if pair in pairs]
        np.add.at(row, found, 1)
    source = tokens([tokenizer(separators=[" "]), grams], ("f", FLOAT))
    ingot.compile(source).save(tmp_path / "m.ingot")
    assert np.array_equal(
        ingot_runtime.load(tmp_path / "m.ingot").run({"x": x})["f"], expected * weights
    )
