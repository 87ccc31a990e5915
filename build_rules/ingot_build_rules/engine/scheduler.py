"""The suspending scheduler: coroutines ask for actions, actions come from the cache or run, waiting ones let others go on.

In: coroutines (goals), a rulebook, a cache, an executor. Out: results, every action at most once, and what became of each.
Not done here: where actions run (``executor``, ``pool``), files of the cache (``ingot_artifacts.store``), explanations
(``explain``).

One thread. An action that another process holds the lease of is looked at again and again, while others run; the lease
falls to us when its holder has ended, one way or another. An artifact that the cache has lost is made again by whoever made it.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from ingot_artifacts.store.blobs import BlobDamaged, BlobMissing
from ingot_build_rules.engine.action import Action, Awaited, Task, Wait
from ingot_build_rules.engine.action_cache import ActionCache, Resolve
from ingot_build_rules.engine.artifact import Artifact
from ingot_build_rules.engine.build import Count
from ingot_build_rules.engine.errors import ActionError, BuildStoppedError, HitDiffersError
from ingot_build_rules.engine.executor import Executor
from ingot_build_rules.engine.key import KeyMaker
from ingot_build_rules.engine.perform import Outcome
from ingot_build_rules.engine.record import Record
from ingot_build_rules.engine.rule import AnyRule, FileDigests, Inputs, Output, Rule, Rulebook
from ingot_build_rules.engine.values import Values

Value = TypeVar("Value")
_POLL_SECONDS = 0.02
_LOST_COUNT_MAX = 20


class Leases(Protocol):
    """Who runs what, over all processes."""

    def try_acquire(self, key: bytes) -> bool:
        """Take the lease of a key, unless somebody has it."""
        ...

    def release(self, key: bytes) -> None:
        """Give it back."""
        ...


@dataclass(frozen=True, slots=True)
class Observers:
    """Called when an action ``started`` to run and when one has ``ended`` (from the cache or not)."""

    started: Callable[[Action], None] = lambda _: None
    ended: Callable[[Action], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Policy:
    """``keep_going`` after a failure; ``use_hits``: False runs everything again; ``checked_share``: of the hits, how many are
    run again and compared; ``expect_cached``: an action that would have to run is an error instead."""

    keep_going: bool = False
    checked_share: float = 0.0
    expect_cached: bool = False


@dataclass(slots=True)
class Scheduler:
    """One build. Implements ``Build``."""

    rulebook: Rulebook
    values: Values
    executor: Executor
    cache: ActionCache
    leases: Leases
    files: FileDigests
    keys: KeyMaker
    policy: Policy = field(default_factory=Policy)
    observers: Observers = field(default_factory=Observers)
    counts: dict[str, Count] = field(default_factory=dict[str, Count])
    would_run: list[Action] = field(default_factory=list[Action])
    _actions: dict[bytes, Action] = field(default_factory=dict[bytes, Action])
    _makers: dict[str, Action] = field(default_factory=dict[str, Action])
    _ready: deque[Task] = field(default_factory=deque[Task])
    _queue: list[tuple[int, int, Action]] = field(default_factory=list[tuple[int, int, Action]])
    _blocked: list[Action] = field(default_factory=list[Action])
    _running: dict[int, Action] = field(default_factory=dict[int, Action])
    _task: Task | None = None
    _stopped: bool = False

    def __post_init__(self) -> None:
        self.counts = {rule.name: Count() for rule in self.rulebook.rules}

    # -- what coroutines call ----------------------------------------------------------------------------------------

    async def need(self, rule: Rule[Inputs, Output], inputs: Inputs, label: str = "") -> Output:
        """Return the result of ``rule`` for ``inputs``."""
        return (await self.need_all(rule, (inputs,), (label,)))[0]

    async def need_all(
        self, rule: Rule[Inputs, Output], inputs: Sequence[Inputs], labels: Sequence[str] = ()
    ) -> tuple[Output, ...]:
        """Return the results in order; the first error, when all have ended."""
        names = labels or [""] * len(inputs)
        actions = [self._demand(rule, item, label) for item, label in zip(inputs, names, strict=True)]
        pending: list[Awaited] = [action for action in dict.fromkeys(actions) if not action.done]
        if pending:
            await Wait(pending)
        errors = [action.error for action in actions if action.error is not None]
        if errors:
            raise next((error for error in errors if not isinstance(error, BuildStoppedError)), errors[0])
        return tuple(cast("Output", action.result) for action in actions)

    async def gather(self, coroutines: Sequence[Coroutine[Any, Any, Value]]) -> tuple[Value, ...]:
        """Run coroutines beside each other."""
        assert self._task is not None
        tasks = [Task(coroutine=coroutine, trace=self._task.trace) for coroutine in coroutines]
        self._ready.extend(tasks)
        if tasks:
            await Wait(list[Awaited](tasks))
        errors = [task.error for task in tasks if task.error is not None]
        if errors:
            raise next((error for error in errors if not isinstance(error, BuildStoppedError)), errors[0])
        return tuple(cast("Value", task.result) for task in tasks)

    async def value(self, artifact: Artifact[Value]) -> Value:
        """Load an artifact, made again if it is lost."""
        for _ in range(_LOST_COUNT_MAX):
            try:
                return artifact.value()
            except (BlobMissing, BlobDamaged) as lost:
                maker = self._maker(lost.digest)
                self._run_again(maker)
                await Wait([maker])
                if maker.error is not None:
                    raise maker.error from None
        raise _vanishes(artifact.digest)

    def keep_bytes(self, content: bytes | memoryview) -> Artifact[memoryview]:
        """Store bytes from outside."""
        return self.values.keep_bytes(content)

    def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run one goal to its end."""
        (task,) = self.run_all((coroutine,))
        if task.error is not None:
            raise task.error
        return cast("Value", task.result)

    def run_all(self, goals: Sequence[Coroutine[Any, Any, Any]]) -> list[Task]:
        """Run goals beside each other; each has a result or an error when this returns."""
        tasks = [Task(coroutine=goal) for goal in goals]
        self._ready.extend(tasks)
        try:
            while any(not task.done for task in tasks):
                if not (self._ready or self._queue or self._running or self._blocked):
                    raise RuntimeError("every coroutine waits for another: a result needs itself")
                self._advance()
        finally:
            for action in self._running.values():
                self.leases.release(action.key.digest)
            self._running.clear()
        return tasks

    # -- tasks -------------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        while self._ready:
            self._step(self._ready.popleft())
            self._start_actions()
        self._start_actions()
        if self._running:
            for number, outcome in self.executor.wait(_POLL_SECONDS if self._blocked else None):
                self._end(self._running.pop(number), outcome)
        elif self._blocked:
            time.sleep(_POLL_SECONDS)
        self._look_at_blocked()

    def _step(self, task: Task) -> None:
        assert task.coroutine is not None
        self._task = task
        try:
            wait = task.coroutine.send(None)
        except StopIteration as stop:
            self._settle(task, stop.value, None)
        except Exception as error:  # noqa: BLE001
            self._settle(task, None, error)
        else:
            pending = [awaited for awaited in cast("Wait", wait).awaited if not awaited.done]
            task.missing = len(pending)
            for awaited in pending:
                awaited.waiters.append(task)
            if not pending:
                self._ready.append(task)
        finally:
            self._task = None

    def _settle(self, awaited: Awaited, result: object, error: BaseException | None) -> None:
        awaited.done, awaited.result, awaited.error = True, result, error
        waiters, awaited.waiters = awaited.waiters, []
        for task in waiters:
            task.missing -= 1
            if not task.missing:
                self._ready.append(task)

    # -- actions -----------------------------------------------------------------------------------------------------

    def _demand(self, rule: AnyRule, inputs: object, label: str) -> Action:
        """The action of a key, new or not."""
        key = self.keys.key(rule, inputs)
        action = self._actions.get(key.digest)
        if action is None:
            action = Action(number=len(self._actions), rule=rule, inputs=inputs, key=key, label=label)
            self._actions[key.digest] = action
            self._trace(label, action)
            if not self._take_hit(action):
                self._enqueue(action)
        else:
            self._trace(label, action)
        return action

    def _trace(self, label: str, action: Action) -> None:
        if self._task is not None:
            self._task.trace.append((label, action))

    def _resolver(self, action: Action) -> Resolve | None:
        resolve = action.rule.resolve
        return None if resolve is None else partial(resolve, self.files, action.inputs)

    def _take_hit(self, action: Action) -> bool:
        """End an action by its record, if there is one and it is not to be checked."""
        found = self._find(action)
        if found is None:
            return False
        where, record = found
        if self._is_checked(action):
            action.expected = record
            return False
        try:
            result = self.values.codec.decode(record.result, self.values)
        except ValueError:
            self.cache.forget(where)
            return False
        action.how, action.where, action.seconds = "hit", where, record.seconds
        action.refs, action.reads, action.messages = record.refs, record.reads, record.messages
        self._made(action)
        self.counts[action.rule.name].hit += 1
        self._settle(action, result, None)
        self.observers.ended(action)
        return True

    def _find(self, action: Action) -> tuple[bytes, Record] | None:
        try:
            return self.cache.find(action.key, self._resolver(action))
        except (BlobMissing, BlobDamaged):  # what the action noted is resolved by an artifact that is lost
            return None

    def _is_checked(self, action: Action) -> bool:
        """A share of the keys, the same in every build."""
        return int.from_bytes(action.key.digest[-4:], "big") < self.policy.checked_share * (1 << 32)

    def _enqueue(self, action: Action) -> None:
        if self._stopped or self.policy.expect_cached:
            if not self._stopped:
                self.would_run.append(action)
            self._stop_action(action)
        else:
            heapq.heappush(self._queue, (action.number, id(action), action))

    def _stop_action(self, action: Action) -> None:
        why = "the build expects everything in the cache" if self.policy.expect_cached else "another action failed"
        action.how = "stopped"
        self._settle(action, None, BuildStoppedError(f"{action.rule.name} was not run", action.label, why))

    def _start_actions(self) -> None:
        while self._queue and self.executor.room():
            _, _, action = heapq.heappop(self._queue)
            if self._stopped:
                self._stop_action(action)
            elif self.leases.try_acquire(action.key.digest):
                self._start(action)
            else:
                self._blocked.append(action)

    def _start(self, action: Action) -> None:
        """Run an action whose lease is ours, unless its last holder has just ended it."""
        if action.expected is None and not action.done and action.lost_count == 0 and self._take_hit(action):
            self.leases.release(action.key.digest)
            return
        self._running[action.number] = action
        self.observers.started(action)
        self.executor.submit(action.number, action.rule.name, action.inputs)

    def _look_at_blocked(self) -> None:
        for action in list(self._blocked):
            if self._take_hit(action):
                self._blocked.remove(action)
            elif self._stopped:
                self._blocked.remove(action)
                self._stop_action(action)
            elif self.executor.room() and self.leases.try_acquire(action.key.digest):
                self._blocked.remove(action)
                self._start(action)

    # -- ends --------------------------------------------------------------------------------------------------------

    def _end(self, action: Action, outcome: Outcome) -> None:
        """An action has run: keep its result, or make what it lacked, or fail."""
        if outcome.lost:
            self.leases.release(action.key.digest)
            self._make_lost(action, outcome.lost)
            return
        error, result = outcome.error, None
        if error is None:
            try:
                result = self._keep(action, outcome)
            except Exception as failure:  # noqa: BLE001  # a full disk, a hit that differs
                error = failure
        self.leases.release(action.key.digest)
        action.seconds, action.messages = outcome.seconds, outcome.messages
        action.how = "failed" if error else "ran"
        self._count(action)
        if error is not None and not self.policy.keep_going:
            self._stopped = True
        then, action.then = action.then, []
        self._settle(action, result, error)
        self.observers.ended(action)
        for follow in then:
            follow()

    def _count(self, action: Action) -> None:
        count = self.counts[action.rule.name]
        count.ran += action.how == "ran"
        count.seconds += action.seconds

    def _keep(self, action: Action, outcome: Outcome) -> object:
        result = self.values.codec.decode(outcome.result, self.values)
        if action.expected is not None and action.expected.result != outcome.result:
            raise HitDiffersError(
                f"{action.rule.name} gave another result than the cache has",
                action.label,
                f"key {action.key.digest.hex()[:16]}",
                "run `ingot cache verify`; a rule that depends on more than its key is a bug: report it",
            )
        action.where, record = self.cache.keep(action.key, action.rule.name, outcome, self._resolver(action))
        action.refs, action.reads = record.refs, record.reads
        self._made(action)
        return result

    def _made(self, action: Action) -> None:
        for digest in action.refs:
            self._makers.setdefault(digest, action)

    # -- what was lost -----------------------------------------------------------------------------------------------

    def _maker(self, digest: str) -> Action:
        maker = self._makers.get(digest)
        if maker is None:
            raise _vanishes(digest)
        return maker

    def _make_lost(self, action: Action, digest: str) -> None:
        """Run the maker of a lost artifact again, then the action that needed it."""
        action.lost_count += 1
        maker = self._makers.get(digest)
        if maker is None or maker is action or action.lost_count > _LOST_COUNT_MAX:
            action.how = "failed"
            self._stopped = not self.policy.keep_going
            self._settle(action, None, _vanishes(digest))
            self.observers.ended(action)
            return
        self._run_again(maker)
        maker.then.append(partial(self._follow, action, maker))

    def _run_again(self, maker: Action) -> None:
        if maker.done:
            self.cache.forget(maker.where)
            maker.done, maker.lost_count = False, maker.lost_count + 1
            heapq.heappush(self._queue, (maker.number, id(maker), maker))

    def _follow(self, action: Action, maker: Action) -> None:
        if maker.error is None:
            heapq.heappush(self._queue, (action.number, id(action), action))
        else:
            action.how = "failed"
            self._settle(action, None, maker.error)
            self.observers.ended(action)


def _vanishes(digest: str) -> ActionError:
    return ActionError(
        "an artifact is lost", f"artifact {digest[:16]}", "the cache has lost it, and making it again did not bring it back",
        "run `ingot cache verify`, or choose another --cache",
    )  # fmt: skip
