"""The tasks of a build: coroutines that go on until they wait for something, and again when it is
done.

In: coroutines; what has ended. Out: the tasks that can go on, the results of those that have ended.
Not done here: what they wait for, or in which order it is done (``scheduler``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any, cast

from ingot_build_rules.engine.actions.action import PendingWork, Task, Wait
from ingot_build_rules.engine.actions.errors import BuildStoppedError


class Tasks:
    """``ready``: those that can go on, in their order; ``current``: the one that is going on."""

    def __init__(self) -> None:
        self.ready: deque[Task] = deque()
        self.current: Task | None = None
        self._live: dict[Task, None] = {}

    def add(
        self, coroutines: Sequence[Coroutine[Any, Any, Any]], parent: Task | None = None
    ) -> list[Task]:
        """Take over coroutines, which the caller makes ready; parts of a ``parent`` share its
        trace."""
        tasks = [
            Task(coroutine=coroutine, trace=[] if parent is None else parent.trace)
            for coroutine in coroutines
        ]
        self._live.update(dict.fromkeys(tasks))
        return tasks

    def step(self) -> None:
        """Let the next ready task go on until it waits or ends."""
        self.current = task = self.ready.popleft()
        assert task.coroutine is not None
        try:
            wait = task.coroutine.send(None)
        except StopIteration as stop:
            self.settle(task, stop.value, None)
        except Exception as error:  # noqa: BLE001
            self.settle(task, None, error)
        else:
            pending = [item for item in cast("Wait", wait).pending if not item.done]
            task.missing = len(pending)
            for item in pending:
                item.waiters.append(task)
            if not pending:
                self.ready.append(task)
        finally:
            self.current = None

    def settle(self, pending: PendingWork, result: object, error: BaseException | None) -> None:
        """End what tasks wait for; those that wait for nothing else become ready."""
        pending.done, pending.result, pending.error = True, result, error
        if isinstance(pending, Task):
            self._live.pop(pending, None)
        waiters, pending.waiters = pending.waiters, []
        for task in waiters:
            task.missing -= 1
            if not task.missing:
                self.ready.append(task)

    def close(self) -> None:
        """Close those that will not go on, as after Ctrl-C."""
        for task in list(self._live):
            if task.coroutine is not None:
                task.coroutine.close()
        self._live.clear()


def results(pending: Sequence[PendingWork]) -> list[object]:
    """Return the results of what has ended.

    Raises:
        Exception: the first error that is no mere consequence of another, else the first.
    """
    errors = [item.error for item in pending if item.error is not None]
    if errors:
        own = (error for error in errors if not isinstance(error, BuildStoppedError))
        raise next(own, errors[0])
    return [item.result for item in pending]
