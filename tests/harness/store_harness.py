"""Caches for tests of the store: filled with records as the engine writes them, and built again
after damage.

In: a folder. Out: caches, records. Not done here: assertions.
"""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingot_artifacts.store.blobs import BlobStore
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.folder_blobs import FolderBlobs
from ingot_artifacts.store.folder_layer import FolderLayer
from ingot_runtime.format.msgpack_canonical import pack

if TYPE_CHECKING:
    from ingot_artifacts.store.index.index import ActionIndex


def key_of(name: object) -> bytes:
    """Return a key."""
    return hashlib.sha256(f"key {name}".encode()).digest()


def digest_of(content: bytes) -> str:
    """Return a digest."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True)
class Action:
    """What a build would run: its key, rule and results; ``large`` ones have a record of more than
    32 KiB."""

    key: bytes
    rule: str
    contents: tuple[bytes, ...]
    large: bool = False

    def record(self) -> bytes:
        """Return the record's bytes."""
        refs = sorted(map(digest_of, self.contents))
        padding = {"result": bytes(40_000)} if self.large else {}
        return pack(
            {"refs": refs, "rule": self.rule, "ingredients": {"name": self.key.hex()}, **padding}
        )

    def run(self, cache: Cache) -> None:
        """Store the results, then the record."""
        for content in self.contents:
            cache.blobs.put(content)
        value = self.record()
        if self.large:
            value = pack({"blob": cache.blobs.put(value)})
        cache.index.put(self.key, value)


def actions(count: int, seed: int = 0, size_bytes_max: int = 2000) -> list[Action]:
    """Make actions of three rules; neighbours share a result, every 16th result is large, every
    20th record."""
    generator = random.Random(seed)
    made: list[Action] = []
    shared = b""
    for number in range(count):
        size_bytes = generator.randrange(1, 100_000 if number % 16 == 0 else size_bytes_max)
        own = generator.randbytes(size_bytes)
        contents = (own, shared) if shared and number % 3 == 0 else (own,)
        made.append(Action(key_of((seed, number)), f"rule{number % 3}", contents, number % 20 == 7))
        shared = own
    return made


def build(cache: Cache, wanted: Sequence[Action]) -> int:
    """Do what an engine does: take what the cache has, run the rest; return how many ran. Every
    result is compared."""
    from ingot_artifacts.store.blobs import StoreError
    from ingot_artifacts.store.records import RecordError, read_facts

    ran = 0
    for action in wanted:
        value = cache.index.get(action.key)
        try:
            facts = None if value is None else read_facts(value, cache.blobs)
            for digest in facts.refs if facts else ():
                assert digest_of(bytes(cache.blobs.get(digest))) == digest
        except (StoreError, RecordError):
            facts = None
        if facts is None:
            ran += 1
            action.run(cache)
            assert [
                bytes(cache.blobs.get(digest_of(content))) for content in action.contents
            ] == list(action.contents)
    return ran


def sql(cache: Cache, *statements: tuple[str, Sequence[Any]]) -> None:
    """Change the index's database behind its back."""
    with closing(sqlite3.connect(os.path.join(cache.folder, "index", "cache.db"))) as database:
        for statement, values in statements:
            database.execute(statement, values)
        database.commit()


def blobs_of(folder: str | Path, *lower: Path, read_only: bool = False) -> BlobStore:
    """Return the blobs of a cache's inner folder, over those of others."""
    below = [FolderBlobs(str(path), read_only=True) for path in lower]
    return BlobStore([FolderBlobs(str(folder), read_only=read_only), *below])


def index_of(folder: str | Path, *lower: str | Path, read_only: bool = False) -> ActionIndex:
    """Return the index of a cache's inner folder, over those of others."""
    from ingot_artifacts.store.index.index import ActionIndex

    below = [FolderLayer(str(path), read_only=True) for path in lower]
    return ActionIndex(
        [layer.index for layer in (FolderLayer(str(folder), read_only=read_only), *below)]
    )


def python(code: str, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def start_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start code in a process of its own, its output piped."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


# For the end of a program's imports: the interpreter itself may be root's alone.
UNPRIVILEGED = """
import os
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""


def seal_off(folder: Path) -> None:
    """Make a folder readable for everybody and writable for nobody but root."""
    for path, _, files in os.walk(folder):
        os.chmod(path, 0o555)
        for file in files:
            os.chmod(os.path.join(path, file), 0o444)


def open_up(folder: Path) -> None:
    """Undo ``seal_off``, so that the folder can be deleted."""
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
