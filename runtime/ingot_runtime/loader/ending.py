"""The interpreter's end, which daemon threads must not meet inside of native code.

In: watches, lanes, functions whose native code calls back. Out: their calls ended, and the threads.
Not done here: joining other threads.

Native code asks the interpreter for signals and memory; one that has ended answers by SIGSEGV.
"""

import atexit
from _thread import get_ident
from sys import _current_frames as stacks  # pyright: ignore[reportPrivateUsage]  # no other way
from time import monotonic, sleep
from weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_DEADLINE_SECONDS = 10  # for a device that hangs
native: "set[CodeType]" = set()  # which ask `stay_out` first
_told: "set[ref[Any]]" = set()
_last_threads: "list[int]" = []


def tell(who: "Any") -> None:
    """Call `who.end()` at the end, if it still lives."""
    _told.add(ref(who, _told.discard))


def stay_out() -> int:
    """Return 0; raise ``SystemExit`` in all threads but the one that ends the interpreter."""
    if _last_threads and get_ident() not in _last_threads:
        raise SystemExit
    return 0


def _is_any_inside(own: int) -> bool:
    for thread, top in stacks().items():
        frame = None if thread == own else top
        while frame:
            if frame.f_code in native:
                return True
            frame = frame.f_back
    return False


def told() -> "list[Any]":
    """Return those that live."""
    return [who for who in [reference() for reference in list(_told)] if who]


def _end() -> None:
    own = get_ident()
    _last_threads.append(own)
    for who in told():
        who.end()
    deadline = monotonic() + _DEADLINE_SECONDS
    while _is_any_inside(own) and monotonic() < deadline:
        sleep(0.001)


atexit.register(_end)
