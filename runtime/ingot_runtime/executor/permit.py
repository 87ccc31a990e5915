"""The right to run a lane: one caller has it at a time, the others wait in order of arrival.

In: permits, how long to wait. Out: work done with one of them. Not done here: calls that find a
permit free (``Session.run``).

No exception may keep a permit, at whatever bytecode: taking and giving back are single instructions
on a dict, and a place in a line ends with the last reference to its ``Waiter``.
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


class Permit:
    """``free`` has an item while nobody holds it: True for anybody, False for the first of
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
        """Take a place out of the line; another thread may be doing the same."""
        if reference in self.waiters:
            self.waiters.remove(reference)

    def wake_first(self) -> None:
        """Let who waits longest look whether the permit is free."""
        for waiter in self.all()[:1]:
            waiter.wake()

    def close(self) -> None:
        """Refuse those who wait, and all who come; the caller holds the permit."""
        self.is_closed = True
        for waiter in self.all():
            waiter.wake()

    def cancel(self) -> bool:
        """End the calls that hold the permit or wait for it; return whether there was any."""
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
    """A call that may have to wait for one of `permits`."""

    __slots__ = (
        "__weakref__", "_bell", "_is_cancelled", "_permits", "_refusal", "_running", "name",
    )  # fmt: skip

    def __init__(
        self, permits: "Sequence[Permit]", name: str, refusal: "Callable[[], str]"
    ) -> None:
        """`name`: the bundle's; `refusal` returns why it may not wait, "" where it may."""
        self._permits = permits
        self.name = name
        self._refusal = refusal
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._is_cancelled = False
        self._running: tuple[tuple[Watch, int], ...] = ()

    def run(
        self, work: "Callable[[int, float | None], Result]", seconds: "float | None"
    ) -> "Result":
        """Wait for a permit; return work(its index, the seconds that are left).

        Raises:
            BusyError: closed, or not to wait. CancelledError, TimedOutError: before its turn came.
        """
        deadline = None if seconds is None else monotonic() + seconds
        try:
            while True:
                index = self._wait(deadline)
                permit = self._permits[index]
                free = permit.free
                key = True in free
                try:
                    del free[key]
                except KeyError:
                    continue  # somebody who did not have to wait was faster
                try:
                    return self._work(work, index, deadline)
                finally:
                    if not permit.is_closed:
                        free[not permit.waiters] = None
                    permit.wake_first()
        finally:
            self._leave()

    def _work(
        self,
        work: "Callable[[int, float | None], Result]",
        index: int,
        deadline: "float | None",
    ) -> "Result":
        """Work with a permit that is held."""
        self._leave()
        watch = self._permits[index].watch
        watch.call += 1
        self._running = ((watch, watch.call),)
        try:
            self._require_going_on(deadline)
            return work(index, None if deadline is None else max(deadline - monotonic(), 0.001))
        finally:
            self._running = ()

    def _wait(self, deadline: "float | None") -> int:
        """Return the index of a permit that is free for this caller."""
        own: weakref.ref[Any] = weakref.ref(self)
        while True:
            for index, permit in enumerate(self._permits):
                if permit.is_closed:
                    raise closed(self.name)
                if own not in permit.waiters:  # in a forked child, not any more
                    permit.waiters.append(own)
                if permit.free and permit.all()[:1] == [self]:
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
        """Leave all lines; whoever comes first now looks whether a permit is free."""
        for permit in self._permits:
            permit.remove(weakref.ref(self))
            if permit.free:
                permit.wake_first()

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
