"""The interpreter's end, which no other thread must meet inside of native code.

In: contexts, watches, pools, functions whose native code calls back. Out: their calls ended, and
the threads. Not done here: joining other threads.

Native code asks the interpreter for signals and memory; one that has ended answers by SIGSEGV.
"""

import atexit
import os
from _thread import get_ident
from sys import _current_frames as stacks  # pyright: ignore[reportPrivateUsage]  # no other way
from time import sleep
from weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

CONTEXTS, WATCHES, POOLS = range(3)  # in the order in which they end
_INTERRUPTED = 130  # the exit code of a shell for Ctrl-C
native: "set[CodeType]" = set()  # which ask `stay_out` first
_registered: "tuple[set[ref[Any]], ...]" = (set(), set(), set())
_last_threads: "list[int]" = []


def register_ending(who: "Any", kind: int) -> None:
    """Call `who.end()` at the end, if it still lives; at once, if that has come."""
    _registered[kind].add(ref(who, _registered[kind].discard))
    if _last_threads:
        who.end()


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


def registered(kind: int) -> "list[Any]":
    """Return those that live."""
    return [who for who in [reference() for reference in list(_registered[kind])] if who]


def _end() -> None:
    """A context whose call has ended may not begin it again; so contexts end before watches, which
    end calls. Until then a call takes its watch back: that is set again, until nobody is inside,
    however long a device takes. Then workers have nothing to do, and go."""
    own = get_ident()
    _last_threads.append(own)
    for context in registered(CONTEXTS):
        context.end()
    try:
        while True:
            for watch in registered(WATCHES):
                watch.end()
            if not _is_any_inside(own):
                break
            sleep(0.001)
    except KeyboardInterrupt:  # whoever is inside must not see the rest
        os._exit(_INTERRUPTED)
    for pool in registered(POOLS):
        pool.end()


atexit.register(_end)
