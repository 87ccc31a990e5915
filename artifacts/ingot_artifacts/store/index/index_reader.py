"""An index that is only read: a lower layer, or a cache on a disk that nobody may write to.

In: a cache's folder, keys. Out: rows. Not done here: seals (``index``). Whatever is wrong with the
database makes it empty.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from urllib.parse import quote

from ingot_artifacts.errors import read_only_error
from ingot_artifacts.store.index.index_database import read_rows
from ingot_artifacts.store.index.index_disk import IndexRowError, row_bytes
from ingot_artifacts.store.index.index_layer import Row
from ingot_artifacts.store.index.index_schema import FAILURES

_MODES = ("mode=ro", "immutable=1")
"""The first sees what a live writer has not yet moved into the file; it needs to make a file beside
it, the second does not."""


class IndexReader:
    """One folder's rows, to be read. Implements ``IndexLayer``."""

    read_only = True

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.path = os.path.join(folder, "index", "cache.db")
        self._database: sqlite3.Connection | None = None
        self._process = 0

    def get(self, key: bytes) -> bytes | None:
        """Return a row's content; None where there is none, or it is no good."""
        with suppress(*FAILURES, IndexRowError):
            database = self._connect()
            if database is not None:
                query = "SELECT mode, filename, value FROM Cache WHERE key = ? AND raw = 1"
                for mode, filename, value in database.execute(query, (key,)):
                    return row_bytes(mode, filename, value)
        return None

    def rows(self) -> Iterator[Row]:
        """Yield all rows, sorted by key."""
        with suppress(*FAILURES):
            database = self._connect()
            if database is not None:
                yield from read_rows(database)

    def put_many(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Refuse."""
        del rows
        raise read_only_error(self._folder)

    def delete(self, key: bytes) -> None:
        """Leave the row where it is."""

    def delete_rows(self, numbers: Iterable[int]) -> None:
        """Refuse."""
        del numbers
        raise read_only_error(self._folder)

    def touch(self, keys: Sequence[bytes]) -> None:
        """Note nothing."""

    def settle_times(self) -> None:
        """Refuse."""
        raise read_only_error(self._folder)

    def heal(self) -> bool:
        """Refuse."""
        raise read_only_error(self._folder)

    def close(self) -> None:
        """Close the database."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _connect(self) -> sqlite3.Connection | None:
        if self._process != os.getpid():  # a connection does not survive a fork
            self._process = os.getpid()
            self._database = self._open()
        return self._database

    def _open(self) -> sqlite3.Connection | None:
        if not all(map(_is_plain, (self.path, self.path + "-wal"))):
            return None
        for mode in _MODES:
            with suppress(*FAILURES):
                uri = f"file:{quote(os.path.abspath(self.path))}?{mode}"
                database = sqlite3.connect(
                    uri, uri=True, timeout=60, isolation_level=None, check_same_thread=False
                )
                database.execute("SELECT key FROM Cache LIMIT 1").fetchall()
                return database
        return None


def _is_plain(path: str) -> bool:
    """Whether a file is there that is no link, or nothing: what is behind a link is not the
    cache's."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return True
