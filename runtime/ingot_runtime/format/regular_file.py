"""Files that others named, opened so that nothing there can make us wait.

In: a path. Out: a descriptor of a regular file. Not done here: reading.
"""

import errno
import os
import stat


def open_without_waiting(path: str, flags: int = 0) -> int:
    """Open `path` for reading, with more `flags` of ``os.open``.

    Raises:
        OSError: it cannot be opened, or is a folder, a named pipe, a device. ValueError: no path at all.
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
