"""A descriptor with an owner: it goes with its last reference, and only if it is still ours.

In: a path. Out: ``BundleFile``, ``Stamp``; for other files that somebody named, a descriptor. Not
done here: what is in the file (``source``).

The interpreter itself makes and closes the descriptor, so Ctrl-C cannot lose it.
"""

import errno
import os
import stat
import struct
import time
from _io import FileIO

from ..errors import FileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Stamp = tuple[int, int, int]

# What ends a program that holds a bundle: where the bundle begins, its size, eight bytes.
TRAILER = struct.Struct("<QQ8s")
TRAILER_MAGIC = b"\x8aINGOTX\n"
PROGRAM_MAGIC = b"\x7fELF"
_CLOCK_REALTIME_COARSE = 5  # what the kernel takes the times of files from
_TICKS_MAX = 20
_TICK_SECONDS = 0.001


class QuietFile(FileIO):
    """A file that the interpreter closes with its last reference, without a word: the slot takes
    what `FileIO` would warn by."""

    __slots__ = ("_finalizing",)


class BundleFile:
    """An open file that knows which one it is: ``number`` is its descriptor, ``stamp`` what it was
    when it was opened. It closes with the last reference."""

    __slots__ = ("_file", "identity", "number", "stamp")

    def __init__(self, file: QuietFile) -> None:
        self._file = file
        self.number = file.fileno()
        found = os.fstat(self.number)
        self.identity = found.st_dev, found.st_ino
        self.stamp = stamp(found)  # last: what has no stamp is closed by the interpreter alone

    def is_ours(
        self, fstat: "Callable[[int], os.stat_result]" = os.fstat, no_file: int = errno.EBADF
    ) -> bool:
        """Whether the descriptor still leads to the file: somebody may have closed it.

        The defaults are for an interpreter that ends: its modules go before the last objects.
        """
        try:
            found = fstat(self.number)
        except OSError as error:
            return error.errno != no_file  # a disk that cannot tell is no sign of another file
        return (found.st_dev, found.st_ino) == self.identity

    def close(self) -> None:
        """Close the descriptor, unless it is somebody else's by now."""
        if self._file.closed:
            return
        if not self.is_ours():
            _keep_for_ever(self._file)
            return
        try:
            self._file.close()
        except OSError:
            return  # nothing was written that could be lost, and the descriptor is gone anyway

    def __del__(self) -> None:
        if hasattr(self, "stamp"):
            self.close()


def _keep_for_ever(file: QuietFile) -> None:
    """Let nothing, not even the interpreter's end, close the descriptor: it is somebody else's."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(file))


def stamp(status: os.stat_result) -> "Stamp":
    """Return what a write, a truncation, or a change of the file's own record moves."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def open_regular(path: str) -> BundleFile:
    """Open a regular file for reading; whatever is changed from now on has another stamp.

    Raises:
        FileError: missing, no permission, a folder, a pipe, a device.
    """
    try:
        # Opening a pipe would wait, opening a device may do anything.
        _require_regular(os.stat(path), path)
        file = BundleFile(QuietFile(path))
        _require_regular(os.fstat(file.number), path)
        file.stamp = settled(lambda: stamp(os.fstat(file.number)))
    except (OSError, ValueError) as error:
        raise unreadable("open", path, error) from error
    return file


def _require_regular(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        do = "give a file made by `ingot compile`"
        raise FileError(f"cannot open {path!r}", path, "not a regular file", do)


def settled(look: "Callable[[], Stamp]") -> "Stamp":
    """Return the stamp that `look` finds when the clock that the kernel stamps with is beyond it.

    Whatever is changed from then on has another stamp. It takes a few milliseconds where the file
    is brand-new.
    """
    found = look()
    for _ in range(_TICKS_MAX):  # a server's clock may be ahead of ours
        if time.clock_gettime_ns(_CLOCK_REALTIME_COARSE) > found[2]:
            break
        time.sleep(_TICK_SECONDS)
        found = look()
    return found


def unreadable(verb: str, path: str, error: Exception) -> FileError:
    """Return the error for a file that the system does not let us open or read."""
    why = getattr(error, "strerror", None) or str(error)
    do = "check the disk, and copy the bundle again"
    if verb == "open":
        do = "check the path and its permissions"
    return FileError(f"cannot {verb} {path!r}", path, why, do)


def open_without_waiting(path: str, flags: int = 0) -> int:
    """Open `path` for reading, with more `flags` of ``os.open``.

    Raises:
        OSError: it cannot be opened, or is a folder, a named pipe, a device. ValueError: no path at
            all.
    """
    # O_NONBLOCK: a named pipe waits for a writer otherwise; it has no effect on a regular file.
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a regular file", path)
