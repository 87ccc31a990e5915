"""What the index lets into and out of its database: rows of bytes, nothing else.

In: keys and values. Out: columns, and back. Not done here: the database (``index_database``), seals
(``index``).

diskcache would unpickle what a row says is a pickle (CVE-2025-69872), and read or remove the file
that a row names, wherever it is. Whoever can write to the cache's folder would run code, or read
files, as its user. Here a row is bytes or it is refused.
"""

from __future__ import annotations

from typing import Any

from diskcache import UNKNOWN, Disk
from diskcache.core import MODE_RAW

from ingot_artifacts.store.trust import SEAL_BYTES

KEY_BYTES = 32
VALUE_BYTES_MAX = 32 << 10
ROW_BYTES_MAX = VALUE_BYTES_MAX + SEAL_BYTES


class IndexRowError(Exception):
    """A row that this program never writes."""


def is_key(key: object) -> bool:
    """Whether ``key`` is 32 bytes."""
    return type(key) is bytes and len(key) == KEY_BYTES


def row_bytes(mode: object, filename: object, value: object) -> bytes:
    """Return the value of a row as it lies in the database.

    Raises:
        IndexRowError: it is not inline bytes.
    """
    if (
        mode != MODE_RAW
        or filename is not None
        or type(value) is not bytes
        or len(value) > ROW_BYTES_MAX
    ):
        raise IndexRowError("a row of the index is not inline bytes")
    return value


class IndexDisk(Disk):  # type: ignore[misc]  # diskcache has no types
    """Bytes only, inline only, never pickle, never a file."""

    def put(self, key: object) -> Any:
        """Return the columns of a key."""
        if not is_key(key):
            raise IndexRowError("a key of the index is 32 bytes")
        assert type(key) is bytes
        return key, True

    def get(self, key: object, raw: object) -> bytes:
        """Return the key of a row."""
        if not raw or not is_key(key):
            raise IndexRowError("a key of the index is 32 bytes")
        assert type(key) is bytes
        return key

    def store(self, value: object, read: object, key: object = UNKNOWN) -> Any:
        """Return the columns of a value."""
        del read, key
        return 0, MODE_RAW, None, row_bytes(MODE_RAW, None, value)

    def fetch(self, mode: object, filename: object, value: object, read: object) -> bytes:
        """Return the value of a row."""
        del read
        return row_bytes(mode, filename, value)

    def filename(self, key: object = UNKNOWN, value: object = UNKNOWN) -> Any:
        """Refuse: no value has a file."""
        del key, value
        raise IndexRowError("a value of the index has no file")

    def remove(self, file_path: object) -> None:
        """Leave the file that a row names alone: it is not ours."""
