"""Globs over models: what they find, how it is called, and what has to be watched for new files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.harness.project_harness import GLOB, SMALL, lister, parse

from ingot_build_rules.making.project.expand import expand
from ingot_build_rules.making.project.selection import Selection, select
from ingot_build_rules.making.project.wildcards import Match, find_files
from ingot_build_rules.tools.workspace.project_files import (
    find_project,
    folder_lister,
    read_project_file,
)
from ingot_compiler.ir.errors import UserError

TREE = (
    "models/b.onnx", "models/a.onnx", "models/a.txt", "models/.hidden.onnx", "models/B.ONNX", "models/a.onnx.d/x.onnx",
    "models/bert/model.onnx", "models/gpt/model.onnx", "models/gpt/onnx/model_q8.onnx", "models/.git/model.onnx",
    "top.onnx", "/data/1.onnx",
)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "folders", "matches"),
    [
        ("models/*.onnx", ["models"], [("models/a.onnx", "a"), ("models/b.onnx", "b")]),
        ("./models//[a-b].onnx", ["models"], [("models/a.onnx", "a"), ("models/b.onnx", "b")]),
        ("models/?.txt", ["models"], [("models/a.txt", "a")]),
        ("models/.*.onnx", ["models"], [("models/.hidden.onnx", ".hidden")]),
        (
            "models/*/model.onnx",
            ["models", "models/a.onnx.d", "models/bert", "models/gpt"],
            [("models/bert/model.onnx", "bert"), ("models/gpt/model.onnx", "gpt")],
        ),
        (
            "models/**/m*.onnx",
            ["models", "models/a.onnx.d", "models/bert", "models/gpt", "models/gpt/onnx"],
            [
                ("models/bert/model.onnx", "bert/model"),
                ("models/gpt/model.onnx", "gpt/model"),
                ("models/gpt/onnx/model_q8.onnx", "gpt/onnx/model_q8"),
            ],
        ),
        ("models/bert/**", ["models/bert"], [("models/bert/model.onnx", "bert/model"[5:])]),
        ("*.onnx", ["."], [("top.onnx", "top")]),
        ("/data/*", ["/data"], [("/data/1.onnx", "1")]),
        ("absent/*/*.onnx", ["absent"], []),
    ],
)
def test_find_files(pattern: str, folders: list[str], matches: list[tuple[str, str]]) -> None:
    """As a shell: no hidden files, case counts, only files; stems are what wildcards matched; every
    folder is noted."""
    found = find_files(pattern, lister(TREE))
    assert found.matches == tuple(Match(*match) for match in matches)
    assert list(found.folders) == folders


def test_links_to_folders_are_not_searched_deeply() -> None:
    """``**`` could go round in circles; a single ``*`` follows a link."""
    listed = lister(TREE, links=("models/gpt",))
    assert [match.stem for match in find_files("models/**/model.onnx", listed).matches] == ["bert"]
    assert [match.stem for match in find_files("models/*/model.onnx", listed).matches] == [
        "bert",
        "gpt",
    ]


def test_everything_over_a_glob_is_repeated() -> None:
    """Bundles and tests of a model that stands for many stand for as many, each with its own
    paths."""
    text = GLOB + (
        'output = "out/{stem}/m.ingot"\n[test.t]\nbundle = "vision"\ninputs = "data/{stem}.npz"\noutputs = "y.npz"\n'
        '[bundle.vision-b]\nmodel = "vision/b"\n[test.u]\nbundle = "vision/a"\ninputs = "x.npz"\noutputs = "y.npz"\n'
    )
    expansion = expand(parse(text), lister(TREE))
    project = expansion.project
    assert [(spec.name, spec.source) for spec in project.models] == [
        ("vision/a", "models/a.onnx"),
        ("vision/b", "models/b.onnx"),
    ]
    assert [(spec.name, spec.model, spec.output, spec.line) for spec in project.bundles] == [
        ("vision-b", "vision/b", "dist/vision-b.ingot", 11),
        ("vision/a", "vision/a", "out/a/m.ingot", 4),
        ("vision/b", "vision/b", "out/b/m.ingot", 4),
    ]
    assert [(spec.name, spec.bundle, spec.inputs, spec.outputs) for spec in project.tests] == [
        ("t/a", "vision/a", "data/a.npz", "y.npz"),
        ("t/b", "vision/b", "data/b.npz", "y.npz"),
        ("u", "vision/a", "x.npz", "y.npz"),
    ]
    assert [(glob.pattern, glob.folders) for glob in expansion.globs] == [
        ("models/*.onnx", ("models",))
    ]


def test_a_name_that_stands_for_many_selects_them() -> None:
    """``ingot build vision`` builds all of them, ``vision/a`` one; so do default targets."""
    project = expand(
        parse('[project]\ndefault-targets = ["vision"]\n' + GLOB), lister(TREE)
    ).project
    assert select(project) == select(project, ["vision"]) == Selection(("vision/a", "vision/b"), ())
    assert (
        select(project, ["vision/a"])
        == select(project, ["dist/vision/a.ingot"])
        == Selection(("vision/a",), ())
    )


def test_nothing_to_expand() -> None:
    """A project without globs stays as it is; no folder is listed."""
    expansion = expand(parse(SMALL), lister(()))
    assert (expansion.project, expansion.globs) == (parse(SMALL), ())


def test_folders_on_the_disk(tmp_path: Path) -> None:
    """The lister tells files, folders and links apart; what is no folder has no entries."""
    (tmp_path / "models" / "sub").mkdir(parents=True)
    (tmp_path / "models" / "a.onnx").touch()
    (tmp_path / "models" / "link").symlink_to("sub")
    (tmp_path / "models" / "broken").symlink_to("nowhere")
    listed = folder_lister(str(tmp_path))
    kinds = {entry.name: (entry.is_folder, entry.is_link) for entry in listed("models")}
    assert kinds == {
        "a.onnx": (False, False),
        "sub": (True, False),
        "link": (True, True),
        "broken": (False, True),
    }
    assert listed("models/a.onnx") == listed("absent") == ()
    assert [entry.name for entry in listed(".")] == ["models"]


def test_the_project_file_is_found_from_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for other build tools: here, else in the nearest folder above; relative if the start
    is."""
    below = tmp_path / "models" / "deep"
    below.mkdir(parents=True)
    (tmp_path / "ingot.toml").write_text(SMALL)
    assert find_project(str(below)) == str(tmp_path / "ingot.toml")
    monkeypatch.chdir(below)
    assert find_project() == os.path.join("..", "..", "ingot.toml")
    monkeypatch.chdir(tmp_path)
    assert find_project() == find_project("models") == "ingot.toml"
    (below / "ingot.toml").write_text(SMALL)
    assert find_project(str(below)) == str(below / "ingot.toml")


def test_no_project_file(tmp_path: Path) -> None:
    """The message says where it was looked for."""
    with pytest.raises(UserError) as caught:
        find_project(str(tmp_path))
    assert str(caught.value) == (
        "no project file\n"
        f"  where: {tmp_path}\n"
        "  why: expected ingot.toml in this folder or in one above it, got none\n"
        "  do: write one for the models here with `ingot init`, or name its folder with -C DIR"
    )
    with pytest.raises(UserError, match="no such folder"):
        find_project(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("content", "what"),
    [(None, "no such project file"), (b"a = 1\n# \xff\n", "the project file is no text")],
)
def test_project_files_that_cannot_be_read(
    tmp_path: Path, content: bytes | None, what: str
) -> None:
    """Missing, or of some other encoding, with the line."""
    path = tmp_path / "ingot.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_project_file(str(path))
    assert caught.value.what == what
    assert caught.value.where == (str(path) if content is None else f"{path}:2")


def test_a_folder_is_no_project_file(tmp_path: Path) -> None:
    """The path of a folder where a file is expected."""
    with pytest.raises(UserError, match="the project file is a folder"):
        read_project_file(str(tmp_path))
