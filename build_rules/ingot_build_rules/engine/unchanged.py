"""The no-op path: whether anything that a build looked at has changed since, found by looking at every file once.

In: what the last build saw. Out: what it said, or None. Not done here: anything else. Imports nothing that takes time: this runs
before the command knows its verb.

A file is the same while its size, inode and times are. A source that was younger than two seconds when it was seen is never taken
for the same: it could have changed again without any sign of it.
"""

import binascii
import os

TYPE_CHECKING = False  # `typing` costs milliseconds
if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAD = "ingot unchanged 1"
_SETTLED_NS = 2_000_000_000


def unchanged(path: str, key: str) -> str | None:
    """Return the text of the last build's summary, if ``path`` has one for ``key`` and every file is as it was."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            head, _, rest = file.read().partition("\n")
    except OSError:
        return None
    if head != f"{_HEAD} {binascii.crc32(rest.encode('utf-8', 'surrogateescape'))}":
        return None
    lines = rest.split("\n")
    if lines[0] != key:
        return None
    stat = os.stat
    try:
        for line in lines[2:]:
            stamp, name = line.split(" ", 1)
            found = stat(name)
            if stamp != f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}:{found.st_ctime_ns}":
                return None
    except (OSError, ValueError):
        return None
    return lines[1]


def remember(
    path: str, key: str, summary: str, sources: "Iterable[str]", outputs: "Iterable[str]", now_ns: int
) -> None:
    """Write what ``unchanged`` looks at: a line of ``summary``, the paths of files and folders; nothing if one is too young."""
    lines = [key, summary]
    try:
        for name, is_source in [*((name, True) for name in sources), *((name, False) for name in outputs)]:
            found = os.stat(name)
            if "\n" in name or (is_source and max(found.st_mtime_ns, found.st_ctime_ns) > now_ns - _SETTLED_NS):
                forget(path)
                return
            lines.append(f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}:{found.st_ctime_ns} {name}")
        rest = "\n".join(lines)
        temporary = f"{path}.{os.getpid()}.part"
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            file.write(f"{_HEAD} {binascii.crc32(rest.encode('utf-8', 'surrogateescape'))}\n{rest}")
        os.replace(temporary, path)
    except OSError:
        forget(path)


def forget(path: str) -> None:
    """Make the next build look closer."""
    try:  # noqa: SIM105  # importing contextlib costs a millisecond
        os.unlink(path)
    except OSError:
        pass
