"""One more option, of one value or of a list of them, is two edits: its row, and what reads it."""

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
from ingot_build_rules.making.options.option_rows import (
    CHOICE_ROWS,
    ROWS,
    BundleKeywords,
    ChoiceKeywords,
    Choices,
    CompileKeywords,
    GivenOptions,
    key,
)
from ingot_build_rules.tools.api.option_arguments import names_options

ABOVE = "\n\nDEFAULTS = Choices()\n"
KEYWORDS = '    """``Choices`` as arguments of Python\'s functions."""\n'
CHOSEN = "    chosen = given_options(choices).choices\n"
FACES = """
import inspect
import json
import ingot
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.reproduce.recorded_options import recorded_options
from ingot_build_rules.making.options.options import make_options

RECORD = {
    "targets": ["x86-64-v3"], "shapes": [], "place": [], "devices": {}, "planner": "best",
    "other_shapes": "general", "strip": False, "swift": json.loads(json.dumps(VALUE)),
}

def said(face, ask):
    try:
        ask()
    except ingot.UserError as error:
        print(f"{face}: {error.what}, {error.where}")

def declared():
    project = ingot.Project(".")
    project.model("a", "m.onnx")
    project.bundle("a", "a", swift=VALUE)
    project.build()

said("compile", lambda: ingot.compile("m.onnx", swift=VALUE))
said("Project", declared)
said("record", lambda: recorded_options(RECORD))
print("recorded:", make_options(swift=QUIET).plain().get("swift"))
print(inspect.signature(ingot.compile).parameters["swift"])
print(ingot.compile.__doc__)
for words in ("compile m.onnx WORDS", "compile m.onnx --swifd", "build"):
    main(words.split())
main(["compile", "--help"])
"""
TRUTH = (
    "bool",
    "bool",
    "OptionRow('be swift', 'whether to be swift')",
    "False",
    {"VALUE": "True", "WORDS": "--swift", "QUIET": "False"},
    "true",
    ("swift: 'bool' = False", "--swift               be swift", "recorded: None"),
)
LIST = (
    "tuple[str, ...]",
    "str | Sequence[str]",
    "OptionRow('be swift', 'whether to be swift', 'texts', metavar='HOW', example='[\"so\"]')",
    "()",
    {"VALUE": "('very', 'so')", "WORDS": "--swift very --swift so", "QUIET": "('not',)"},
    '["very", "so"]',
    ("swift: 'str | Sequence[str]' = ()", "--swift HOW           be swift", "recorded: ['not']"),
)


def test_keywords_are_the_fields() -> None:
    """Those of Python have the names of the rows; those of one value have their types, too."""
    one = {field for field, row in CHOICE_ROWS.items() if not row.is_many}
    hints, given = get_type_hints(Choices), get_type_hints(ChoiceKeywords)
    assert {field: given[field] for field in one} == {field: hints[field] for field in one}
    assert list(CHOICE_ROWS) == list(Choices._fields) == list(given)
    assert set(ROWS) == {*GivenOptions._fields, *Choices._fields} - {"choices"}
    assert CompileKeywords.__annotations__.keys() == set(ROWS)
    keys = {key(field).replace("-", "_") for field in ROWS}
    assert BundleKeywords.__annotations__.keys() == keys


def test_the_signature_has_every_option() -> None:
    """What ``help`` shows of a function that takes them all."""

    def function(model: str, **options: Any) -> None:
        """Do it."""

    named: Any = names_options(function)
    assert list(named.__signature__.parameters) == ["model", *ROWS]


def test_keywords_that_nobody_takes() -> None:
    """Python's own refusal, at the call."""
    project: Any = ingot.Project(".")
    functions: list[tuple[Any, tuple[str, ...], str]] = [
        (ingot.compile, ("m.onnx",), "swift"),
        (project.bundle, ("a", "a"), "swift"),
        (project.bundle, ("a", "a"), "shapes"),
        (project.export, ("a", "a", "library", "dist"), "swift"),
        (project.export, ("a", "a", "module-archive", "dist"), "also"),
    ]
    for function, arguments, name in functions:
        with pytest.raises(TypeError, match=f"got an unexpected keyword argument '{name}'"):
            function(*arguments, **{name: True})


@pytest.mark.parametrize("option", [TRUTH, LIST], ids=["truth value", "list"])
def test_an_option_is_a_row(option: tuple[Any, ...], tmp_path: Path) -> None:
    """Every face takes it, and tells of it."""
    kind, keyword, row, default, values, in_file, shown = option
    field = f"    swift: Annotated[{kind}, {row}] = {default}\n"
    reader = (
        f"    if chosen.swift == {values['VALUE']}:\n"
        "        raise UserError('it is swift', OptionRef('swift', ''), 'it was read', '')\n"
    )
    folder = tmp_path / "build_rules"
    shutil.copytree(ROOT / "build_rules", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, edits in (
        (
            "making/options/option_rows.py",
            {ABOVE: field + ABOVE, KEYWORDS: f"{KEYWORDS}\n    swift: {keyword}"},
        ),
        ("making/options/options.py", {CHOSEN: CHOSEN + reader}),
    ):
        path = folder / "ingot_build_rules" / name
        source = path.read_text(encoding="utf-8")
        for old, new in edits.items():
            assert source.count(old) == 1
            source = source.replace(old, new)
        path.write_text(source, encoding="utf-8")
    (tmp_path / "m.onnx").write_bytes(b"\x08\x09")
    (tmp_path / "ingot.toml").write_text(
        f'[model.a]\nsource = "m.onnx"\n[defaults]\nswift = {in_file}\n[bundle.a]\nmodel = "a"\n'
    )
    faces = FACES
    for name, value in values.items():
        faces = faces.replace(name, value)
    done = subprocess.run(
        [sys.executable, "-c", faces],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
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
        "swift: whether to be swift.",
        "error: it is swift\n  where: --swift\n  why: it was read",
        "did you mean '--swift'?",
        "ingot.toml:5, [bundle.a]\n  why: it was read",
        *shown,
    ):
        assert words in told, f"{words}\n----\n{told}"
