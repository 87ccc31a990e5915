"""A rule: one step of a build, with the named list of what its result depends on.

In: nothing. Out: ``Rule`` and ``Context``, the two types that a rule's author sees. Not done here: execution
(``naive``), digests of values (``content``), anything about what is being built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Inputs = TypeVar("Inputs")
Output = TypeVar("Output")


class Context(Protocol):
    """What an executor gives to a running rule; the only way to another rule's result."""

    def need(self, rule: Rule[Inputs, Output], inputs: Inputs) -> Output:
        """Return the result of ``rule`` for ``inputs``, and remember that the running rule depends on it."""
        ...

    def need_all(self, rule: Rule[Inputs, Output], inputs: Sequence[Inputs]) -> tuple[Output, ...]:
        """Return the results of ``rule`` for each of ``inputs``, which may be computed together or in parallel."""
        ...


@dataclass(frozen=True, slots=True)
class Rule(Generic[Inputs, Output]):
    """One step of a build.

    ``compute`` is a function of its context and inputs alone. ``ingredients`` names the attributes of the inputs that
    decide the result: they make the key, and an explanation names them. Attributes that are not listed (how many
    processes, where to read bytes that a digest already names) must not change the result. ``version`` grows when
    ``compute`` changes its result. ``compute_all`` is ``compute`` over many inputs, for rules with a faster way than
    one by one. A ``transient`` result is large and used once: executors do not keep it in memory.
    """

    name: str
    version: int
    ingredients: tuple[str, ...]
    compute: Callable[[Context, Inputs], Output]
    compute_all: Callable[[Context, Sequence[Inputs]], Sequence[Output]] | None = None
    transient: bool = False
