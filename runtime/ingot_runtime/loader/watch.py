"""How calls of one session are stopped: a flag, a deadline, signal handlers that CPython noted.

In: an image. Out: ``Watch``: the address for `main`, and the exception when a call ended early. Not
done here: looking (native, ``ingot_watch``: between launches, on every jump back, between the
pieces of a long launch).
"""

import ctypes
import time

from ..errors import CancelledError, InputError, TimedOutError
from ..format import abi
from . import system
from .ending import WATCHES, register_ending
from .image import Image

_CLOCK_MONOTONIC_COARSE = 6
_NANOSECONDS = 1_000_000_000
_POLL_INTERVAL_NANOSECONDS = 50_000_000
_FOREVER_SECONDS = 1e9
_POLL_FUNCTIONS = {
    "ensure": "PyGILState_Ensure",
    "release": "PyGILState_Release",
    "check_signals": "PyErr_CheckSignals",
    "fetch": "PyErr_Fetch",
}
_RESTORE = ctypes.pythonapi.PyErr_Restore
_RESTORE.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_RESTORE.restype = None


class Watch:
    """``address`` is that of ``abi.WATCH``; ``call`` counts the calls of the session."""

    __slots__ = (
        "__weakref__", "_asked", "_cancel", "_deadline", "_kept", "_memory", "_timed_out", "address",
        "call",
    )  # fmt: skip

    def __init__(self, image: Image) -> None:
        size, at, poll_at = abi.WATCH.size_bytes, abi.WATCH.offsets, abi.PYTHON_POLL.offsets
        self.call = 0
        self._asked = -1  # the call that `cancel` was meant for
        memory = self._memory = ctypes.create_string_buffer(size + abi.PYTHON_POLL.size_bytes)
        self.address = ctypes.addressof(memory)
        self._cancel = ctypes.c_uint32.from_buffer(memory, at["cancel"])
        self._timed_out = ctypes.c_uint32.from_buffer(memory, at["timed_out"])
        self._deadline = ctypes.c_uint64.from_buffer(memory, at["deadline"])
        self._kept = (ctypes.c_uint64 * 3).from_buffer(memory, size + poll_at["type"])
        words = {
            at["clock"]: system.address_of_libc("clock_gettime"),
            at["poll"]: image.exports["python_poll"],
            at["poll_context"]: self.address + size,
            at["poll_interval"]: _POLL_INTERVAL_NANOSECONDS,
        }
        for name, function in _POLL_FUNCTIONS.items():
            words[size + poll_at[name]] = _address_of_python(function)
        for offset, value in words.items():
            ctypes.c_uint64.from_buffer(memory, offset).value = value
        register_ending(self, WATCHES)

    @property
    def is_set(self) -> bool:
        """Whether the call is to end, or has ended early."""
        return bool(self._cancel.value)

    @property
    def has_raised(self) -> bool:
        """Whether a signal handler has raised an exception in the call."""
        return bool(self._kept[0])

    def cancel(self, call: int) -> None:
        """Let the call of that number end; if it is over when the flag is set, nothing happens."""
        self._asked = call
        self._cancel.value = 1

    def end(self) -> None:
        """Let what runs end; it is made again where it may be, see ``ending``."""
        self._cancel.value = 1

    def goes_on(self) -> bool:
        """Whether the call that the flag has ended must be made again: it meant one before."""
        if self._timed_out.value or self._kept[0] or self._asked == self.call:
            return False
        self._cancel.value = 0
        if self._asked == self.call:  # somebody has asked for the present one meanwhile
            self._cancel.value = 1
        return True

    def set_timeout(self, seconds: object) -> None:
        """Let calls end that many seconds from now, never for None; ``InputError`` else."""
        if seconds is None:
            self._deadline.value = self._timed_out.value = 0
            return
        nanoseconds = int(checked_timeout(seconds) * _NANOSECONDS)
        self._deadline.value = time.clock_gettime_ns(_CLOCK_MONOTONIC_COARSE) + nanoseconds

    def look(self) -> None:
        """Notice a deadline from Python, where the vm steps."""
        deadline = self._deadline.value
        if deadline and time.clock_gettime_ns(_CLOCK_MONOTONIC_COARSE) >= deadline:
            self._timed_out.value = self._cancel.value = 1

    def ended(self, name: str) -> Exception:
        """Return the error of a call that ended early, and forget it; raise a signal handler's."""
        timed_out = bool(self._timed_out.value)
        self._timed_out.value = self._cancel.value = 0
        kept = tuple(self._kept)
        if kept[0]:
            self._kept[0] = self._kept[1] = self._kept[2] = 0
            # ctypes finds the exception set, and raises it.
            _RESTORE(*(value or None for value in kept))
        if timed_out:
            why = "its timeout is over; its outputs are lost"
            do = "give it more time, or smaller inputs"
            return TimedOutError("the call took too long", name, why, do)
        why = "session.cancel() was called; its outputs are lost"
        return CancelledError("the call was cancelled", name, why)


def checked_timeout(seconds: object) -> float:
    """Return `seconds`, or as many as nobody lives to see the end of; ``InputError`` else."""
    if isinstance(seconds, dict):
        why = "expected seconds above 0, got a dict, as inputs are"
        do = "give the inputs first, and no list of outputs: session.run(inputs)"
        raise InputError("bad timeout", "timeout", why, do)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise InputError("bad timeout", "timeout", f"expected seconds above 0, got {seconds!r}")
    return min(seconds, _FOREVER_SECONDS)


def _address_of_python(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
