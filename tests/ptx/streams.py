"""Streams and events of ``pycuda.driver``: when what was asked is done.

In: what streams are asked, what they wait for. Out: it is done, in an order that CUDA allows. Not
done here: what it is (``fake_driver``).

CUDA promises the order within a stream, and what events say. ``Machine.order`` chooses among what
is left: ``AT_ONCE`` does everything when it is asked. ``LATE`` does nothing before somebody waits
for it: what counts on another stream without an event then finds it has not begun. ``FIRST_LATE``
does so with the first stream alone: the others run ahead of it, as far as events let them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol, Self

AT_ONCE, LATE, FIRST_LATE = "at once", "late", "first late"


class Streams(Protocol):
    """What streams know of their machine."""

    order: str
    streams: list[Stream]

    def note(self, call: str) -> None:
        """Count a call, or fail it."""
        ...


class Stream:
    """``pycuda.driver.Stream``; ``done``: how many of its tasks are."""

    def __init__(self, machine: Streams) -> None:
        self._machine = machine
        self._tasks: deque[Callable[[], None]] = deque()
        self.asked = self.done = 0
        self._is_late = machine.order == LATE or (
            machine.order == FIRST_LATE and not machine.streams
        )
        machine.streams.append(self)

    def ask(self, task: Callable[[], None]) -> None:
        """Do it, now or later."""
        self._tasks.append(task)
        self.asked += 1
        if not self._is_late:
            self.catch_up()

    def catch_up(self, until: int | None = None) -> None:
        """Do what was asked, or the first ``until`` tasks since the stream was made."""
        while self._tasks and (until is None or self.done < until):
            self.done += 1
            self._tasks.popleft()()

    def synchronize(self) -> None:
        """Wait for all that was asked of it."""
        self._machine.note("synchronize")
        self.catch_up()

    def wait_for_event(self, event: Event) -> None:
        """Do what is asked from now on behind the event."""
        self.ask(event.catch_up)


class Event:
    """``pycuda.driver.Event``: a point of a stream."""

    def __init__(self, machine: Streams, flags: int = 0) -> None:
        del flags
        self._machine = machine
        self._stream: Stream | None = None
        self._until = 0

    def record(self, stream: Stream) -> Self:
        """Stand behind what the stream was asked."""
        self._stream, self._until = stream, stream.asked
        return self

    def synchronize(self) -> Self:
        """Wait for it."""
        self._machine.note("event")
        self.catch_up()
        return self

    def catch_up(self) -> None:
        """Do what stands before it."""
        if self._stream is not None:
            self._stream.catch_up(self._until)
