"""What is said of a plug-in that breaks its word: four parts that name it, never a traceback."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import pytest
from tests.harness.plugin_harness import FOLDER, chain, compiled, texts

from ingot_build_rules.making.options.plugins import open_plugin, read_plugins
from ingot_compiler.ir.errors import PluginError, UserError
from ingot_compiler.plugins.plugin import Pass, Plugin

CASES = {
    "CLAIM_RAISES": ("claim failed", "line ", "ValueError: no"),
    "CLAIM_NOTHING": ("claim returned something else", "", "a list or a tuple, got NoneType"),
    "CLAIM_TEXTS": ("claim returned something else", "", "expected OpClaim, got str"),
    "CLAIM_BEYOND": ("not offered", "claim relu", "nodes from 0 to 4, got 999"),
    "CLAIM_CONSTANT": ("not offered", "claim weight", "got node 0, constant"),
    "CLAIM_APART": ("cannot be one kernel", "'/relu0' (Relu)", "'/neg1' (Neg) has to run after"),
    "CLAIM_COST": ("wrong claim", "", "a cost in nanoseconds from 0, or None, got 'cheap'"),
    "CLAIM_NAME": ("wrong claim", "", "letters, digits and _, got 'a relu'"),
    "LOWER_RAISES": ("lower failed", "line ", "KeyError"),
    "LOWER_TEXT": ("lower returned something else", "", "expected LoweredGroup, got str"),
    "LOWER_READER": ("wrong steps for relu", "", "expected 1 that differ, got b0, b1"),
    "LOOPS_OTHER": ("phase loops made a wrong program", "", "of the same buffers and scalars"),
    "COMPILE_TEXT": ("compile_kernel returned something else", "", "got (str, str)"),
    "COMPILE_OTHER": ("without its kernel", "", "defines kernel, got another"),
    "LIBRARY_NONE": ("library lacks a function", "called by k_", "defines bad_function, got none"),
    "LIBRARY_TEXT": ("library brought no object", "a.o", "ELF object, got other bytes"),
    "LIBRARY_TWICE": ("there already", "b.c", "bad_function, which a.c of plug-in bad has"),
    "LIBRARY_CALLS": ("library lacks a function", "called by a.c", "defines printf, got none"),
    "LIBRARY_C": ("library failed", "line ", "ValueError: source.c:1"),
    "LIBRARY_WRITES": ("does not fit into an image", "", "writable or relocated data"),
    "GRAPH_MALFORMED": ("phase graph made a wrong graph", "", "expected"),
    "GRAPH_OTHER": ("phase graph made a wrong graph", "", "expected outputs f32"),
}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", CASES)
def test_broken_words(name: str) -> None:
    """What failed, which plug-in, why, and what to do."""
    made = compiled(_with_weight("Relu", "Neg", "Relu"), f"bad_plugins:{name}")
    with pytest.raises(PluginError) as caught:
        made.make()
    what, where, why = CASES[name]
    error = caught.value
    assert what in error.what, error
    assert "plug-in bad" in error.what + error.where, error
    assert where in error.where, error
    assert why in error.why, error
    assert error.do == "correct the plug-in, or build without it"


def _with_weight(*ops: str) -> Any:
    """A chain whose first op reads a weight as well."""
    import numpy as np
    from onnx import numpy_helper

    model = chain(*ops, "Mul")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    model.graph.node[-1].input[1] = "w"
    return model


NAMES = [
    ("accelerator", "a plug-in is not understood", "expected MODULE:TARGET"),
    ("no_such_module:TARGET", "no such plug-in", "Python finds no module no_such_module"),
    ("good_plugins:RELUS", "no such plug-in", "has the targets RELU"),
    ("good_plugins:DEAR,limits=3", "unknown attribute 'limits=3'", "has no attributes"),
    ("good_plugins:RELU,limits=3", "unknown attribute 'limits=3'", "has the attributes limit"),
    ("good_plugins:RELU,limit=many", "wrong value of attribute 'limit'", "a whole number"),
    ("good_plugins:ATTRIBUTES,flag=1", "wrong value of attribute 'flag'", "true or false"),
]


@pytest.mark.parametrize(("text", "what", "why"), NAMES)
def test_names_that_mean_nothing(text: str, what: str, why: str) -> None:
    """The user's mistakes are told with what would have been right."""
    texts()
    with pytest.raises(UserError) as caught:
        read_plugins([text])
    assert (caught.value.what, str(caught.value.where)) == (what, f"--plugin {text}")
    assert why in caught.value.why
    assert caught.value.do


