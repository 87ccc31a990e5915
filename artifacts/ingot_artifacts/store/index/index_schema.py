"""What a database of the index looks like: settings, tables, our mark; and the repair of settings
that others changed.

In: an open SQLite database. Out: nothing, or an error where it is not ours. Not done here: files,
quarantine.

diskcache keeps its settings in the database, where the last opener wins, runs those that start with
``sqlite_`` as PRAGMAs and sets any other as an attribute. So they are put right before it sees
them.
"""

from __future__ import annotations

import sqlite3

# What a damaged database makes Python's module raise: even the text of an error may come from it
# and not be a text.
FAILURES = (sqlite3.Error, sqlite3.Warning, ValueError, TypeError)
SETTINGS: dict[str, int | str] = {
    "statistics": 0,
    "tag_index": 0,
    "eviction_policy": "none",
    "size_limit": 1 << 60,
    "cull_limit": 0,
    "sqlite_auto_vacuum": 1,
    "sqlite_cache_size": 1 << 13,
    "sqlite_journal_mode": "wal",
    # A mapped database that somebody shortens would kill the process.
    "sqlite_mmap_size": 0,
    # NORMAL: a power cut loses the last records and never the database. Records wait for the disk
    # only when the log is moved into the file.
    "sqlite_synchronous": 1,
    "disk_min_file_size": 1 << 31,
    "disk_pickle_protocol": 0,
}
_COUNTERS = ("count", "hits", "misses", "size")
_APPLICATION_ID = 0x494E4731  # "ING1"
_OBJECTS = frozenset(
    {
        ("table", "Settings"),
        ("table", "Cache"),
        ("index", "sqlite_autoindex_Settings_1"),
        ("index", "Cache_key_raw"),
        ("index", "Cache_expire_time"),
        # What diskcache makes when somebody opens the folder with settings of his own.
        ("index", "Cache_access_count"),
        ("index", "Cache_access_time"),
        ("index", "Cache_store_time"),
        ("index", "Cache_tag_rowid"),
        ("trigger", "Settings_count_insert"),
        ("trigger", "Settings_count_delete"),
        ("trigger", "Settings_size_insert"),
        ("trigger", "Settings_size_update"),
        ("trigger", "Settings_size_delete"),
    }
)


def prepare(database: sqlite3.Connection) -> None:
    """Mark an empty database as ours, or put the settings of ours right.

    Raises:
        sqlite3.DatabaseError: damaged, not a database, or somebody else's.
    """
    objects = {
        (kind, name) for kind, name in database.execute("SELECT type, name FROM sqlite_master")
    }
    ((mark,),) = database.execute("PRAGMA application_id").fetchall()
    if not objects and not mark:
        database.execute(f"PRAGMA auto_vacuum = {SETTINGS['sqlite_auto_vacuum']}")
        database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        return
    if mark != _APPLICATION_ID or not objects <= _OBJECTS:
        raise sqlite3.DatabaseError("not a database of ours")
    if ("table", "Cache") in objects:
        database.execute(
            "SELECT rowid, key, raw, access_time, mode, filename, value FROM Cache LIMIT 1"
        ).fetchall()
    if ("table", "Settings") in objects:
        _put_settings_right(database)


def is_sound(database: sqlite3.Connection) -> bool:
    """Whether all pages and indices of the database agree with each other."""
    return database.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]


def _put_settings_right(database: sqlite3.Connection) -> None:
    rows = database.execute("SELECT key, value FROM Settings").fetchall()
    found = {key: value for key, value in rows if key not in _COUNTERS}
    counters = {key: value for key, value in rows if key in _COUNTERS}
    if found == SETTINGS and all(type(value) is int for value in counters.values()):
        return
    database.execute("BEGIN IMMEDIATE")
    database.execute("DELETE FROM Settings")
    right = SETTINGS | {key: value if type(value) is int else 0 for key, value in counters.items()}
    database.executemany("INSERT INTO Settings VALUES (?, ?)", sorted(right.items()))
    database.execute("COMMIT")
