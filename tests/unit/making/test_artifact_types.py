"""The list of classes that are made from bytes of the cache, against the annotations of the
rules."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import types
import typing
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import AnyRule
from ingot_build_rules.making.rules.registry import RULEBOOK, RULES
from ingot_build_rules.making.stages.own_code import code_digests
from ingot_build_rules.making.values.artifact_types import ARTIFACT_TYPES

_PLAIN = (str, bytes, bool, int, float, type(None), memoryview)


def _checked_names(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, Any]]:
    """What ``if TYPE_CHECKING:`` imports."""
    for statement in statements:
        if (
            isinstance(statement, ast.If)
            and isinstance(statement.test, ast.Name)
            and statement.test.id == "TYPE_CHECKING"
        ):
            for line in statement.body:
                assert isinstance(line, ast.ImportFrom)
                assert line.module
                module = importlib.import_module(line.module)
                yield from (
                    (alias.asname or alias.name, getattr(module, alias.name))
                    for alias in line.names
                )


@cache
def _names(module: str) -> dict[str, Any]:
    """Everything that an annotation in a module can name."""
    loaded = importlib.import_module(module)
    return {**vars(loaded), **dict(_checked_names(ast.parse(inspect.getsource(loaded)).body))}


def _hints(item: Any) -> dict[str, Any]:
    return typing.get_type_hints(item, _names(item.__module__))


def _classes(hint: Any, found: dict[type, None]) -> None:
    """Add every dataclass that a value of this annotation can contain."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal or hint in (*_PLAIN, Ellipsis):
        return
    if isinstance(
        hint, typing.ForwardRef
    ):  # `typing` leaves the one that is inside of what it names
        return
    if dataclasses.is_dataclass(hint) and hint not in found and origin is None:
        assert isinstance(hint, type)
        found[hint] = None
        hints = _hints(hint)
        for field in dataclasses.fields(hint):
            if field.init:
                _classes(hints[field.name], found)
        return
    if origin is None:
        assert hint in found, f"an annotation that says nothing of classes: {hint}"
        return
    assert origin in (tuple, Artifact, types.UnionType, typing.Union), (
        f"the codec does not keep {hint}"
    )
    for argument in typing.get_args(hint):
        _classes(argument, found)


def _reachable(*hints: Any) -> set[type]:
    found: dict[type, None] = {}
    for hint in hints:
        _classes(hint, found)
    return set(found)


def _inputs_and_output(rule: AnyRule) -> tuple[Any, Any]:
    hints = _hints(rule.compute)
    output = hints.pop("return")
    _, inputs = hints.values()
    return inputs, output


def test_the_list_is_exact() -> None:
    """Every class that inputs or results of a rule can contain is listed with its module, and no
    other."""
    reachable = {kind for rule in RULES for kind in _reachable(*_inputs_and_output(rule))}
    assert {kind.__qualname__: kind.__module__ for kind in reachable} == ARTIFACT_TYPES
    assert len(reachable) == len(ARTIFACT_TYPES), "two classes have one name"


@pytest.mark.parametrize("name", sorted(ARTIFACT_TYPES))
def test_every_listed_class_is_frozen_data(name: str) -> None:
    """A name leads to a frozen dataclass that its module defines: bytes of the cache can make
    nothing else."""
    kind = getattr(importlib.import_module(ARTIFACT_TYPES[name]), name)
    assert (kind.__qualname__, kind.__module__) == (name, ARTIFACT_TYPES[name])
    one = object.__new__(kind)
    for field in dataclasses.fields(one):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, field.name, 1)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_code_of_what_a_rule_reads_is_in_its_key(rule: AnyRule) -> None:
    """A key's code covers the modules of all classes that the inputs can contain, whatever they
    name to be loaded: their methods are the rule's code too."""
    digests = code_digests(None)
    inputs, _ = _inputs_and_output(rule)
    wanted = {f"{kind.__module__.replace('.', '/')}.py" for kind in _reachable(inputs)}
    own, *loaded = RULEBOOK.code_of(rule)
    for other in loaded or [own]:
        assert wanted <= {
            path for module in (own, other) for path, _ in digests.files_of(module)
        }, other
