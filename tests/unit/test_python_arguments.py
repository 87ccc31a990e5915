"""``ingot.compile`` and what it gives, as called from Python: arguments as people write them, errors
in the words of arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.hostile.model_builder import relu_chain

import ingot
import ingot_runtime

SOURCE = relu_chain().SerializeToString()
WRONG: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "targets that are a number": (
        {"targets": 3},
        "argument targets",
        "expected texts, such as ['x86-64-v3', 'x86-64-v4'], got 3",
        "give texts, such as",
    ),
    "targets with a number": ({"targets": ["x86-64-v3", 4]}, "argument targets", "got [", "texts"),
    "shapes without names": (
        {"shapes": (4, 3)},
        "argument shapes",
        "expected a dict, such as {'x': (1, 3, 224, 224)}, got (4, 3)",
        "give a dict",
    ),
    "shapes by position": ({"shapes": {0: (4, 3)}}, "argument shapes", "texts as keys", "give"),
    "sizes that are no numbers": (
        {"shapes": {"x": "4xfour"}},
        "argument shapes['x']",
        "or 1..8x3x224x224, got '4xfour'",
        "write 1x3x224x224, or (1, 3, 224, 224)",
    ),
    "sizes with a name": (
        {"shapes": {"x": ("batch", 3)}},
        "argument shapes['x']",
        "expected sizes such as 1x3x224x224, ?x3x224x224 or 1..8x3x224x224, got 'batch'",
        "write 1x3x224x224",
    ),
    "sizes with a truth value": ({"shapes": {"x": (True, 3)}}, "shapes['x']", "got True", "write"),
    "one number": ({"shapes": {"x": 4}}, "argument shapes['x']", "got 4", "write 1x3"),
    "devices as a text": (
        {"devices": "acc=null"},
        "argument devices",
        "expected a dict, such as {'acc': 'null'}, got 'acc=null'",
        "give a dict",
    ),
    "place as a list": (
        {"place": [("*", "acc")]},
        "argument place",
        "expected a dict, such as {'/layer1/*': 'acc'}",
        "give a dict",
    ),
    "a place that is a number": ({"place": {"*": 1}}, "argument place", "a dict of texts", "give"),
    "no workers": ({"workers": 0}, "argument workers", "a whole number from 1, got 0", "give"),
    "workers as a text": ({"workers": "2"}, "argument workers", "got '2'", "give a whole number"),
    "max_bytes as a text": ({"max_bytes": "2GB"}, "argument max_bytes", "got '2GB'", "give"),
    "check as a path": ({"check": "in.npz"}, "argument check", "True, False or a dict", "give"),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for all of these compilations."""
    return tmp_path_factory.mktemp("arguments")


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_named(case: str) -> None:
    """Each is refused by its name, what was expected, what was got and what to do."""
    arguments, where, why, do = WRONG[case]
    with pytest.raises(ingot.UserError) as caught:
        ingot.compile(SOURCE, **arguments)
    assert where in caught.value.where
    assert why in caught.value.why
    assert do in caught.value.do


def test_texts_are_taken_whole(cache: Path) -> None:
    """A target as one text is one target, and sizes as a text are those sizes."""
    as_texts = ingot.compile(SOURCE, targets="x86-64-v2", shapes={"x": "4x3"}, cache=cache)
    as_tuples = ingot.compile(SOURCE, targets=["x86-64-v2"], shapes={"x": (4, 3)}, cache=cache)
    general = ingot.compile(SOURCE, targets=["x86-64-v2"], cache=cache)
    assert as_texts.digest == as_tuples.digest != general.digest
    with ingot_runtime.load(as_texts.to_bytes()) as session:
        assert session.loaded.variant.target == "x86-64-v2"


def test_an_unknown_stage_is_suggested(cache: Path) -> None:
    """``text`` names the stages, and the one that was probably meant."""
    bundle = ingot.compile(SOURCE, targets="x86-64-v2", cache=cache)
    with pytest.raises(ingot.UserError) as caught:
        bundle.text("fussed")
    assert caught.value.where == "argument stage"
    assert "imported, graph, optimized" in caught.value.why
    assert caught.value.do == "did you mean 'fused'?"
