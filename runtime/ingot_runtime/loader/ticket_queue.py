"""One owner at a time, and no exception, fork or dead thread can keep the others out.

In: nothing. Out: ``TicketQueue``. Not done here: anything that takes long; who waits asks again and
again.

A lock would not do: an exception between taking it and the ``try`` behind would block everybody. A
ticket is over when it is ended, when its last reference is gone, or in another process.
"""

import os
import time
import weakref
from _thread import get_ident

_WAIT_SECONDS = 0.0002


class Ticket:
    """The right to go on, until `end`."""

    __slots__ = ("__weakref__", "_place")

    def __init__(self) -> None:
        self._place = _Place(self)

    @property
    def place(self) -> "_Place":
        """Where it stands in the order of all."""
        return self._place

    def end(self) -> None:
        """Let the next one come; may be done again."""
        self._place.is_over = True


class _Place:
    """``following``: the one place behind, which is given away when this ticket is over."""

    __slots__ = ("_holder", "_process", "following", "is_over", "thread")

    def __init__(self, ticket: Ticket) -> None:
        self._holder = weakref.ref(ticket)
        self._process = os.getpid()
        self.thread = get_ident()
        self.following: dict[int, _Place] = {}
        self.is_over = False

    def is_taken(self) -> bool:
        """Whether somebody has this ticket now."""
        return not self.is_over and self._process == os.getpid() and self._holder() is not None


class TicketQueue:
    """An order of tickets; a thread that has one may take another, as its finalizers do."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = {0: Ticket().place}  # nobody holds it: it is over

    def take(self) -> Ticket:
        """Wait for those before, and return a ticket of one's own."""
        ticket = Ticket()
        at = self._last[0]
        while True:
            if at.is_taken():
                if at.thread == ticket.place.thread:
                    return ticket
                time.sleep(_WAIT_SECONDS)
                continue
            # One step of the interpreter: one of all gets it.
            following = at.following.setdefault(0, ticket.place)
            if following is ticket.place:
                self._last[0] = following
                return ticket
            at = following
