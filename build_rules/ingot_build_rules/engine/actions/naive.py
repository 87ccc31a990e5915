"""The executor without cache, processes or scheduler: the oracle of the incremental one, and the
one for a single build in memory.

In: a rulebook. Out: results, and how often each rule ran. Not done here: everything that could be
wrong in ``scheduler``.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.build import Count
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.actions.perform import perform
from ingot_build_rules.engine.actions.rule import AnyRule, Inputs, Output, Rule, Rulebook
from ingot_build_rules.engine.actions.values import MemoryBlobs, Values

Value = TypeVar("Value")
Observer = Callable[[str, int, int], None]
"""(rule, results so far, results asked for so far), after each result."""


class NaiveBuild:
    """One build: every key runs once, at once, in this process; results stay in memory.

    Not for several threads. What a rule notes is ignored: nothing changes while a build runs.
    """

    def __init__(self, rulebook: Rulebook, observer: Observer | None = None) -> None:
        """Start with nothing."""
        self.counts = {rule.name: Count() for rule in rulebook.rules}
        self._rulebook = rulebook
        self._observer = observer
        self._values = Values(MemoryBlobs(), Codec(rulebook.types))
        self._keys = KeyMaker(lambda _: "", lambda _: "", lambda _: "")
        self._results: dict[bytes, object] = {}

    async def need(self, rule: Rule[Inputs, Output], inputs: Inputs, label: str = "") -> Output:
        """Return a result, made now if it is new."""
        del label
        return self._result(rule, inputs, 1)

    async def need_all(
        self, rule: Rule[Inputs, Output], inputs: Sequence[Inputs], labels: Sequence[str] = ()
    ) -> tuple[Output, ...]:
        """Return results in order; the first error, when all have ended."""
        del labels
        return await self.gather([self._made(rule, item, len(inputs)) for item in inputs])

    async def gather(self, coroutines: Sequence[Coroutine[Any, Any, Value]]) -> tuple[Value, ...]:
        """Run one after the other; the first error, when all have ended."""
        results: list[Value] = []
        errors: list[Exception] = []
        for coroutine in coroutines:
            try:
                results.append(await coroutine)
            except Exception as error:  # noqa: BLE001
                errors.append(error)
        if errors:
            raise errors[0]
        return tuple(results)

    async def value(self, artifact: Artifact[Value]) -> Value:
        """Load an artifact."""
        return artifact.value()

    def keep(self, value: Value) -> Artifact[Value]:
        """Store a value in memory."""
        return self._values.keep(value)

    def keep_bytes(self, content: bytes | memoryview) -> Artifact[memoryview]:
        """Store bytes in memory."""
        return self._values.keep_bytes(content)

    def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run to the end: nothing here ever waits."""
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return cast("Value", stop.value)
        coroutine.close()
        raise RuntimeError("a coroutine waits for something that is no action")

    async def _made(
        self, rule: Rule[Inputs, Output], inputs: Inputs, requested_count: int
    ) -> Output:
        return self._result(rule, inputs, requested_count)

    def _result(self, rule: Rule[Inputs, Output], inputs: Inputs, requested_count: int) -> Output:
        key = self._keys.key(rule, inputs).digest
        count = self.counts[rule.name]
        if key not in self._results:
            self._results[key] = self._run(rule, inputs, count)
        if self._observer is not None:
            self._observer(rule.name, count.ran, requested_count)
        return cast("Output", self._results[key])

    def _run(self, rule: AnyRule, inputs: object, count: Count) -> object:
        outcome = perform(rule, inputs, self._values, self._rulebook)
        if outcome.error is not None:
            raise outcome.error
        count.ran += 1
        count.seconds += outcome.seconds
        return self._values.codec.decode(outcome.result, self._values)
