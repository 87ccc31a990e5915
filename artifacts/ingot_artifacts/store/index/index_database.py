"""The database of the index: diskcache over SQLite, opened safely, healed when it is damaged,
shared by several processes.

In: a cache's folder; keys and rows of bytes. Out: rows. Not done here: seals, lower layers
(``index``).

A damaged or foreign database is moved to quarantine, a new one is made: what it knew is built
again. Never open the file
itself: closing it would drop SQLite's locks of this process.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Protocol, cast

import diskcache

from ingot_artifacts.errors import OutputError
from ingot_artifacts.store.atomic import output_error
from ingot_artifacts.store.index.index_disk import IndexDisk, IndexRowError, is_key, row_bytes
from ingot_artifacts.store.index.index_layer import Row
from ingot_artifacts.store.index.index_schema import FAILURES, SETTINGS, is_sound, prepare
from ingot_artifacts.store.quarantine import set_aside
from ingot_artifacts.store.tally import add_size

_WAIT_SECONDS = 60
_TOUCH_SECONDS = 3600
_TOUCHED_TOGETHER = 500
_STALE = (
    "SELECT rowid FROM Cache "
    "WHERE raw = 1 AND (access_time IS NULL OR abs(access_time - ?) > ?) AND key IN ({})"
)
_ROWS = "SELECT rowid, key, raw, mode, filename, value, access_time FROM Cache ORDER BY key"
# What says that the content is damaged or foreign. All else (locked, no space, no permission) says
# nothing about it.
_DAMAGE = (
    sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT,
)  # fmt: skip
_DAMAGE_READ = (
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
)
_Failure = (*FAILURES, diskcache.Timeout)


class _DiskCache(Protocol):
    """What is used of ``diskcache.Cache``."""

    def get(self, key: bytes) -> bytes | None: ...
    def set(self, key: bytes, value: bytes) -> bool: ...
    def delete(self, key: bytes) -> bool: ...
    def transact(self) -> Any: ...
    def close(self) -> None: ...


class IndexDatabase:
    """One folder's rows, to be read and written. Implements ``IndexLayer``."""

    read_only = False

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._directory = os.path.join(folder, "index")
        self.path = os.path.join(self._directory, diskcache.core.DBNAME)
        self._cache = self._open(suspect=False)

    def get(self, key: bytes) -> bytes | None:
        """Return a row's content; a row or a database that is no good is removed, and counts as
        missing."""
        for _ in range(2):
            try:
                return self._cache.get(key)
            except IndexRowError:
                self.delete(key)
                return None
            except _Failure as error:
                if not self._healed(error):
                    return None
        return None

    def put_many(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Write rows, all or none.

        Raises:
            OutputError: no space, no permission, locked for a minute.
        """
        if (
            _inode(self.path) != self._inode
        ):  # another process has found it damaged, or it was deleted
            self.heal()
        try:
            self._write(rows)
        except _Failure as error:
            if not self._healed(error):
                raise self._output_error(error) from error
            try:
                self._write(rows)
            except _Failure as again:
                raise self._output_error(again) from again

    def delete(self, key: bytes) -> None:
        """Remove a row if there is one, as far as the disk lets us: who asks takes it for missing
        anyway."""
        try:
            self._cache.delete(key)
        except _Failure as error:
            self._healed(error)

    def rows(self) -> Iterator[Row]:
        """Yield all rows, sorted by key, damaged ones too; a damaged database ends early."""
        with suppress(*FAILURES), self._connected() as database:
            yield from read_rows(database)

    def delete_rows(self, numbers: Iterable[int]) -> None:
        """Remove rows by their numbers, or all if that shows that the database is damaged.

        Raises:
            OutputError: no permission, locked for a minute.
        """
        try:
            with self._connected() as database:
                database.execute("BEGIN IMMEDIATE")
                database.executemany(
                    "DELETE FROM Cache WHERE rowid = ?", ((number,) for number in numbers)
                )
                database.execute("COMMIT")
        except FAILURES as error:
            if not self._healed(error):
                raise self._output_error(error) from error

    def touch(self, keys: Sequence[bytes]) -> None:
        """Note that rows are used now; those noted within the hour are left alone. A clock that was
        set back is believed."""
        now = time.time()
        # What is lost here is an order of eviction, no result: a full disk or a long lock is no
        # error.
        with suppress(*FAILURES), self._connected() as database:
            stale: list[tuple[float, int]] = []
            for start in range(0, len(keys), _TOUCHED_TOGETHER):
                some = keys[start : start + _TOUCHED_TOGETHER]
                query = _STALE.format(",".join("?" * len(some)))
                stale += [
                    (now, number)
                    for (number,) in database.execute(query, (now, _TOUCH_SECONDS, *some))
                ]
            if stale:
                database.execute("BEGIN IMMEDIATE")
                database.executemany("UPDATE Cache SET access_time = ? WHERE rowid = ?", stale)
                database.execute("COMMIT")

    def settle_times(self) -> None:
        """Set uses that lie ahead to now; no error if that cannot be."""
        now = time.time()
        with suppress(*FAILURES), self._connected() as database:
            database.execute("UPDATE Cache SET access_time = ? WHERE access_time > ?", (now, now))

    def heal(self) -> bool:
        """Check all pages; whether the database was damaged, and is new now."""
        before = self._inode
        self._cache.close()
        self._cache = self._open(suspect=True)
        return self._inode != before

    def close(self) -> None:
        """Close the database."""
        self._cache.close()

    def _write(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        add_size(self._folder, sum(len(content) for _, content in rows))
        try:
            with self._cache.transact():
                for key, content in rows:
                    self._cache.set(key, content)
        except _Failure:
            self._cache.close()  # a transaction whose end failed is still open
            raise

    def _healed(self, error: Exception) -> bool:
        """Whether it is worth trying again: the error may come from damage, and the database is
        sound now."""
        if not _is_damage(error):
            return False
        with suppress(OutputError):
            self.heal()
            return True
        return False

    def _open(self, *, suspect: bool) -> _DiskCache:
        try:
            os.makedirs(self._directory, 0o700, exist_ok=True)
            with self._opening():
                try:
                    return self._open_checked(suspect=suspect)
                except _Failure as error:
                    if not _is_damage(error):
                        raise
                    set_aside(self._folder, self._directory, "index")
                    os.makedirs(self._directory, 0o700, exist_ok=True)
                    return self._open_checked(suspect=False)
        except OSError as error:
            raise output_error(self._folder, self._directory, error) from error
        except _Failure as error:
            raise self._output_error(error) from error

    def _open_checked(self, *, suspect: bool) -> _DiskCache:
        with os.scandir(self._directory) as entries:
            if not all(entry.is_file(follow_symlinks=False) for entry in entries):
                raise sqlite3.DatabaseError("a folder or a link among the database's files")
        with self._connected() as database:
            if suspect and not is_sound(database):
                raise sqlite3.DatabaseError("damaged")
            prepare(database)
        settings: dict[str, Any] = dict(SETTINGS)
        cache = diskcache.Cache(self._directory, timeout=_WAIT_SECONDS, disk=IndexDisk, **settings)
        self._inode = _inode(self.path)
        return cast("_DiskCache", cache)

    @contextmanager
    def _opening(self) -> Generator[None]:
        """Let one process at a time open, judge and replace the database."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(os.path.join(self._folder, "index.lock"), flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        """Open a connection of our own, for what diskcache has no call for."""
        with closing(
            sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        ) as database:
            database.execute(f"PRAGMA synchronous = {SETTINGS['sqlite_synchronous']}")
            yield database

    def _output_error(self, error: Exception) -> OutputError:
        root = _root(error)
        do = "free space, or name another folder for the cache"
        if getattr(root, "sqlite_errorcode", 0) & 0xFF in (
            sqlite3.SQLITE_BUSY,
            sqlite3.SQLITE_LOCKED,
        ):
            do = "see which process holds it, or name another folder for the cache"
        return OutputError(
            "cannot write the cache's index", self.path, str(root) or type(root).__name__, do
        )


def read_rows(database: sqlite3.Connection) -> Iterator[Row]:
    """Yield the rows of a database, sorted by key.

    Raises:
        sqlite3.Error: damaged.
    """
    database.text_factory = bytes  # damaged text is no error
    for number, key, raw, mode, filename, value, used in database.execute(_ROWS):
        try:
            content = row_bytes(mode, filename, value)
        except IndexRowError:
            content = None
        when = float(used) if isinstance(used, int | float) else 0.0
        yield Row(number, key if raw == 1 and is_key(key) else None, content, when)


def _inode(path: str) -> int:
    """Return what tells a database from the one that takes its place; 0 where there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _root(error: BaseException) -> BaseException:
    """Return the first error of a chain: diskcache hides it behind a timeout, or behind a rollback
    that failed too."""
    while isinstance(error.__context__, sqlite3.Error):
        error = error.__context__
    return error


def _is_damage(error: BaseException) -> bool:
    """Whether an error comes from the database's content; errors without a code are those of
    ``index_schema``."""
    code = int(getattr(_root(error), "sqlite_errorcode", sqlite3.SQLITE_ERROR))
    return code & 0xFF in _DAMAGE or code in _DAMAGE_READ
