"""The visible list of executors.

In: an executor's name, what it is made of. Out: the executor. Not done here: any executor (a module
each, imported when it is asked for), what a build asks for (``BuildSettings``).

The module of an executor has ``open_executor(site)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, cast

from ingot_build_rules.engine.actions.backlog import Backlog
from ingot_build_rules.engine.actions.rule import Rulebook
from ingot_build_rules.engine.actions.values import Values
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_artifacts.store.layer import Layer
    from ingot_build_rules.engine.executors.executor import Executor

LOCAL, LINT = "local", "lint"
FILES = {"local": "local", "lint": "lint"}
"""Name -> its module."""


@dataclass(frozen=True, slots=True)
class Site:
    """What an executor is made of: the rules, their values, the layers of the cache in which these
    lie; a folder for files of the moment; what waits to be submitted; at most so many ``jobs``,
    shared with others as ``makeflags`` say; whom to warn; ``stack``: what is closed when the build
    is; ``code``: folders of our own code."""

    rulebook: Rulebook
    values: Values
    layers: Sequence[Layer]
    temporary: str
    backlog: Backlog
    jobs: int
    makeflags: str
    warn: Callable[[str], None]
    stack: ExitStack
    code: Sequence[str]


def open_executor(name: str, site: Site) -> Executor:
    """Make an executor of the list."""
    module = import_module(f"ingot_build_rules.engine.executors.{FILES[name]}")
    return cast("Executor", module.open_executor(site))
