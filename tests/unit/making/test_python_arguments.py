"""``ingot.compile`` and what it gives, as called from Python: arguments as people write them,
errors in the words of arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.hostile.model_builder import relu_chain
from tests.tidy.source import ROOT

import ingot
import ingot_runtime
from ingot_build_rules.making.options.export_rows import FIELDS_OF_OPTIONS
from ingot_build_rules.making.options.option_rows import FIELDS
from ingot_build_rules.tools.api import python_errors

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
        "expected a dict, such as {'acc': 'cpu:1'}, got 'acc=null'",
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


def without_rank() -> bytes:
    """A model whose input has no number of dimensions."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    return bytes(helper.make_model(graph).SerializeToString())


def compiled(source: bytes = SOURCE, **options: Any) -> Callable[[Path], object]:
    """How to compile over a cache."""
    return lambda cache: ingot.compile(source, cache=cache, **options)


def over_an_open_cache(cache: Path) -> object:
    """Compile over a cache that anybody may write to."""
    (cache / "open").mkdir(exist_ok=True)
    (cache / "open").chmod(0o777)
    return ingot.compile(SOURCE, cache=cache / "open")


# what is compiled -> what its error says
IN_ARGUMENTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "an unknown input": (compiled(shapes={"X": "4x3"}), "shapes['X']"),
    "sizes against the model": (compiled(shapes={"x": (4, 4)}), "shapes={'x': '4x4'}"),
    "no number of dimensions": (compiled(without_rank()), "give shapes"),
    "an unknown device": (compiled(place={"a=b": "acc"}), "place={'a=b': 'acc'}"),
    "how to declare it": (compiled(place={"*": "acc"}), "declare it with devices={'acc': 'KIND'}"),
    "an unknown kind": (compiled(devices={"acc": "nul"}), "devices={'acc': 'nul'}"),
    "a glob that finds nothing": (compiled(place={"none*": "host"}), "place={'none*': 'host'}"),
    "a limit": (compiled(max_bytes=1), "allow more by max_bytes"),
    "nothing to check on": (compiled(targets="aarch64", check=True), "leave check out"),
    "a cache of others": (over_an_open_cache, "(cache_shared=True)"),
    "another cache": (over_an_open_cache, "(cache=DIR)"),
}


@pytest.mark.parametrize("case", IN_ARGUMENTS)
def test_errors_speak_of_arguments(cache: Path, case: str) -> None:
    """What the command calls by an option is called by the argument, and no option is named."""
    make, expected = IN_ARGUMENTS[case]
    with pytest.raises(ingot.IngotError) as caught:
        make(cache)
    assert expected in str(caught.value)
    assert "--" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_project_in_python_speaks_of_arguments(tmp_path: Path) -> None:
    """What ``build`` raises, and what its report keeps."""
    (tmp_path / "m.onnx").write_bytes(SOURCE)
    project = ingot.Project(tmp_path)
    project.model("m", "m.onnx", shape={"X": (1, 2)})
    project.bundle("m", "m", targets=["x86-64-v2"])
    with pytest.raises(ingot.UserError, match=r"shapes\['X'\]") as caught:
        project.build()
    assert "--" not in str(caught.value)
    (result,) = project.build(keep_going=True).results
    assert "shapes['X']" in str(result.error)
    project.bundle("outside", "m", output="../m.ingot")
    with pytest.raises(ingot.UserError, match=r"\(allow_outside=True\)"):
        project.build()


OF_VERBS = {
    "calibrate", "command", "debug", "decode", "depfile", "detached", "keep", "key", "measure", "public-key",
    "read-only", "selftest", "source", "wait", "weights",
}  # fmt: skip
"""Options of errors that no function of Python can meet."""


def test_every_option_has_its_argument() -> None:
    """Each option that an error refers to has one, but for those of verbs that Python has not."""
    sources = [
        path.read_text(encoding="utf-8")
        for folder in ("build_rules", "compiler", "artifacts")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = {name for text in sources for name in re.findall(r'OptionRef\("([^"]+)"', text)}
    written = set(python_errors.WRITTEN)
    assert named >= written
    assert named - written - FIELDS.keys() - FIELDS_OF_OPTIONS.keys() == OF_VERBS
    assert set(FIELDS.values()) <= set(inspect.signature(ingot.compile).parameters)


def test_files_of_another_kind(tmp_path: Path) -> None:
    """A file that is no model is told by its kind, as by the command."""
    np.savez(tmp_path / "x.npz", x=np.ones(3))
    (tmp_path / "m.pt").write_bytes(b"PK")
    ingot.compile(SOURCE).save(tmp_path / "m.ingot")
    for name, kind in (
        ("x.npz", "it is arrays of numpy"),
        ("m.pt", "it is a file of PyTorch"),
        ("m.ingot", "it is a bundle, which is compiled already"),
    ):
        with pytest.raises(ingot.IngotError, match="not an ONNX model") as caught:
            ingot.compile(tmp_path / name)
        assert caught.value.why == kind
