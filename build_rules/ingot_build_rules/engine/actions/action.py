"""One action of a build, what became of it, and who waits for it.

In: a rule, inputs, a key. Out: ``Action``. Not done here: deciding anything (``scheduler``); what
an executor gets (``action_spec``).
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import field
from typing import Any, Literal

from ingot_build_rules.engine.actions.key import Key
from ingot_build_rules.engine.actions.record import Record
from ingot_build_rules.engine.actions.rule import AnyRule, Timestamp
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(slots=True, eq=False)
class PendingWork:
    """Something that tasks wait for."""

    waiters: list[Task] = field(default_factory=list["Task"])
    done: bool = False
    result: Any = None
    error: BaseException | None = None


@dataclass(slots=True, eq=False)
class Task(PendingWork):
    """A coroutine on its way; ``missing``: how many things it waits for; ``trace``: actions it
    asked for, shared with its parts."""

    coroutine: Coroutine[Any, Any, Any] | None = None
    missing: int = 0
    trace: list[tuple[str, Action]] = field(default_factory=list[tuple[str, "Action"]])


@dataclass(slots=True, eq=False)
class Action(PendingWork):
    """``how``: what became of it. ``where``: its record's place. ``started``: when it began to run.
    ``lost_count``: how often a blob of its inputs was not there.

    ``expected``: a record that running it again must give. ``then``: actions that lacked a blob
    that this one makes.
    """

    number: int = 0
    rule: AnyRule = None  # type: ignore[assignment]
    inputs: Any = None
    key: Key = None  # type: ignore[assignment]
    label: str = ""
    status: Literal["", "hit", "ran", "failed", "stopped"] = ""
    seconds: float = 0.0
    result_bytes: int = 0
    refs: tuple[str, ...] = ()
    reads: tuple[tuple[str, str], ...] = ()
    messages: tuple[str, ...] = ()
    where: bytes = b""
    started: Timestamp = (0, 0)
    lost_count: int = 0
    expected: Record | None = None
    then: list[tuple[Action, str]] = field(default_factory=list[tuple["Action", str]])


class Wait:
    """What a coroutine yields to the scheduler: go on when all of these are done."""

    __slots__ = ("pending",)

    def __init__(self, pending: list[PendingWork]) -> None:
        """Name what to wait for."""
        self.pending = pending

    def __await__(self) -> Any:
        """Suspend."""
        yield self
