"""Which keys have sealed records of a cache, by names that say nothing of the keys.

In: a cache's folder, whose seals count. Out: names. Not done here: what is told of them
(``foreign_records``), judging a record (``index``).

One name a line in the file ``sealed_by``. Nothing is believed because of it: it explains why a
cache that was restored from elsewhere seems empty.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress

from ingot_artifacts.store.trust import Trust

_NAME = re.compile(r"[0-9a-f]{8}")
_READ_BYTES_MAX = 64 << 10
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def seal_name(trust: Trust) -> str:
    """Return the name of the key that seals what is written now."""
    return hashlib.sha256(b"name of a key of ingot\n" + trust.sealing_key).hexdigest()[:8]


def note_seal(folder: str, trust: Trust) -> None:
    """Say that this key seals records here from now on; no error where that cannot be written."""
    name = seal_name(trust)
    if name in seal_names(folder):
        return
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _FLAGS
        descriptor = os.open(_path(folder), flags, 0o600)
        try:
            os.write(descriptor, f"{name}\n".encode())
        finally:
            os.close(descriptor)


def seal_names(folder: str) -> list[str]:
    """Return the names of all keys that have sealed records in a cache's inner folder, as far as is
    known, the first one first."""
    with suppress(OSError):
        descriptor = os.open(_path(folder), os.O_RDONLY | _FLAGS)
        try:
            lines = os.read(descriptor, _READ_BYTES_MAX).decode("ascii", "replace").splitlines()
        finally:
            os.close(descriptor)
        return [line for line in dict.fromkeys(lines) if _NAME.fullmatch(line)]
    return []


def _path(folder: str) -> str:
    return os.path.join(folder, "sealed_by")
