"""The suspending scheduler: coroutines ask for actions, actions come from the cache or run, waiting
ones let others go on.

In: coroutines (goals), a rulebook, a cache, an executor. Out: results, every action at most once,
and what became of each. Not done here: where actions run (``executor``, ``pool``), files of the
cache (``ingot_artifacts.store``), explanations (``explain``).

One thread. An action that another process holds the lease of is looked at again and again, while
others run; the lease falls to us when its holder has ended, one way or another. An artifact that
the cache has lost is made again by whoever made it.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import field
from typing import Any, Literal, TypeVar, cast

from ingot_artifacts.store.blobs import BlobDamaged, BlobMissing
from ingot_build_rules.engine.actions.action import Action, PendingWork, Task, Wait
from ingot_build_rules.engine.actions.action_spec import specify
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.backlog import Backlog
from ingot_build_rules.engine.actions.build import Count
from ingot_build_rules.engine.actions.errors import ActionError, BuildStoppedError
from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.actions.rule import (
    AnyRule,
    FileDigests,
    Inputs,
    Output,
    Rule,
    Rulebook,
)
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.cache.action_cache import ActionCache
from ingot_build_rules.engine.cache.file_digests import timestamp
from ingot_build_rules.engine.cache.leases import ActionLeases
from ingot_build_rules.engine.cached_results import CachedResults
from ingot_build_rules.engine.executors.executor import Executor, Handle
from ingot_build_rules.engine.tasks import Tasks, results
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

Value = TypeVar("Value")
_POLL_SECONDS = 0.02
_GOALS_AT_ONCE_MAX = 64
_LOST_COUNT_MAX = 20


@dataclass(frozen=True, slots=True)
class Observers:
    """Called when an action ``started`` to run, when one has ``ended`` (from the cache or not), and
    when one is ``queued``: the cache has no result of it, and it waits for a free process."""

    started: Callable[[Action], None] = lambda _: None
    ended: Callable[[Action], None] = lambda _: None
    queued: Callable[[Action], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Policy:
    """``keep_going`` after a failure; ``checked_share``: of the hits, how many are run again and
    compared, ``check_seed``: 32 bits that choose which; ``expect_cached``: an action that would
    have to run is an error instead."""

    keep_going: bool = False
    checked_share: float = 0.0
    expect_cached: bool = False
    check_seed: int = 0


@dataclass(slots=True)
class Scheduler:
    """One build. Implements ``Build``."""

    rulebook: Rulebook
    values: Values
    executor: Executor
    cache: ActionCache
    leases: ActionLeases
    files: FileDigests
    keys: KeyMaker
    policy: Policy = field(default_factory=Policy)
    observers: Observers = field(default_factory=Observers)
    backlog: Backlog = field(default_factory=Backlog)
    counts: dict[str, Count] = field(init=False)
    would_run: list[Action] = field(default_factory=list[Action])
    _results: CachedResults = field(init=False)
    _actions: dict[bytes, Action] = field(default_factory=dict[bytes, Action])
    _makers: dict[str, Action] = field(default_factory=dict[str, Action])
    _given: dict[str, bytes | memoryview] = field(default_factory=dict[str, bytes | memoryview])
    _tasks: Tasks = field(default_factory=Tasks)
    _queue: list[tuple[int, int, Action]] = field(default_factory=list[tuple[int, int, Action]])
    _blocked: list[Action] = field(default_factory=list[Action])
    _running: dict[Handle, Action] = field(default_factory=dict[Handle, Action])
    _stopped: bool = False
    _apart: bool = False
    _look_again: float = 0.0

    def __post_init__(self) -> None:
        self._results = CachedResults(self.cache, self.values, self.files)
        self.counts = self.backlog.counts
        self.counts.update((rule.name, Count()) for rule in self.rulebook.rules)

    # -- what coroutines call ----------------------------------------------------------------------

    async def need(self, rule: Rule[Inputs, Output], inputs: Inputs, label: str = "") -> Output:
        """Return the result of ``rule`` for ``inputs``."""
        return (await self.need_all(rule, (inputs,), (label,)))[0]

    async def need_all(
        self, rule: Rule[Inputs, Output], inputs: Sequence[Inputs], labels: Sequence[str] = ()
    ) -> tuple[Output, ...]:
        """Return the results in order; the first error, when all have ended."""
        names = labels or [""] * len(inputs)
        actions = [
            self._demand(rule, item, label) for item, label in zip(inputs, names, strict=True)
        ]
        pending: list[PendingWork] = [
            action for action in dict.fromkeys(actions) if not action.done
        ]
        if pending:
            await Wait(pending)
        return tuple(cast("list[Output]", results(actions)))

    async def gather(self, coroutines: Sequence[Coroutine[Any, Any, Value]]) -> tuple[Value, ...]:
        """Run coroutines beside each other."""
        assert self._tasks.current is not None
        tasks = self._tasks.add(coroutines, self._tasks.current)
        self._tasks.ready.extend(tasks)
        if tasks:
            await Wait(list[PendingWork](tasks))
        return tuple(cast("list[Value]", results(tasks)))

    async def value(self, artifact: Artifact[Value]) -> Value:
        """Load an artifact, made again if it is lost."""
        for _ in range(_LOST_COUNT_MAX):
            try:
                return artifact.value()
            except (BlobMissing, BlobDamaged) as lost:
                maker = self._remake(lost.digest)
                if maker is not None:
                    await Wait([maker])
                    error = _failure_of(maker, lost.digest)
                    if error is not None:
                        raise error from None
        raise _vanishes(artifact.digest)

    def keep_bytes(self, content: bytes | memoryview) -> Artifact[memoryview]:
        """Store bytes from outside; they are kept in memory as well, for the cache may lose
        them."""
        artifact = self.values.keep_bytes(content)
        self._given[artifact.digest] = content
        return artifact

    def keep(self, value: Value) -> Artifact[Value]:
        """Store a value from outside of the build; it is kept in memory as well."""
        artifact = self.values.keep(value)
        self._given[artifact.digest], _ = self.values.codec.encode(value)
        return artifact

    def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run one goal to its end."""
        (task,) = self.run_all((coroutine,))
        if task.error is not None:
            raise task.error
        return cast("Value", task.result)

    def run_all(
        self, goals: Sequence[Coroutine[Any, Any, Any]], *, apart: bool = False
    ) -> list[Task]:
        """Run goals beside each other, not all at once.

        Each has a result or an error when this returns. ``apart``: a failure of one stops no other,
        and no earlier failure stops them.
        """
        self._apart = apart
        tasks = self._tasks.add(goals)
        try:
            self._run_to_end(tasks)
        finally:
            self._abandon()
        return tasks

    def used_records(self) -> list[bytes]:
        """Where the records of this build are, for a cache that forgets what was used longest
        ago."""
        places = {
            place
            for action in self._actions.values()
            for place in (action.key.digest, action.where)
            if place
        }
        return sorted(places)

    # -- the course of a build ---------------------------------------------------------------------

    def _run_to_end(self, goals: Sequence[Task]) -> None:
        waiting, active = deque(goals), list[Task]()
        while True:
            active = [task for task in active if not task.done]
            while waiting and len(active) < _GOALS_AT_ONCE_MAX:
                active.append(waiting.popleft())
                self._tasks.ready.append(active[-1])
            if not active:
                return
            if not (self._tasks.ready or self._queue or self._running or self._blocked):
                raise RuntimeError("every coroutine waits for another: a result needs itself")
            self._advance()

    def _advance(self) -> None:
        while self._tasks.ready:
            self._tasks.step()
            self._start_actions()
        self._start_actions()
        if self._running:
            for handle, outcome in self.executor.wait(_POLL_SECONDS if self._blocked else None):
                self._end(self._running.pop(handle), outcome)
        elif self._blocked or self._queue:
            time.sleep(_POLL_SECONDS)
        self._look_at_blocked()

    def _abandon(self) -> None:
        """Drop what has not ended, as after Ctrl-C."""
        if self._running:  # nobody may begin what is still running
            self._cancel_running()
            self.executor.close(kill=True)
        for action in self._running.values():
            self.leases.release(action.key.digest)
        self._running.clear()
        self._tasks.close()

    # -- actions -----------------------------------------------------------------------------------

    def _demand(self, rule: AnyRule, inputs: object, label: str) -> Action:
        """The action of a key, new or not."""
        key = self.keys.key(rule, inputs)
        action = self._actions.get(key.digest)
        if action is None:
            number = len(self._actions)
            action = Action(number=number, rule=rule, inputs=inputs, key=key, label=label)
            self._actions[key.digest] = action
            self._trace(label, action)
            if not self._take_hit(action):
                self._enqueue(action)
        else:
            self._trace(label, action)
        return action

    def _trace(self, label: str, action: Action) -> None:
        if self._tasks.current is not None:
            self._tasks.current.trace.append((label, action))

    def _take_hit(self, action: Action) -> bool:
        """End an action by its record, if there is one and it is not to be checked."""
        found = self._results.find(action)
        if found is None:
            return False
        where, record = found
        if self._is_checked(action):
            action.where, action.expected = where, record
            return False
        try:
            result, refs = self.values.codec.decode_with_refs(record.result, self.values)
        except ValueError:
            result, refs = None, None
        if refs != record.refs:  # nobody knows what that is
            self.cache.forget(where)
            return False
        action.where, action.seconds = where, record.seconds
        action.refs, action.reads, action.messages = record.refs, record.reads, record.messages
        self._finish(action, "hit", result, None)
        return True

    def _is_checked(self, action: Action) -> bool:
        """A share of the keys; none where nothing may run."""
        share = 0.0 if self.policy.expect_cached else self.policy.checked_share
        drawn = int.from_bytes(action.key.digest[-4:], "big") ^ self.policy.check_seed
        return drawn < share * (1 << 32)

    def _enqueue(self, action: Action) -> None:
        if self.policy.expect_cached and not self._is_stopped():
            self.would_run.append(action)
        if self._is_stopped() or self.policy.expect_cached:
            self._stop_action(action)
        else:
            self.backlog.add(action.rule.name)
            heapq.heappush(self._queue, (action.number, id(action), action))
            self.observers.queued(action)

    def _is_stopped(self) -> bool:
        return self._stopped and not self._apart

    def _stop_action(self, action: Action) -> None:
        cached = "the build expects everything in the cache"
        why = cached if self.policy.expect_cached else "another action failed"
        error = BuildStoppedError(f"{action.rule.name} was not run", action.label, why)
        self._finish(action, "stopped", None, error)

    def _start_actions(self) -> None:
        while self._queue and self.executor.capacity():
            action = heapq.heappop(self._queue)[2]
            self.backlog.remove(action.rule.name)
            self._begin(action)

    def _look_at_blocked(self) -> None:
        """Try those again whose lease somebody else had, not more often than it is worth."""
        now = time.monotonic()
        if self._blocked and now >= self._look_again:
            self._look_again = now + _POLL_SECONDS
            blocked, self._blocked = self._blocked, []
            for action in blocked:
                self._begin(action)

    def _begin(self, action: Action) -> None:
        """Run an action if its lease is to be had, unless its last holder has just ended it."""
        if self._is_stopped():
            self._stop_action(action)
        elif not self.leases.try_acquire(action.key.digest):
            self._blocked.append(action)
        elif self._take_hit(action):
            self.leases.release(action.key.digest)
        elif not self.executor.capacity():
            self.leases.release(action.key.digest)
            self._enqueue(action)
        else:
            self._submit(action)

    def _submit(self, action: Action) -> None:
        """Hand an action to the executor; one whose inputs are lost waits for who makes them."""
        try:
            cost = self.backlog.cost(action.rule.name)
            spec = specify(action.rule, action.key, action.inputs, self.values, cost)
        except BlobMissing as error:
            self.leases.release(action.key.digest)
            self._make_lost(action, error.digest)
            return
        action.started = timestamp()
        self.observers.started(action)
        self._running[self.executor.submit(spec)] = action

    def _cancel_running(self) -> None:
        for handle in self._running:
            self.executor.cancel(handle)

    # -- ends --------------------------------------------------------------------------------------

    def _end(self, action: Action, outcome: Outcome) -> None:
        """An action has run: keep its result, or make what it lacked, or fail."""
        error, result, lost = outcome.error, None, outcome.lost
        if outcome.cancelled:
            self.leases.release(action.key.digest)
            self._stop_action(action)
            return
        if error is None and not lost:
            try:
                result = self._results.keep(action, outcome)
            except (BlobMissing, BlobDamaged) as failure:
                lost = failure.digest
            except Exception as failure:  # noqa: BLE001  # a full disk, a hit that differs
                error = failure
        if error is not None and action.expected is not None:  # nobody else may rely on it
            self.cache.forget(action.where)
        self.leases.release(action.key.digest)
        action.seconds, action.messages = outcome.seconds, outcome.messages
        if lost:
            self._make_lost(action, lost)
        else:
            self._finish(action, "failed" if error else "ran", result, error)

    def _finish(
        self,
        action: Action,
        status: Literal["hit", "ran", "failed", "stopped"],
        result: object,
        error: Exception | None,
    ) -> None:
        """The one way in which an action ends; one that had ended before is counted once."""
        count = self.counts[action.rule.name]
        for ended, step in ((action.status, -1), (status, 1)):
            count.ran += step * (ended == "ran")
            count.hit += step * (ended == "hit")
        if status in ("ran", "failed"):
            count.seconds += action.seconds
            count.result_bytes += action.result_bytes
        action.status = status
        for digest in action.refs:
            self._makers.setdefault(digest, action)
        goes_on = self.policy.keep_going or self._apart
        if status == "failed" and not goes_on and not self._stopped:
            self._stopped = True
            self._cancel_running()
        then, action.then = action.then, []
        self._tasks.settle(action, result, error)
        if status != "stopped":
            self.observers.ended(action)
        for follower, digest in then:
            self._follow(follower, action, digest)

    # -- what was lost -----------------------------------------------------------------------------

    def _remake(self, digest: str) -> Action | None:
        """Begin to make a lost artifact again; return who makes it, None if it is there already.

        Its maker's record counts for nothing while the artifact is missing, and is right again once
        anybody has made it.

        Raises:
            ActionError: nobody can.
        """
        if digest in self._given:
            self.values.keep_bytes(self._given[digest])
            return None
        maker = self._makers.get(digest)
        if maker is None:
            raise _vanishes(digest)
        if maker.done:
            if self._is_there(digest):  # as bytes, but no value: whoever recorded it was wrong
                self.cache.forget(maker.where)
            maker.done = False
            self._enqueue(maker)
        return maker

    def _make_lost(self, action: Action, digest: str) -> None:
        """Make what an action lacked, then run it again."""
        action.lost_count += 1
        try:
            if action.lost_count > _LOST_COUNT_MAX or self._makers.get(digest) is action:
                raise _vanishes(digest)
            # The first time, a process may have healed what another one missed.
            is_healed = action.lost_count == 1 and self._is_there(digest)
            maker = None if is_healed else self._remake(digest)
        except ActionError as error:
            self._finish(action, "failed", None, error)
            return
        if maker is None:
            self._enqueue(action)
        elif maker.done:
            self._follow(action, maker, digest)
        else:
            maker.then.append((action, digest))

    def _is_there(self, digest: str) -> bool:
        """Whether the cache has the right bytes of an artifact."""
        try:
            self.values.blobs.get(digest)
        except (BlobMissing, BlobDamaged):
            return False
        return True

    def _follow(self, action: Action, maker: Action, digest: str) -> None:
        """Go on with an action that waited for the maker of what it lacks."""
        error = _failure_of(maker, digest)
        if error is None:
            self._enqueue(action)
        else:
            self._finish(action, "stopped" if maker.status == "stopped" else "failed", None, error)


def _failure_of(maker: Action, digest: str) -> Exception | None:
    """Why an artifact that was made again is not there, if so."""
    if maker.error is None and digest not in maker.refs:
        return _vanishes(digest)
    return cast("Exception | None", maker.error)


def _vanishes(digest: str) -> ActionError:
    return ActionError(
        "an artifact is lost",
        f"artifact {digest[:16]}",
        "the cache has lost it, and making it again did not bring it back",
        ("run `ingot cache verify`, or choose another ", OptionRef("cache")),
    )
