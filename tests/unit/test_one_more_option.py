"""One more option of one value is two edits: its row, and what reads it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from tests.tidy.source import ROOT

import ingot
from ingot_build_rules.rules.choices import ROWS, ChoiceKeywords, Choices

KEYWORDS = "class ChoiceKeywords(TypedDict, total=False):"
FIELD = "    swift: Annotated[bool, ChoiceRow('be swift', 'whether to be swift')] = False"
ROW = "rules/choices.py", KEYWORDS, f"{FIELD}\n\n\n{KEYWORDS}\n    swift: bool"
CHOSEN = "    chosen = _checked(Choices(**choices))\n"
SAID = "        raise UserError('it is swift', OptionRef('swift', ''), 'it was read', '')\n"
READER = "compilation/options.py", CHOSEN, f"{CHOSEN}    if chosen.swift:\n{SAID}"
FACES = """
import inspect
import ingot
from ingot_build_rules.cli.main import main
from ingot_build_rules.reproduce.recorded_options import recorded_options

RECORD = {
    "targets": ["x86-64-v3"], "shapes": [], "place": [], "devices": {}, "planner": "best",
    "other_shapes": "general", "strip": False, "swift": True,
}

def said(face, ask):
    try:
        ask()
    except ingot.UserError as error:
        print(f"{face}: {error.what}, {error.where}")

def declared():
    project = ingot.Project(".")
    project.model("a", "m.onnx")
    project.bundle("a", "a", swift=True)
    project.build()

said("compile", lambda: ingot.compile("m.onnx", swift=True))
said("Project", declared)
said("record", lambda: recorded_options(RECORD))
print(inspect.signature(ingot.compile).parameters["swift"])
print(ingot.compile.__doc__)
for words in ("compile m.onnx --swift", "compile m.onnx --swifd", "build"):
    main(words.split())
main(["compile", "--help"])
"""


def test_keywords_are_the_fields() -> None:
    """Those of Python have the names and types of the rows."""
    assert get_type_hints(ChoiceKeywords) == get_type_hints(Choices)
    assert list(ROWS) == list(Choices._fields)


def test_keywords_that_nobody_takes() -> None:
    """Python's own refusal, at the call."""
    project: Any = ingot.Project(".")
    functions: list[tuple[Any, tuple[str, ...], str]] = [
        (ingot.compile, ("m.onnx",), "swift"),
        (project.bundle, ("a", "a"), "swift"),
        (project.export, ("a", "a", "library", "dist"), "swift"),
        (project.export, ("a", "a", "module-archive", "dist"), "also"),
    ]
    for function, arguments, name in functions:
        with pytest.raises(TypeError, match=f"got an unexpected keyword argument '{name}'"):
            function(*arguments, **{name: True})


def test_an_option_is_a_row(tmp_path: Path) -> None:
    """Every face takes it, and tells of it."""
    folder = tmp_path / "build_rules"
    shutil.copytree(ROOT / "build_rules", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in (ROW, READER):
        path = folder / "ingot_build_rules" / name
        source = path.read_text(encoding="utf-8")
        assert old in source
        path.write_text(source.replace(old, new, 1), encoding="utf-8")
    (tmp_path / "m.onnx").write_bytes(b"\x08\x09")
    (tmp_path / "ingot.toml").write_text(
        '[model.a]\nsource = "m.onnx"\n[defaults]\nswift = true\n[bundle.a]\nmodel = "a"\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", FACES],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout + done.stderr
    for words in (
        "compile: it is swift, swift",
        "Project: it is swift, ",
        "record: it is swift, ",
        "swift: 'bool' = False",
        "swift: whether to be swift.",
        "error: it is swift\n  where: --swift\n  why: it was read",
        "did you mean '--swift'?",
        "ingot.toml:5, [bundle.a]\n  why: it was read",
        "--swift               be swift",
    ):
        assert words in told, f"{words}\n----\n{told}"
