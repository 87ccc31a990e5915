"""Calls of a session from coroutines: each waits and runs in a thread, and the event loop goes on.

In: a session's own way to run a call. Out: ``AsyncCalls``. Not done here: the order of calls
(``caller_queue``).

The threads are those of an executor of our own: calls that wait for their turn would fill the event
loop's. There are as many as sessions, and they end with the session.
"""

from asyncio import get_running_loop, timeout
from concurrent.futures import ThreadPoolExecutor

from ..errors import TimedOutError
from .caller_queue import Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Result = TypeVar("Result")


class AsyncCalls:
    """At most `count` calls at once; the others wait in order."""

    __slots__ = ("_count", "_executor", "_under_way")

    def __init__(self, count: int) -> None:
        self._count = count
        self._executor = ThreadPoolExecutor(count, "ingot")
        self._under_way: set[Waiter] = set()

    async def run(
        self, call: "Callable[[Waiter], Result]", waiter: Waiter, seconds: "float | None"
    ) -> "Result":
        """Return call(waiter). Where the coroutine is cancelled, the call ends soon.

        Raises:
            BusyError: it would have to wait for other coroutines, and may not. TimedOutError:
                `seconds` are over, from now on.
        """
        if len(self._under_way) >= self._count:
            waiter.require_may_wait()
        self._under_way.add(waiter)
        try:
            async with timeout(seconds):
                return await get_running_loop().run_in_executor(self._executor, call, waiter)
        except TimeoutError as error:
            if isinstance(error, TimedOutError):
                raise
            why = "its timeout is over; its outputs are lost"
            do = "give it more time, smaller inputs, or load more sessions"
            raise TimedOutError("the call took too long", waiter.name, why, do) from None
        finally:
            waiter.cancel()  # nothing happens where it is over
            self._under_way.discard(waiter)
