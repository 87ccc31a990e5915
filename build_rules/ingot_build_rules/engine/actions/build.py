"""What the author of a build sees: coroutines ask for results, whoever runs them.

In: rules and inputs. Out: results. Not done here: running (``scheduler`` with a cache and
processes, ``naive`` without).

A coroutine that waits for an action is suspended, and others go on: which actions there are may
depend on the results of earlier ones.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Inputs, Output, Rule
from ingot_runtime.lazy_dataclass import dataclass

Value = TypeVar("Value")
_LOADING_SECONDS = 0.2


@dataclass(slots=True)
class Count:
    """Actions of one rule, each once: those that ran, those whose result was there already; what
    those that ran took and made."""

    ran: int = 0
    hit: int = 0
    seconds: float = 0.0
    result_bytes: int = 0

    def expected_seconds(self) -> float:
        """How long the next action will take: as the others did, but for the modules that the first
        ones had to load."""
        return max(0.0, self.seconds - _LOADING_SECONDS) / self.ran if self.ran else 0.0


class Build(Protocol):
    """The way to results; ``label`` says in an explanation what an action is for."""

    counts: dict[str, Count]

    async def need(self, rule: Rule[Inputs, Output], inputs: Inputs, label: str = "") -> Output:
        """Return the result of ``rule`` for ``inputs``.

        Raises:
            Exception: what the rule raised.
        """
        ...

    async def need_all(
        self, rule: Rule[Inputs, Output], inputs: Sequence[Inputs], labels: Sequence[str] = ()
    ) -> tuple[Output, ...]:
        """Return the results of ``rule`` for each of ``inputs``, in any order and in parallel."""
        ...

    async def gather(self, coroutines: Sequence[Coroutine[Any, Any, Value]]) -> tuple[Value, ...]:
        """Run coroutines beside each other; the first one's error, when all have ended."""
        ...

    async def value(self, artifact: Artifact[Value]) -> Value:
        """Load an artifact; one that the cache has lost is made again."""
        ...

    def keep_bytes(self, content: bytes | memoryview) -> Artifact[memoryview]:
        """Store bytes that come from outside of the build."""
        ...

    def keep(self, value: Value) -> Artifact[Value]:
        """Store a value of one of the classes of artifacts that comes from outside of the build."""
        ...

    def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run one coroutine to its end."""
        ...
