"""The no-op path: whether anything that a build looked at has changed since, found by looking at
every file once.

In: what the last build saw, the user's key. Out: what it said, or None. Not done here: anything
else. Imports nothing that takes time: this runs before the command knows its verb.

What the last build saw is sealed: who can write to the project's memory, or brings one along with a
project, cannot say that nothing has changed.

A file is the same while its size, inode and times are. A source that was younger than two seconds
when the build began is never taken for the same: it could have changed again without any sign of
it.
"""

import os

TYPE_CHECKING = False  # `typing` costs milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = b"ingot unchanged 3 "
Stamp = tuple[int, int, int, int]
"""mtime_ns, size in bytes, inode, ctime_ns."""
SETTLED_NS = 2_000_000_000
"""A file system's clock may stand still for as long: what is younger could change again without any
sign of it."""


def seal(user_key: bytes, content: bytes) -> bytes:
    """Return what only who has the key can say of bytes, as hex digits; empty where this Python
    lacks what it takes."""
    try:
        from _blake2 import blake2b  # `hashlib` costs OpenSSL at import
    except ImportError:
        return b""
    return blake2b(content, digest_size=32, key=user_key).hexdigest().encode()


def unchanged(path: str, key: str, user_key: bytes) -> str | None:
    """Return the text of the last build's summary, if ``path`` has one for ``key`` and every file
    is as it was."""
    try:
        with open(path, "rb") as file:
            head, _, rest = file.read().partition(b"\n")
    except OSError:
        return None
    sealed = seal(user_key, rest)
    if not sealed or head != _HEAD + sealed:
        return None
    lines = rest.split(b"\n")
    if lines[0] != key.encode("utf-8", "surrogateescape"):
        return None
    stat = os.stat
    try:
        for line in lines[2:]:
            stamp, name = line.split(b" ", 1)
            found = stat(name)
            if stamp != b"%d:%d:%d:%d" % (
                found.st_mtime_ns,
                found.st_size,
                found.st_ino,
                found.st_ctime_ns,
            ):
                return None
    except (OSError, ValueError):
        return None
    return lines[1].decode("utf-8", "surrogateescape")


def remember(
    path: str,
    key: str,
    user_key: bytes,
    summary: str,
    sources: "Mapping[str, Stamp]",
    outputs: "Mapping[str, Stamp]",
    started_ns: int,
) -> None:
    """Write what ``unchanged`` looks at: a line of ``summary``, files and folders with what they
    looked like.

    Nothing is kept if a source had not been as it is for two seconds when the build began, at
    ``started_ns``.
    """
    if any(max(stamp[0], stamp[3]) > started_ns - SETTLED_NS for stamp in sources.values()):
        forget(path)
        return
    files = [
        f"{mtime}:{size}:{inode}:{ctime} {name}"
        for name, (mtime, size, inode, ctime) in {**sources, **outputs}.items()
    ]
    lines = [key, summary, *files]
    rest = "\n".join(lines).encode("utf-8", "surrogateescape")
    if any("\n" in line for line in lines) or not write_atomically(
        path, _HEAD + seal(user_key, rest) + b"\n" + rest
    ):
        forget(path)


def write_atomically(path: str, content: bytes) -> bool:
    """Replace a file in one step; return False, with nothing left behind, if the system refuses."""
    temporary = f"{path}.{os.urandom(8).hex()}.part"
    try:
        with open(temporary, "xb") as file:  # never through a link that waits there
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        forget(temporary)
        return False
    return True


def forget(path: str) -> None:
    """Make the next build look closer."""
    try:  # noqa: SIM105  # importing contextlib costs a millisecond
        os.unlink(path)
    except OSError:
        pass
