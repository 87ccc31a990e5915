"""How much was written to a cache since somebody counted: one number in a file, which costs a
build nothing to read.

In: a cache's folder, sizes. Out: a sum that is never too small, as long as nobody but this program
writes there. Not done here: counting (``survey``), what follows from the sum (``limit``).

The sum is one line of fixed length in the file ``size``, changed under a lock. Writers add before
they write, so one that is killed leaves a sum that is too large, which a collection corrects.
Where there is no such line, or a count of it was never finished, nothing is known: somebody counts.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from ingot_runtime.lazy_dataclass import dataclass

_LINE = re.compile(rb"([=?]) (\d{20}) (\d{20}) (\d{20})\n")
_LINE_BYTES = 65
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Tally:
    """``size_bytes``: of blobs and records. ``missed_bytes``: the limit that the last collection
    did not reach, 0 if it did; ``kept_bytes``: what it had to leave."""

    size_bytes: int
    missed_bytes: int = 0
    kept_bytes: int = 0


def add_size(folder: str, size_bytes: int) -> None:
    """Note that so many bytes are about to be written below a cache's inner folder."""
    # What cannot be noted must not stop a build; a sum that may be wrong is better gone.
    try:
        with _locked(folder, create=False) as descriptor:
            found = _read(descriptor)
            if found is not None:
                known, tally = found
                sum_bytes = tally.size_bytes + size_bytes
                _write(descriptor, known, Tally(sum_bytes, tally.missed_bytes, tally.kept_bytes))
    except FileNotFoundError:
        return
    except OSError:
        with suppress(OSError):
            os.unlink(_path(folder))


def read_tally(folder: str) -> Tally | None:
    """Return the sum; None where it is not known."""
    with suppress(OSError), _locked(folder, create=False) as descriptor:
        found = _read(descriptor)
        return found[1] if found and found[0] else None
    return None


def set_tally(folder: str, tally: Tally) -> None:
    """Say what there is, in a cache that nobody else writes to now.

    Raises:
        OSError: no permission, no space.
    """
    with _locked(folder, create=True) as descriptor:
        _write(descriptor, True, tally)


def count_anew(folder: str, count: Callable[[], int]) -> Tally:
    """Count what is there, and keep the sum; what others write meanwhile is added, some of it twice.

    Raises:
        OSError: no permission, no space.
    """
    with _locked(folder, create=True) as descriptor:
        _write(descriptor, False, Tally(0))
    counted = count()
    with _locked(folder, create=True) as descriptor:
        found = _read(descriptor)
        tally = Tally(counted + (found[1].size_bytes if found else 0))
        _write(descriptor, True, tally)
    return tally


@contextmanager
def _locked(folder: str, *, create: bool) -> Generator[int]:
    flags = _FLAGS | (os.O_CREAT if create else 0)
    descriptor = os.open(_path(folder), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> tuple[bool, Tally] | None:
    """The line, and whether its count is finished; None where there is no such line."""
    found = _LINE.fullmatch(os.pread(descriptor, _LINE_BYTES + 1, 0))
    return (found[1] == b"=", Tally(*map(int, found.groups()[1:]))) if found else None


def _write(descriptor: int, known: bool, tally: Tally) -> None:
    numbers = (tally.size_bytes, tally.missed_bytes, tally.kept_bytes)
    line = b"%s %020d %020d %020d\n" % (b"=" if known else b"?", *numbers)
    os.pwrite(descriptor, line, 0)
    os.ftruncate(descriptor, len(line))


def _path(folder: str) -> str:
    return os.path.join(folder, "size")
