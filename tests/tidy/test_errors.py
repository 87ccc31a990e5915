"""One tree of errors: everything that leaves a package on purpose has one base, four parts, an exit
code and a line of the documents."""

from __future__ import annotations

import importlib
import inspect

import pytest
from tests.tidy.source import ROOT, modules

import ingot
import ingot_runtime
from ingot_runtime.ingot_error import IngotError

# exception that never leaves -> who catches it
CAUGHT_INSIDE = {
    "ingot_build_rules.tools.cli.shell.failure.FailedCommand": "the command, which prints its error and its values",
    "ingot_artifacts.store.index.index_disk.IndexRowError": "the index: a row that this program never writes is no row",
    "ingot_artifacts.store.records.RecordError": "who reads records: what is none is left out, or deleted",
    "ingot_build_rules.making.project.read_value.WrongValueError": "the reader of projects, which collects all problems",
    "ingot_compiler.frontend.model.attribute_values.UnsupportedAttribute": "import_model, which collects findings",
    "ingot_compiler.frontend.build.context.Unsupported": "infer_types, which collects findings",
    "ingot_compiler.frontend.model.detach_tensors._Malformed": "the reader of model files",
    "ingot_compiler.frontend.build.control.DivergentTypes": "scope, which moves nodes into the branches",
    "ingot_compiler.frontend.build.scope._Incomplete": "scope: the findings have been collected",
    "ingot_compiler.frontend.model.tensor_data.UnsupportedDtype": "import_model, which collects findings",
    "ingot_compiler.frontend.families.strings.automaton.PatternError": "ops/regex_full_match, which knows the node",
    "ingot_compiler.frontend.families.trees.ensemble.TreeError": "ml_attributes, which knows the node",
    "ingot_compiler.ir.op_type_error.AttributeNamesError": "as OpTypeError",
    "ingot_compiler.ir.op_type_error.OpTypeError": "who knows the node: frontend, verifier, parser, fusion",
    "ingot_runtime.executor.vm.Stop": "the vm: the end of a run",
}


def exception_classes() -> dict[str, type[BaseException]]:
    """Return every exception class of the packages by its full name, found by importing all
    modules."""
    found: dict[str, type[BaseException]] = {}
    for module in modules():
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if (
                    isinstance(value, type)
                    and issubclass(value, BaseException)
                    and value.__module__ == module.name
                ):
                    found[f"{module.name}.{value.__qualname__}"] = value
    return found


CLASSES = exception_classes()
PUBLIC = {name: kind for name, kind in CLASSES.items() if name not in CAUGHT_INSIDE}


def test_all_are_found() -> None:
    """The search sees classes of every package; what is said to be caught inside is there, and not
    of the tree."""
    assert {name.split(".")[0] for name in PUBLIC} == {
        "ingot_artifacts", "ingot_build_rules", "ingot_compiler", "ingot_runtime",
    }  # fmt: skip
    assert set(CAUGHT_INSIDE) <= set(CLASSES)
    assert not [name for name in CAUGHT_INSIDE if issubclass(CLASSES[name], IngotError)]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_one_tree(name: str) -> None:
    """Every error derives from ``IngotError``, those of the loader from ``BundleError`` and no
    others; each is a public name."""
    kind = PUBLIC[name]
    assert issubclass(kind, IngotError)
    of_the_loader = name.startswith("ingot_runtime.") and kind is not IngotError
    assert issubclass(kind, ingot_runtime.BundleError) == of_the_loader
    facade = ingot_runtime if of_the_loader else ingot
    assert kind.__name__ in facade.__all__
    assert getattr(facade, kind.__name__) is kind


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_four_parts(name: str) -> None:
    """Every error is made of what, where, why and do, keeps them as they are, and asks for an exit
    code of the table."""
    kind = PUBLIC[name]
    assert list(inspect.signature(kind).parameters) == ["what", "where", "why", "do"]
    assert issubclass(kind, IngotError)
    error = kind("a", "b", "c", "d")
    assert (error.what, error.where, error.why, error.do) == error.parts == ("a", "b", "c", "d")
    assert str(error) == "a\n  where: b\n  why: c\n  do: d"
    moved = error.at("e")
    assert type(moved) is kind
    assert moved.parts == ("a", "e", "c", "d")
    assert error.exit_code in range(1, 6)


def test_documented() -> None:
    """The table of exit codes names every error in the row of its code and in the column of its
    package, and no other."""
    text = (ROOT / "docs" / "errors" / "README.md").read_text()
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")]
    told = {
        (int(code), package, name.strip())
        for _, code, _, compiler, loader, _ in rows[1:]
        for package, cell in (("ingot", compiler), ("ingot_runtime", loader))
        for name in cell.replace("`", "").split(",")
        if name.strip() and name.strip() != "KeyboardInterrupt"
    }
    bases = (IngotError, ingot_runtime.BundleError)
    assert told == {
        (
            kind.exit_code,
            "ingot_runtime" if name.startswith("ingot_runtime.") else "ingot",
            kind.__name__,
        )
        for name, kind in PUBLIC.items()
        if issubclass(kind, IngotError) and kind not in bases
    }
