"""A layer of a cache in memory: what every kind of layer must do, without files, databases and
other processes.

In: digests, bytes, keys, rows. Out: the same. Not done here: anything that outlives the process.
Implements ``Layer``.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence

from ingot_artifacts.store.index.index_layer import Row

_HOUR_SECONDS = 3600


class MemoryBlobs:
    """Implements ``BlobLayer``."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def find(self, digest: str, known: memoryview | None = None) -> tuple[memoryview | None, bool]:
        """Return what is right; drop what is wrong."""
        del known
        content = self.contents.get(digest)
        if content is None:
            return None, False
        return (memoryview(content), False) if self.verify(digest) else (None, True)

    def size_bytes(self, digest: str) -> int | None:
        """Return the size of what is there."""
        return len(self.contents[digest]) if digest in self.contents else None

    def write(self, digest: str, content: memoryview) -> None:
        """Keep a copy."""
        self.contents[digest] = bytes(content)

    def verify(self, digest: str) -> bool:
        """Drop what is wrong."""
        if digest in self.contents and hashlib.sha256(self.contents[digest]).hexdigest() != digest:
            del self.contents[digest]
            return False
        return True


class MemoryIndex:
    """Implements ``IndexLayer``."""

    read_only = False

    def __init__(self) -> None:
        self.content: dict[bytes, bytes] = {}
        self.used: dict[bytes, float] = {}
        self.numbers: dict[bytes, int] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return a row."""
        return self.content.get(key)

    def rows(self) -> Iterator[Row]:
        """Yield all rows."""
        for key in sorted(self.content):
            yield Row(self.numbers[key], key, self.content[key], self.used[key])

    def put_many(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep rows."""
        for key, content in rows:
            self.content[key], self.used[key] = content, time.time()
            self.numbers.setdefault(key, len(self.numbers))

    def delete(self, key: bytes) -> None:
        """Drop a row."""
        self.content.pop(key, None)

    def delete_rows(self, numbers: Iterable[int]) -> None:
        """Drop rows."""
        wanted = set(numbers)
        for key in [key for key in self.content if self.numbers[key] in wanted]:
            self.delete(key)

    def touch(self, keys: Sequence[bytes]) -> None:
        """Note uses."""
        now = time.time()
        for key in keys:
            if key in self.content and abs(now - self.used[key]) > _HOUR_SECONDS:
                self.used[key] = now

    def settle_times(self) -> None:
        """Bring uses back to now."""
        now = time.time()
        self.used = {key: min(used, now) for key, used in self.used.items()}

    def heal(self) -> bool:
        """Find nothing."""
        return False

    def close(self) -> None:
        """Leave it as it is."""


class MemoryLayer:
    """No other process can open it."""

    address = ""
    folders = ()

    def __init__(self) -> None:
        self.blobs = MemoryBlobs()
        self.index = MemoryIndex()
