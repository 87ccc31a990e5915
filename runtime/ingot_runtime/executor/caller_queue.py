"""The queue of the callers of an execution context: one runs at a time, the others wait in order of
arrival.

In: queues, how long to wait. Out: work done when a caller's turn has come. Not done here: calls
that find a context free (``Session.run``).

No exception may keep a turn, at whatever bytecode: taking and giving back are single instructions
on a dict, and a place in a queue ends with the last reference to its ``Waiter``.
"""

import weakref
from _queue import Empty, SimpleQueue
from time import monotonic

from ..errors import BusyError, CancelledError, TimedOutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from ..loader.watch import Watch

    Result = TypeVar("Result")

# An exception may cut short the waking of the next one; whoever waits looks again then.
_LOOK_AGAIN_SECONDS = 0.5


class CallerQueue:
    """``free`` has an item while nobody has the turn: True for anybody, False for the first of
    ``waiters``; none once it ``is_closed``."""

    __slots__ = ("free", "is_closed", "waiters", "watch")

    def __init__(self, watch: "Watch") -> None:
        self.watch = watch
        self.free: dict[bool, None] = {True: None}
        self.waiters: list[weakref.ref[Waiter]] = []
        self.is_closed = False

    def all(self) -> "list[Waiter]":
        """Return those who wait, in order."""
        found = [(reference, reference()) for reference in list(self.waiters)]
        for reference, waiter in found:
            if waiter is None:  # an exception has ended it on its way out
                self.remove(reference)
        return [waiter for _, waiter in found if waiter is not None]

    def remove(self, reference: "weakref.ref[Waiter]") -> None:
        """Take a place out of the queue; another thread may be doing the same."""
        if reference in self.waiters:
            self.waiters.remove(reference)

    def wake_first(self) -> None:
        """Let who waits longest look whether its turn has come."""
        for waiter in self.all()[:1]:
            waiter.wake()

    def close(self) -> None:
        """Refuse those who wait, and all who come; it is the caller's turn."""
        self.is_closed = True
        for waiter in self.all():
            waiter.wake()

    def cancel(self) -> bool:
        """End the calls that run or wait; return whether there was any."""
        found = self.all()
        for waiter in found:
            waiter.cancel()
        call = self.watch.call  # read first: if that one ends now, the next is not meant
        running = not self.free and not self.is_closed
        if running:
            self.watch.cancel(call)
        return running or bool(found)

    def reset(self) -> None:
        """In a forked child, those who held it or waited are not there."""
        self.waiters.clear()
        if not self.is_closed:
            self.free[True] = None


class Waiter:
    """A call that may have to wait in each of `queues`."""

    __slots__ = (
        "__weakref__", "_bell", "_is_cancelled", "_queues", "_refusal", "_running", "name",
    )  # fmt: skip

    def __init__(
        self, queues: "Sequence[CallerQueue]", name: str, refusal: "Callable[[], str]"
    ) -> None:
        """`name`: the bundle's; `refusal` returns why it may not wait, "" where it may."""
        self._queues = queues
        self.name = name
        self._refusal = refusal
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._is_cancelled = False
        self._running: tuple[tuple[Watch, int], ...] = ()

    def run(
        self, work: "Callable[[int, float | None], Result]", seconds: "float | None"
    ) -> "Result":
        """Wait for a turn; return work(the index of its queue, the seconds that are left).

        Raises:
            BusyError: closed, or not to wait. CancelledError, TimedOutError: before its turn came.
        """
        deadline = None if seconds is None else monotonic() + seconds
        try:
            while True:
                index = self._wait(deadline)
                queue = self._queues[index]
                free = queue.free
                key = True in free
                try:
                    del free[key]
                except KeyError:
                    continue  # somebody who did not have to wait was faster
                try:
                    return self._work(work, index, deadline)
                finally:
                    if not queue.is_closed:
                        free[not queue.waiters] = None
                    queue.wake_first()
        finally:
            self._leave()

    def _work(
        self,
        work: "Callable[[int, float | None], Result]",
        index: int,
        deadline: "float | None",
    ) -> "Result":
        """Work while it is this call's turn."""
        self._leave()
        watch = self._queues[index].watch
        watch.call += 1
        self._running = ((watch, watch.call),)
        try:
            self._require_going_on(deadline)
            return work(index, None if deadline is None else max(deadline - monotonic(), 0.001))
        finally:
            self._running = ()

    def _wait(self, deadline: "float | None") -> int:
        """Return the index of the queue in which it is this caller's turn."""
        own: weakref.ref[Any] = weakref.ref(self)
        while True:
            for index, queue in enumerate(self._queues):
                if queue.is_closed:
                    raise closed(self.name)
                if own not in queue.waiters:  # in a forked child, not any more
                    queue.waiters.append(own)
                if queue.free and queue.all()[:1] == [self]:
                    return index
            self.require_may_wait()
            self._require_going_on(deadline)
            left = _LOOK_AGAIN_SECONDS if deadline is None else max(deadline - monotonic(), 0)
            try:
                self._bell.get(timeout=min(left, _LOOK_AGAIN_SECONDS))
            except Empty:
                continue

    def require_may_wait(self) -> None:
        """Raise ``BusyError`` for a call that may not wait."""
        refusal = self._refusal()
        if refusal:
            do = "load more sessions (sessions=N), which share the file's memory"
            raise BusyError("the session is busy", self.name, refusal, do)

    def _require_going_on(self, deadline: "float | None") -> None:
        why = "it was still waiting for its turn"
        if self._is_cancelled:
            raise CancelledError("the call was cancelled", self.name, why)
        if deadline is not None and monotonic() >= deadline:
            do = "give it more time, or load more sessions"
            raise TimedOutError("the call took too long", self.name, why, do)

    def _leave(self) -> None:
        """Leave all queues; whoever is first now looks whether its turn has come."""
        for queue in self._queues:
            queue.remove(weakref.ref(self))
            if queue.free:
                queue.wake_first()

    def wake(self) -> None:
        """Look again."""
        self._bell.put(None)

    def cancel(self) -> None:
        """End this call, waiting or running; nothing happens where it is over."""
        self._is_cancelled = True
        for watch, call in self._running:
            watch.cancel(call)
        self.wake()


def closed(name: str) -> BusyError:
    """Return the error for calls of a closed session."""
    why = "close() was called"
    return BusyError("the session is closed", name, why, "load the bundle again")
