"""One blob's file: where it lies, reading it, writing it whole.

In: a folder, a digest, bytes. Out: paths, bytes, the file. Not done here: layers, verification,
quarantine (``blobs``).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress

from ingot_artifacts.store.mapping import map_file

Identity = tuple[int, int, int, int, int]
"""(device, inode, size, mtime_ns, ctime_ns): equal while nobody wrote to the file."""

_MAPPED_BYTES_MIN = 64 << 10
_DIGEST_DIGITS = 64
_HEX = frozenset("0123456789abcdef")
# NOFOLLOW: what a link points to is not ours. NONBLOCK: a pipe does not hold us up.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def is_digest(text: object) -> bool:
    """Whether ``text`` is 64 lower-case hex digits: nothing else may become a part of a path."""
    return isinstance(text, str) and len(text) == _DIGEST_DIGITS and _HEX.issuperset(text)


def blob_path(folder: str, digest: str) -> str:
    """Return the path of a blob below a cache's folder."""
    assert is_digest(digest)
    return f"{folder}/cas/sha256/{digest[:2]}/{digest[2:]}"


def identify(state: os.stat_result) -> Identity:
    """Return what tells that a file is still the same."""
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def read_whole(path: str) -> tuple[memoryview, Identity]:
    """Return a file's content, mapped if it is large.

    Raises:
        OSError: not there, or not a regular file.
    """
    descriptor = os.open(path, _READ)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EISDIR, "not a regular file", path)
        size_bytes = state.st_size
        if size_bytes >= _MAPPED_BYTES_MIN:
            return map_file(descriptor, size_bytes), identify(state)
        return memoryview(os.read(descriptor, size_bytes)), identify(state)
    finally:
        os.close(descriptor)


def write_atomically(folder: str, path: str, content: memoryview) -> None:
    """Write a read-only file under another name in ``folder/tmp``, rename it to ``path``; it is not
    synced.

    No blob is promised to outlive a power cut: what is left of one has another digest, is found
    when it is read, and made again.

    Raises:
        OSError: no folder, no permission, no space; nothing is left behind.
    """
    # Named before it is made: Ctrl-C while the system makes it finds the name here, and it is
    # removed.
    temporary = os.path.join(folder, "tmp", secrets.token_hex(12))
    try:
        descriptor = os.open(temporary, _WRITE, 0o444)
        try:
            while content:
                content = content[os.write(descriptor, content) :]
        finally:
            os.close(descriptor)
        _rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _rename(temporary: str, path: str) -> None:
    """Rename a file; into a folder that is made only now if there is none."""
    try:
        os.rename(temporary, path)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        os.rename(temporary, path)
