"""Lets system calls of a child fail, by ptrace(2): nothing but ctypes is needed. Linux on x86-64.

In: what the child does, and which calls are to fail. Out: the child's report and wait status. Not
done here: which errors are plausible (``system_call_faults``).
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

from tests.hostile.trials import ended, report

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.restype = ctypes.c_long
_LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_TRACEME, _CONT, _GETREGS, _SETREGS, _SYSCALL, _SETOPTIONS, _SYSCALL_INFO = (
    0,
    7,
    12,
    13,
    24,
    0x4200,
    0x420E,
)
_OPTIONS = 0x100001 | 8  # PTRACE_O_EXITKILL, TRACESYSGOOD, TRACECLONE
_WAIT_ALL = 0x40000000  # __WALL: threads too
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_ENTRY, _EXIT = 1, 2
_RAX, _ORIG_RAX, _RDI = 10, 15, 14  # places in user_regs_struct
_WORDS = 27
_PRCTL, _CLOSE, _BRK = 157, 3, 12
_MARK = 0x494E474F  # no operation of prctl(2)

Registers = ctypes.c_uint64 * _WORDS


@dataclass(frozen=True, slots=True)
class Call:
    """A system call about to be made: its ``number``, its six ``arguments``, whether the ``main``
    thread makes it."""

    number: int
    arguments: tuple[int, ...]
    main: bool


Decide = Callable[[Call], int]


def mark(begin: bool) -> None:
    """Say in the child that faults may come from now on, or that they may not any more."""
    _LIBC.prctl(_MARK, int(begin), 0, 0, 0)


def is_permitted() -> str:
    """Return why ptrace cannot be used here; "" if it can."""
    end = traced(lambda: "right", lambda _: 0, 60)
    return "" if end == "right" else end


def traced(body: Callable[[], str], decide: Decide, seconds: float) -> str:
    """Do `body` in a child; `decide` gives the errno of each call between the marks, 0 to let it
    be. Return the verdict."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        if _LIBC.ptrace(_TRACEME, 0, None, None):
            report(send, lambda: f"ptrace is refused: {os.strerror(ctypes.get_errno())}")
        os.kill(os.getpid(), signal.SIGSTOP)
        report(send, body)
    os.close(send)
    hung = False
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        status = _follow(child, decide)
    except TimeoutError:
        hung = True
        os.kill(child, signal.SIGKILL)
        status = _reap(child)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    with os.fdopen(receive, "rb") as pipe:
        return ended(pipe.read().decode(), status, hung=hung)


def _too_long(*_: object) -> None:
    raise TimeoutError


def _reap(child: int) -> int:
    while True:
        thread, status = os.waitpid(-1, _WAIT_ALL)
        if thread == child and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
            return status


def _ask(request: int, thread: int, address: int, data: object) -> int:
    return int(_LIBC.ptrace(request, thread, address, data))


class _Threads:
    """What the tracer knows of the child: whether faults may come, and which calls' results are to
    be replaced."""

    def __init__(self, child: int, decide: Decide) -> None:
        self.child = child
        self.decide = decide
        self.armed = False
        # For each thread, what its present call is to leave: a register and its value.
        self.results: dict[int, tuple[int, int]] = {}
        self.known = {child}
        self.info = (ctypes.c_uint64 * 11)()

    def stopped_at_call(self, thread: int) -> None:
        """Look at a system call, at its begin or its end."""
        _ask(_SYSCALL_INFO, thread, ctypes.sizeof(self.info), ctypes.addressof(self.info))
        kind = self.info[0] & 0xFF
        if kind == _ENTRY:
            self._begins(thread, Call(self.info[3], tuple(self.info[4:10]), thread == self.child))
        elif kind == _EXIT and thread in self.results:
            self._change(thread, *self.results.pop(thread))

    def _begins(self, thread: int, call: Call) -> None:
        if call.number == _PRCTL and call.arguments[0] == _MARK:
            self.armed = bool(call.arguments[1])
            return
        error = self.decide(call) if self.armed else 0
        if not error:
            return
        if call.number == _BRK:
            # Where it fails it returns what is, and so does this question. Its caller counts on
            # finding the argument where it was.
            self._change(thread, _RDI, 0)
            self.results[thread] = _RDI, call.arguments[0]
            return
        self.results[thread] = _RAX, -error
        if call.number != _CLOSE:  # one that fails has closed all the same
            self._change(thread, _ORIG_RAX, -1)

    def _change(self, thread: int, register: int, value: int) -> None:
        registers = Registers()
        _ask(_GETREGS, thread, 0, ctypes.addressof(registers))
        registers[register] = value & 0xFFFFFFFFFFFFFFFF
        _ask(_SETREGS, thread, 0, ctypes.addressof(registers))


def _follow(child: int, decide: Decide) -> int:
    """Drive the child to its end; return its wait status."""
    threads = _Threads(child, decide)
    _, status = os.waitpid(child, _WAIT_ALL)
    if not os.WIFSTOPPED(status):
        return status
    _ask(_SETOPTIONS, child, 0, _OPTIONS)
    _ask(_SYSCALL, child, 0, 0)
    while True:
        thread, status = os.waitpid(-1, _WAIT_ALL)
        if not os.WIFSTOPPED(status):
            if thread == child:
                return status
            continue
        number, event = os.WSTOPSIG(status), status >> 16
        passed = 0
        if number == _SYSCALL_STOP:
            threads.stopped_at_call(thread)
        elif not event and (thread in threads.known or number != signal.SIGSTOP):
            passed = number  # a signal for the child; a new thread begins with a stop that is ours
        threads.known.add(thread)
        _ask(_SYSCALL, thread, 0, passed)
