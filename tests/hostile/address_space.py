"""Load and run under limits of address space, from none to plenty.
``python -m tests.hostile.address_space BUNDLE POINTS``

In: a bundle of ``tiny``, the number of limits for each kind of session. Out: a line
``verdict<tab>trial`` for each. Not done here: judging.
"""

from __future__ import annotations

import contextlib
import resource
import sys
from functools import partial
from pathlib import Path

from tests.hostile import trials

from ingot_runtime.format.sha256 import sha256

SECONDS = 120.0
KINDS = ((4, "aot"), (4, "vm"), (1, "aot"), (1, "vm"), (4, "c"), (1, "c"))
_LEAST_HEAP_BYTES = 1 << 15  # below, the interpreter itself cannot say what it lacks
_MOST_HEAP_BYTES = 4 << 20
_PIECES_MAX = 1 << 15
_MOST_BYTES = (
    200 << 20
)  # more than a session with 4 threads reserves: their stacks and the C library's memory for each


def life(path: str, threads: int, executor: str, room_bytes: int, full: bool) -> str:
    """One trial in its child: a whole life with `room_bytes` more than now; `full`: of a heap that
    has no other left."""
    before = trials.held()
    used_bytes = (
        int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        * resource.getpagesize()
    )
    kept = fill_heap(used_bytes, room_bytes) if full else None
    if not full:
        resource.setrlimit(resource.RLIMIT_AS, (used_bytes + room_bytes, resource.RLIM_INFINITY))
    end = trials.verdict(partial(trials.load_run_close, path, threads, executor))
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    del kept
    left = trials.leaked(before)
    second = trials.verdict(partial(trials.load_run_close, path, threads, executor))
    if not trials.is_good(end):
        return end
    return left or (end if second == "right" else f"second load after {end}: {second}")


def fill_heap(used_bytes: int, room_bytes: int) -> list[list[bytes]]:
    """Take all memory that the interpreter and the C library have, and give `room_bytes` of it
    back, in pieces of all sizes."""
    sizes = (1 << 20, 1 << 16, 4000, *range(496, 0, -16))
    kept = [[b""] * _PIECES_MAX for _ in sizes]
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes, resource.RLIM_INFINITY))
    for size, taken in zip(sizes, kept, strict=True):
        with contextlib.suppress(MemoryError):
            for at in range(_PIECES_MAX):
                taken[at] = bytes(size)
    for size, taken in zip(sizes, kept, strict=True):
        for at in range(room_bytes // size // len(sizes)):
            taken[at] = b""
    return kept


def hash_in_full_heap() -> str:
    """Hash small bytes until there is no memory for another digest; return how it ends."""
    used_bytes = (
        int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        * resource.getpagesize()
    )
    counts, digests = range(_PIECES_MAX), [b""] * _PIECES_MAX
    kept = fill_heap(used_bytes, 0)
    try:
        for at in counts:
            digests[at] = sha256(b"data")
    except MemoryError:
        kept.clear()
        return "MemoryError"
    return "enough memory"


def main() -> None:
    """Try, and print."""
    path, points = sys.argv[1], int(sys.argv[2])
    trials.prepare()
    for threads, executor in KINDS:
        assert trials.load_run_close(path, threads, executor)
        for point in range(points):
            full = point % 2 == 1
            share = (point / points) ** 3  # most of the limits where most of the requests are
            room_bytes = (
                int(_LEAST_HEAP_BYTES + _MOST_HEAP_BYTES * share)
                if full
                else int(_MOST_BYTES * share)
            )
            end = trials.in_child(partial(life, path, threads, executor, room_bytes, full), SECONDS)
            where = "a full heap" if full else "addresses"
            print(
                f"{end}\t{room_bytes} bytes of {where}, {threads} threads, {executor}", flush=True
            )


if __name__ == "__main__":
    main()