def test_two_plugins_of_one_name() -> None:
    """The same plug-in with other attributes is another one, and names are taken once."""
    with pytest.raises(UserError, match="two plug-ins have one name"):
        read_plugins([*texts("RELU"), "good_plugins:RELU,limit=3"])


def test_what_is_no_plugin() -> None:
    """A name of something else in the module."""
    texts()
    with pytest.raises(PluginError) as caught:
        open_plugin("bad_plugins:NO_PLUGIN")
    assert "expected Plugin, got str" in caught.value.why


def test_a_module_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its import raises is told with the line, also a module that it lacks itself."""
    (tmp_path / "failing_plugin.py").write_text("a = 1\nassert a == 2, 'not two'\n")
    (tmp_path / "lacking_plugin.py").write_text("import no_such_thing_at_all\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(PluginError) as caught:
        read_plugins(["failing_plugin:TARGET"])
    assert "AssertionError: not two (line 2 of failing_plugin.py)" in caught.value.why
    with pytest.raises(PluginError) as caught:
        read_plugins(["lacking_plugin:TARGET"])
    assert "No module named 'no_such_thing_at_all'" in caught.value.why


def test_a_module_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has imported a plug-in does not go on with another one under its name."""
    module = tmp_path / "changing_plugin.py"
    text = (FOLDER / "good_plugins.py").read_text()
    module.write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert read_plugins(["changing_plugin:RELU"])
    module.write_text(text + "\n# changed\n")
    with pytest.raises(UserError) as caught:
        read_plugins(["changing_plugin:RELU"])
    assert caught.value.what == "module changing_plugin of a plug-in has changed"
    del sys.modules["changing_plugin"]


def _function(*_: Any) -> Any:
    return None


def _function_of(number: int) -> Any:
    def inner() -> int:
        return number

    return inner


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"name": 3}, "a plug-in, name", "got 3"),
    ({"name": "a-b"}, "a plug-in, name", "got a-b"),
    ({"claim": _function}, "plug-in a, claim and lower", "got claim alone"),
    ({"library": "text"}, "plug-in a, library", "a function that its module names, got text"),
    ({"library": _function_of(3)}, "plug-in a, library", "a function that its module names"),
    ({"passes": 3}, "plug-in a, passes", "a list of Pass, got 3"),
    ({"passes": [3]}, "plug-in a, passes[0]", "a Pass, got 3"),
    ({"passes": [Pass("later", _function)]}, "passes[0].phase", "one of graph, loops, got later"),  # type: ignore[arg-type]
    ({"passes": [Pass("graph", 3)]}, "plug-in a, passes[0].run", "got 3"),  # type: ignore[arg-type]
    ({"attributes": [3]}, "plug-in a, attributes", "names with their defaults"),
    ({"attributes": {3: 3}}, "plug-in a, attributes", "got 3"),
    ({"attributes": {"a": None}}, "plug-in a, attribute a", "as the default, got None"),
    ({"attributes": {"a": 1.5}}, "plug-in a, attribute a", "got 1.5"),
]


@pytest.mark.parametrize(("parts", "where", "why"), WRONG)
def test_parts_of_another_type(parts: dict[str, Any], where: str, why: str) -> None:
    """A plug-in whose parts are none is refused where it is made, in our words."""
    with pytest.raises(PluginError) as caught:
        cast("Any", Plugin)(**{"name": "a", **parts})
    assert where in caught.value.where
    assert why in caught.value.why
    assert "docs/plugins.md" in caught.value.do
