"""``ingot.Project``: the same data from calls, from a file, and from both."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.project_harness import GLOB, SMALL, parse

import ingot
from ingot_build_rules.making.project.plain import plain

FILE = """\
[project]
name = "camera"
default-targets = ["a"]
cache = "c"

[target.server]
target = "x86-64-v4"

[model.a]
source = "models/a.onnx"
shape.x = [1, 3]
shape.y = "2x2"

[bundle.a]
model = "a"
targets = ["server", "x86-64-v2"]
planner = "best_fit"
output = "out/a.ingot"

[bundle.a.devices]
acc = "null"

[bundle.a.place]
"/b/*" = "acc"
"/a/*" = "host"

[test.a]
bundle = "a"
inputs = "x.npz"
outputs = "y.npz"
tolerance = 1e-3
absolute-tolerance = 1e-6
threads = 2
executor = "vm"
"""


def test_calls_give_the_same_data_as_the_file() -> None:
    """Every key is an argument; paths may be of any type of path."""
    project = ingot.Project(name="camera", default_targets=["a"], cache=Path("c"))
    project.target("server", "x86-64-v4")
    project.model("a", Path("models/a.onnx"), shape={"x": (1, 3), "y": "2x2"})
    project.bundle(
        "a",
        "a",
        targets=["server", "x86-64-v2"],
        planner="best_fit",
        output=Path("out/a.ingot"),
        devices={"acc": "null"},
        place={"/b/*": "acc", "/a/*": "host"},
    )
    project.test(
        "a",
        "a",
        Path("x.npz"),
        "y.npz",
        tolerance=1e-3,
        absolute_tolerance=1e-6,
        threads=2,
        executor="vm",
    )
    assert project.freeze() == parse(FILE)


def test_defaults_are_those_of_the_file() -> None:
    """What is left out is left out."""
    project = ingot.Project()
    project.model("a", source="models/a.onnx")
    project.bundle("a", model="a")
    assert project.freeze() == parse(SMALL)


def test_load_add_and_expand(tmp_path: Path) -> None:
    """A file's project, found from a folder below it, with settings replaced and a bundle more."""
    (tmp_path / "models").mkdir()
    for name in ("b", "a"):
        (tmp_path / "models" / f"{name}.onnx").touch()
    (tmp_path / "ingot.toml").write_text(GLOB)
    project = ingot.Project.load(tmp_path / "models", {"bundle.vision.planner": "best_fit"})
    project.bundle("one", "vision/b", targets=["x86-64-v3"])
    assert project.folder == str(tmp_path)
    expanded = project.expand().project
    assert list(plain(expanded)["bundles"]) == ["one", "vision/a", "vision/b"]
    assert [bundle.options.choices.planner for bundle in expanded.bundles] == [
        "best",
        "best_fit",
        "best_fit",
    ]
    assert ingot.Project.load(tmp_path / "ingot.toml").freeze() == parse(GLOB)


def test_mistakes_of_calls() -> None:
    """The same messages as for the file; a name twice is refused at once."""
    project = ingot.Project()
    project.model("a", "a.onnx")
    with pytest.raises(ingot.UserError) as caught:
        project.model("a", "b.onnx")
    assert str(caught.value) == (
        "model 'a' is declared twice\n  where: ingot.Project\n  why: expected one\n  do: choose another name"
    )
    project.bundle("a", "b", targets="x86-64-v3")
    with pytest.raises(ingot.UserError) as caught:
        project.freeze()
    assert str(caught.value) == (
        "2 problems\n"
        "  where: ingot.Project\n"
        "  why: \n"
        "    ingot.Project: unknown model 'b': expected one of a; declare it with [model.b]\n"
        "    ingot.Project: wrong value of 'targets' in [bundle.a]: expected a list of at least one text, got the text"
        " 'x86-64-v3'; write targets = [\"x86-64-v3\"]\n"
        "  do: correct these"
    )


def test_mistakes_of_a_file_are_found_when_it_is_loaded(tmp_path: Path) -> None:
    """With the path that was given, all at once, those of settings among them."""
    path = tmp_path / "ingot.toml"
    path.write_text(SMALL + "plan = 1\n")
    with pytest.raises(ingot.UserError) as caught:
        ingot.Project.load(path, {"bundle.b.planner": "best"})
    assert caught.value.what == "2 problems"
    assert f"{path}:6: unknown key 'plan'" in caught.value.why


def test_import_ingot_stays_light() -> None:
    """Nothing of projects is imported before ``ingot.Project`` is asked for; other names are still
    unknown."""
    code = (
        "import sys, ingot\n"
        "heavy = ('tomllib', 'difflib', 'ingot_build_rules.making.project', 'ingot_build_rules.tools.workspace')\n"
        "print([name for name in heavy if name in sys.modules], hasattr(ingot, 'Projekt'))\n"
        "print(ingot.Project.__name__, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False\nProject False\n"


def test_a_folder_is_not_read_by_itself(tmp_path: Path) -> None:
    """Who gives a folder with a project file, and declares nothing, is told how to read it."""
    with pytest.raises(ingot.UserError, match="the project is empty") as caught:
        ingot.Project(tmp_path).build()
    assert "project.bundle('a', model='a')" in caught.value.do
    (tmp_path / "ingot.toml").write_text(FILE)
    with pytest.raises(ingot.UserError, match="the project is empty") as caught:
        ingot.Project(tmp_path).build()
    assert caught.value.do.endswith(f"ingot.Project.load({str(tmp_path)!r})")


def test_repr(tmp_path: Path) -> None:
    """Where it is, and what it has."""
    project = ingot.Project(tmp_path)
    assert repr(project) == f"<ingot.Project {tmp_path}: empty>"
    project.bundle("one", "m")
    project.bundle("two", "m")
    project.test("three", "one", "x.npz", "y.npz")
    assert repr(project) == f"<ingot.Project {tmp_path}: bundles one, two; tests three>"
    (tmp_path / "ingot.toml").write_text(FILE)
    read = ingot.Project.load(tmp_path)
    assert repr(read) == f"<ingot.Project {tmp_path}/ingot.toml: bundles a; tests a>"
