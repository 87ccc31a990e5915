"""The walks of docs/architecture.md name functions that exist, and pages for developers name tests that
exist."""

from __future__ import annotations

import functools
import importlib
import re

import pytest
from tests.tidy.source import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
BORDERS = sorted(set(re.findall(r"`(ingot\w*(?:\.\w+)+:[\w.]+)`", PAGE)))


def test_there_are_walks() -> None:
    """Four of them, with some borders each."""
    assert len(BORDERS) > 25


@pytest.mark.parametrize("border", BORDERS)
def test_the_function_at_a_border_exists(border: str) -> None:
    """``module:name`` is a function, a method or a class."""
    module, _, name = border.partition(":")
    assert callable(functools.reduce(getattr, name.split("."), importlib.import_module(module)))


@pytest.mark.parametrize("page", ["Makefile", "CONTRIBUTING.md", "docs/architecture.md"])
def test_the_tests_that_a_page_names_exist(page: str) -> None:
    """A path below ``tests`` leads to something; NAME stands for any name."""
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = sorted(set(re.findall(r"(?<![\w/.-])tests/[\w*./-]*[\w*/]", text)))
    assert [path for path in paths if not list(ROOT.glob(path.replace("NAME", "*")))] == []
