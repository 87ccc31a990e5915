"""Runs one action in this process, wherever that is: the same function for every executor.

In: an action, or a rule and its inputs; values. Out: ``Outcome``. Not done here: choosing a
process, keys, the cache of results.
"""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Any, TypeVar

from ingot_artifacts.errors import ArtifactError
from ingot_artifacts.store.blobs import BlobDamaged, BlobMissing
from ingot_build_rules.engine.actions.action_spec import ActionSpec
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.rule import AnyRule, Rulebook
from ingot_build_rules.engine.actions.values import Values
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionClause, OptionRef

Value = TypeVar("Value")


@dataclass(slots=True)
class Outcome:
    """What came of an action: ``result`` and the artifacts it names, or an error, or the digest of
    an artifact that was ``lost``; or nothing, because it was ``cancelled``.

    ``reads``: names of what was found while running; ``messages``: for the user.
    """

    result: bytes = b""
    refs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    seconds: float = 0.0
    error: Exception | None = None
    lost: str = ""
    cancelled: bool = False


@dataclass(slots=True)
class RunningAction:
    """The context of one action; ``loadable``: what it may load."""

    values: Values
    loadable: Collection[str] = ()
    reads: dict[str, None] = field(default_factory=dict[str, None])
    messages: list[str] = field(default_factory=list[str])

    def keep(self, value: Value) -> Artifact[Value]:
        """Store a part of the result."""
        return self.values.keep(value)

    def keep_bytes(self, content: bytes | memoryview) -> Artifact[memoryview]:
        """Store bytes."""
        return self.values.keep_bytes(content)

    def load(self, where: str) -> Any:
        """Import what the inputs name."""
        if where not in self.loadable:
            raise LookupError(f"{where!r} is not among the code that the action's inputs may name")
        module, _, attribute = where.partition(":")
        return getattr(importlib.import_module(module), attribute)

    def note(self, name: str) -> None:
        """Remember what the result depends on."""
        self.reads[name] = None

    def warn(self, text: str) -> None:
        """Remember what to tell the user."""
        self.messages.append(text)


def perform_action(action: ActionSpec, rulebook: Rulebook, values: Values) -> Outcome:
    """Run an action; every exception but Ctrl-C becomes an outcome."""
    try:
        rule, inputs = open_action(action, rulebook, values)
    except ActionError as error:
        return Outcome(error=error)
    return perform(rule, inputs, values, rulebook)


def open_action(action: ActionSpec, rulebook: Rulebook, values: Values) -> tuple[AnyRule, object]:
    """Return the rule and the inputs of an action; artifacts in them are loaded by way of
    ``values``.

    Raises:
        ActionError: this program has no such rule in this version, or the inputs are none of its
            own.
    """
    rule = rulebook.by_name.get(action.rule)
    if rule is None or rule.version != action.version:
        got = "no such rule" if rule is None else f"version {rule.version}"
        raise _refused(action, f"expected version {action.version}, got {got}")
    try:
        return rule, values.codec.decode(action.inputs, values)
    except ValueError as error:
        raise _refused(
            action, f"expected inputs that this program encodes, got others: {error}"
        ) from None


def _refused(action: ActionSpec, why: str) -> ActionError:
    do = "run the whole build with one version of Ingot, and leave its files alone meanwhile"
    return ActionError("a process cannot run an action", f"rule {action.rule}", why, do)


def perform(rule: AnyRule, inputs: Any, values: Values, rulebook: Rulebook) -> Outcome:
    """Run ``rule``; every exception but Ctrl-C becomes an outcome."""
    loadable = rulebook.loadable_by(rule)
    context = RunningAction(
        values, [where for where in rule.loaded_by(inputs) if where in loadable]
    )
    started = time.perf_counter()
    try:
        result, refs = values.codec.encode(rule.compute(context, inputs))
    except (BlobMissing, BlobDamaged) as error:
        return Outcome(lost=error.digest)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return Outcome(
            error=_blamed(error, rule, rulebook.errors), seconds=time.perf_counter() - started
        )
    seconds = time.perf_counter() - started
    return Outcome(result, refs, tuple(sorted(context.reads)), tuple(context.messages), seconds)


_REPORT = "repeat it with {} and report it", "report it"


def _blamed(
    error: Exception | SystemExit, rule: AnyRule, errors: Sequence[type[Exception]]
) -> Exception:
    """What rules and the cache raise on purpose stays; anything else is our bug, or the
    machine's."""
    if isinstance(error, Exception) and isinstance(error, (ArtifactError, *errors)):
        return error
    if isinstance(error, MemoryError):
        why = str(error) or "the system refused memory"
        fewer = ("free memory, or use fewer processes (", OptionRef("j", "1"), ")")
        return ActionError("out of memory", f"rule {rule.name}", why, fewer)
    last = traceback.extract_tb(error.__traceback__)[-1]
    what, do = "a bug in Ingot stopped an action", OptionClause(OptionRef("debug"), *_REPORT)
    where = f"rule {rule.name}, {last.name} line {last.lineno}"
    why = f"{type(error).__name__}: {error}".splitlines()[0]
    return ActionError(what, where, why, do).with_traceback(error.__traceback__)
