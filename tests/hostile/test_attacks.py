"""The table of attacks is whole: whoever adds one says which loaders it is made on."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

import pytest
from tests.hostile.attacks import ATTACKS, EACH
from tests.tidy.source import ROOT


def attacks_of(module: ModuleType) -> dict[str, str]:
    """Name -> source of each test."""
    found = inspect.getmembers(module, inspect.isfunction)
    return {name: inspect.getsource(test) for name, test in found if name.startswith("test_")}


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_has_its_row(name: str) -> None:
    """Each test of a module is in the table, and those on each loader are made on each."""
    found = attacks_of(importlib.import_module(f"tests.hostile.{name}"))
    assert {*found} == {*ATTACKS[name]}
    for test, source in found.items():
        assert ("@attacked\n" in source) == (ATTACKS[name][test] == EACH), test


def test_no_module_is_forgotten() -> None:
    """Each module of tests of a loader has rows."""
    folder = ROOT / "tests" / "hostile"
    paths = [*folder.glob("test_loader_*.py"), *folder.glob("test_bundle_*.py")]
    of_builds = {"test_bundle_record"}
    assert {path.stem for path in paths} - of_builds <= {*ATTACKS}
