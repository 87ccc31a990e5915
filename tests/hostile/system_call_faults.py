"""Every system call of load, run and close fails: once, and for ever from there on.

In: a bundle of ``tiny``, how many trials besides the first call of each kind (0: all). Out: a line
``verdict<tab>trial`` for each. Not done here: judging.

What cannot fail on Linux is left alone, and so is what the C library itself ends the process for
(the registration of rseq in a new thread); ``PLAUSIBLE`` is the list of the others.
"""

from __future__ import annotations

import errno
import random
import sys
from functools import partial

from tests.hostile import tracer, trials

SECONDS = 120.0
SESSIONS = ((3, "aot"), (1, "vm"), (2, "c"))  # threads, and the way to run
_FUTEX = 202
_FUTEX_WAITS = (0, 9)  # FUTEX_WAIT, FUTEX_WAIT_BITSET: a wake of memory that is there cannot fail
# Numbers of x86-64. EINTR is left out where the kernel restarts the call itself.
PLAUSIBLE: dict[int, tuple[str, tuple[int, ...]]] = {
    0: ("read", (errno.EIO, errno.EINTR, errno.ESTALE)),
    1: ("write", (errno.ENOSPC, errno.EIO, errno.EINTR, errno.ENOMEM)),
    3: ("close", (errno.EIO, errno.EINTR, errno.ENOSPC)),
    4: ("stat", (errno.EIO, errno.EACCES, errno.ESTALE, errno.ENOMEM)),
    5: ("fstat", (errno.EIO, errno.ESTALE, errno.ENOMEM)),
    8: ("lseek", (errno.EIO,)),
    9: (
        "mmap",
        (errno.ENOMEM, errno.EAGAIN, errno.EPERM, errno.EACCES, errno.ENODEV, errno.ENFILE),
    ),
    10: ("mprotect", (errno.ENOMEM, errno.EACCES)),
    11: ("munmap", (errno.ENOMEM,)),
    12: ("brk", (errno.ENOMEM,)),
    13: ("rt_sigaction", (errno.EINVAL,)),
    16: ("ioctl", (errno.EIO, errno.EPERM, errno.ENOTTY)),
    17: ("pread64", (errno.EIO, errno.EINTR, errno.ESTALE, errno.ENOMEM, errno.EAGAIN)),
    25: ("mremap", (errno.ENOMEM,)),
    28: ("madvise", (errno.ENOMEM, errno.EINVAL, errno.EIO, errno.EAGAIN, errno.ENOSYS)),
    56: ("clone", (errno.EAGAIN, errno.ENOMEM, errno.EPERM)),
    72: ("fcntl", (errno.EPERM, errno.EIO, errno.ENOSYS)),
    79: ("getcwd", (errno.ENOENT,)),
    89: ("readlink", (errno.EIO, errno.EACCES)),
    158: ("arch_prctl", (errno.EPERM, errno.ENOSYS)),
    202: ("futex", (errno.EAGAIN, errno.EINTR)),
    204: ("sched_getaffinity", (errno.EPERM, errno.ENOSYS, errno.EINVAL)),
    217: ("getdents64", (errno.EIO,)),
    230: ("clock_nanosleep", (errno.EINTR,)),
    257: (
        "openat",
        (
            errno.EMFILE,
            errno.ENFILE,
            errno.EIO,
            errno.EACCES,
            errno.EINTR,
            errno.ENOMEM,
            errno.ESTALE,
        ),
    ),
    262: ("newfstatat", (errno.EIO, errno.EACCES, errno.ESTALE, errno.ENOMEM)),
    302: ("prlimit64", (errno.EPERM,)),
    318: ("getrandom", (errno.EAGAIN, errno.ENOSYS)),
    319: (
        "memfd_create",
        (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSYS, errno.EPERM, errno.EINVAL),
    ),
    332: ("statx", (errno.EIO, errno.ENOSYS, errno.ESTALE)),
    435: ("clone3", (errno.EAGAIN, errno.ENOSYS, errno.ENOMEM, errno.EPERM)),
}
# No kernel interrupts for ever.
_ONCE_ONLY = (errno.EINTR, errno.EAGAIN)
# The only ways back from a mapping, from a handler: where these fail, it stays.
_WAYS_BACK = (11, 13)


def can_fail(call: tracer.Call) -> bool:
    """Whether the kernel may refuse this call."""
    if call.number == _FUTEX:
        return call.arguments[1] & 0x7F in _FUTEX_WAITS
    return call.number in PLAUSIBLE


class Plan:
    """Fail the call of index ``at`` of those that can fail, by ``error``; ``forever``: all later
    ones of its kind too."""

    def __init__(self, at: int, error: int, forever: bool) -> None:
        self.at, self.error, self.forever = at, error, forever
        self.seen: list[int] = []
        self.number = -1

    def __call__(self, call: tracer.Call) -> int:
        """Return the errno for `call`, or 0."""
        if not can_fail(call):
            return 0
        self.seen.append(call.number)
        # Threads do not come in the same order every time: the next call takes the fault that may
        # have it.
        if self.number < 0 and len(self.seen) > self.at and self.error in PLAUSIBLE[call.number][1]:
            self.number = call.number
            return self.error
        return self.error if self.forever and call.number == self.number else 0


def life(path: str, threads: int, executor: str, close: bool) -> str:
    """One trial in its child: load, run, close under faults; then nothing may be left, and
    everything must work."""
    before = trials.held()
    tracer.mark(begin=True)
    end = trials.verdict(lambda: trials.load_run_close(path, threads, executor, close=close))
    tracer.mark(begin=False)
    left = trials.leaked(before)
    second = trials.verdict(lambda: trials.load_run_close(path, threads, executor))
    if not trials.is_good(end):
        return end
    return left or (end if second == "right" else f"second load after {end}: {second}")


def plans(seen: list[int]) -> list[tuple[int, int, bool]]:
    """Return all (index, errno, for ever) for the calls that a run without faults makes."""
    return [
        (at, error, forever)
        for at, number in enumerate(seen)
        for error in PLAUSIBLE[number][1]
        for forever in ((False,) if error in _ONCE_ONLY else (False, True))
    ]


def main() -> None:
    """Try, and print."""
    path, count = sys.argv[1], int(sys.argv[2])
    trials.prepare()
    for threads, executor in SESSIONS:
        assert trials.load_run_close(path, threads, executor)
    refused = tracer.is_permitted()
    assert not refused, refused
    for threads, executor in SESSIONS:
        probe = Plan(sys.maxsize, 0, forever=False)
        end = tracer.traced(partial(life, path, threads, executor, close=True), probe, SECONDS)
        assert end == "right", end
        chosen = plans(probe.seen)
        if count:
            firsts = {probe.seen.index(number) for number in probe.seen}
            chosen = [each for each in chosen if each[0] in firsts] + random.Random(
                executor
            ).sample(chosen, count)
        for at, error, forever in chosen:
            plan = Plan(at, error, forever)
            end = tracer.traced(
                partial(life, path, threads, executor, close=at % 2 == 0), plan, SECONDS
            )
            if end.startswith("leak") and plan.number in _WAYS_BACK:
                end = "right"
            name = PLAUSIBLE[plan.number][0] if plan.number >= 0 else "no call"
            how = "for ever" if forever else "once"
            print(
                f"{end}\t{name} {errno.errorcode[error]} {how} at {at}, {threads} threads, {executor}",
                flush=True,
            )


if __name__ == "__main__":
    main()
