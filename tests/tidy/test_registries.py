"""One new file and one line: every file of a registered folder is in its list, and every entry has
its file."""

from __future__ import annotations

import importlib
import re

import pytest
from tests.tidy.registries import (
    REGISTRIES,
    Registry,
    files_that_name,
    files_that_name_device,
    path_of_device,
    path_of_executor,
    path_of_layer,
    path_of_op,
    path_with_loops,
)
from tests.tidy.source import ROOT, modules

from ingot_artifacts.store import layers
from ingot_build_rules.engine.executors import registry as executors
from ingot_build_rules.tools.cli.shell.verbs import VERBS, module_of, read_verb
from ingot_build_rules.tools.text.stage_text import STAGE_TEXTS
from ingot_build_rules.tools.text.stages import STAGES
from ingot_compiler.frontend.ops import FILES, microsoft, ml, training
from ingot_compiler.ir.op_names import MODULES

CLI_HELPERS = {"entry", "main"}
CLI_ROOMS = {"arguments", "building", "inspecting", "measuring", "quantizing", "shell"}


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.folder)
def test_files_and_lists_agree(registry: Registry) -> None:
    """A file that nobody lists is dead; a listed name without a file does not exist."""
    assert registry.files() == registry.listed()


def test_every_support_source_is_compiled() -> None:
    """A file in C that no other one includes is dead, but for the one that is compiled for
    images."""
    folder = ROOT / "compiler/ingot_compiler/backends/host/support/c"
    sources = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.[ch]")}
    included = {
        name
        for text in sources.values()
        for name in re.findall(r'^#include "(.*)"$', text, re.MULTILINE)
    }
    assert sources.keys() - included == {"support.c"}
    assert included - sources.keys() == {"abi.h"}  # which is made


def test_every_file_of_main_is_used() -> None:
    """A file of LLVM IR that no module of `main` names is dead."""
    folder = ROOT / "compiler/ingot_compiler/backends/host/main"
    texts = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
    assert [
        path.stem for path in (folder / "ll").glob("*.ll") if f'"{path.stem}"' not in texts
    ] == []


def test_rows_of_ops_are_listed_once() -> None:
    """The list says which module an op is in; the module has a row for it, and no other row."""
    for package, listed in (
        ("ingot_compiler.ir.ops", MODULES),
        ("ingot_compiler.frontend.ops", FILES),
        ("ingot_compiler.frontend.ops.microsoft", microsoft.FILES),
        ("ingot_compiler.frontend.ops.ml", ml.FILES),
        ("ingot_compiler.frontend.ops.training", training.FILES),
    ):
        rows = [
            (op.name, module)
            for module in {*listed.values()}
            for op in importlib.import_module(f"{package}.{module}").OPS
        ]
        assert sorted(rows) == sorted(listed.items())


def test_verbs_and_modules_agree() -> None:
    """Every verb has its module, and its arguments; what verbs share lies in rooms."""
    verbs = {module_of(name) for name, _ in VERBS}
    cli = "ingot_build_rules.tools.cli"
    names = {module.name.removeprefix(f"{cli}.") for module in modules(cli)} - {cli}
    assert {name for name in names if "." not in name} - CLI_HELPERS - CLI_ROOMS == verbs
    described = [
        verb
        for name in sorted(names)
        if name.startswith("arguments.")
        for verb in importlib.import_module(f"{cli}.{name}").TAKES
    ]
    assert sorted(described) == sorted(name for name, _ in VERBS)
    assert all(read_verb(name).name == name for name, _ in VERBS)


def test_every_stage_has_a_text() -> None:
    """What ``--to`` offers can be printed."""
    assert tuple(STAGE_TEXTS) == STAGES


def _recipe(heading: str) -> tuple[str, ...]:
    """The files that a section of CONTRIBUTING names, each once, in order."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    listed = re.findall(r"`((?:compiler|build_rules)/[\w/]+\.py)`", section)
    return tuple(dict.fromkeys(path for path in listed if "test" not in path))


def test_the_way_of_gelu_is_as_contributing_says() -> None:
    """CONTRIBUTING lists exactly the files that the registries lead through, in that order."""
    assert _recipe("An op, from ONNX to machine code: Gelu") == path_of_op("Gelu")


def test_the_way_of_softmax_is_as_contributing_says() -> None:
    """For an op with loops of its own, too: the kernel's files are those of the kind that fusion
    gives it."""
    assert _recipe("An op with loops of its own: Softmax") == path_with_loops(
        "Softmax", (2, 3), axis=1
    )


def test_the_way_of_a_device_is_as_contributing_says() -> None:
    """CONTRIBUTING lists exactly the files of a kind of device and its back end, in that order; no
    other code names the kind."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("\n## A device with its back end: null", 1)[1].split("\n## ", 1)[0]
    table = "".join(line for line in section.splitlines() if line.startswith("|"))
    listed = tuple(dict.fromkeys(re.findall(r"`((?:\w+/)+\w+\.(?:py|md)|pyproject\.toml)`", table)))
    assert listed == path_of_device("null")
    naming = files_that_name_device("null")
    assert (
        {"pyproject.toml", "compiler/ingot_compiler/backends/null/backend.py"}
        < naming
        < set(listed)
    )


def test_the_way_of_an_executor_and_a_layer_is_as_contributing_says() -> None:
    """CONTRIBUTING lists the file and the list of each; what the lists name has the functions by
    which it is opened."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("\n## An executor: lint; a layer of a cache: folder", 1)[1]
    table = "".join(line for line in section.split("\n## ")[0].splitlines() if line[:2] == "| ")
    listed = re.findall(r"`((?:\w+/){3}[\w/]*\w+\.py)`", table)
    assert tuple(listed) == (*path_of_executor("lint"), *path_of_layer("folder"))
    for package, files, names in (
        ("ingot_build_rules.engine.executors", executors.FILES, ("open_executor",)),
        ("ingot_artifacts.store", layers.FILES, ("open_layer", "open_blobs")),
    ):
        for stem in files.values():
            module = importlib.import_module(f"{package}.{stem}")
            assert all(callable(getattr(module, name)) for name in names)


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("core", "heading"),
    [
        ("gelu", "An op, from ONNX to machine code: Gelu"),
        ("softmax", "An op with loops of its own: Softmax"),
    ],
)
def test_no_other_file_has_to_know_of_an_op(core: str, heading: str) -> None:
    """Who adds an op as the recipe says has forgotten nothing: beside patterns and ops that are
    written with it, no other file names it."""
    naming = files_that_name(core)
    assert naming
    written_with_it = (
        "/passes/",
        "/frontend/ops/microsoft/",
        "/families/ml/ml_scores.py",
        "/families/attention/attention_heads.py",
        "/families/tensors/experts.py",
    )
    rest = {path for path in naming if not any(part in path for part in written_with_it)}
    assert rest <= set(_recipe(heading))
