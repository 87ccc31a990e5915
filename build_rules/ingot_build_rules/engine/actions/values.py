"""Values of artifacts in one process: loaded from blobs, the latest kept in memory.

In: blobs by digest, a codec. Out: ``Values``. Not done here: files (``ingot_artifacts.store``),
keys.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Protocol, TypeVar

from ingot_artifacts.store.blobs import blob_damaged, blob_missing
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.codec import Codec

Value = TypeVar("Value")
_KEPT_COUNT = 512


class Blobs(Protocol):
    """Bytes by their sha256."""

    def put(self, content: bytes | memoryview) -> str:
        """Keep ``content``; return its digest."""
        ...

    def get(self, digest: str) -> memoryview:
        """Return the bytes, verified.

        Raises:
            StoreError: lost or damaged.
        """
        ...

    def has(self, digest: str) -> bool:
        """Whether the bytes seem to be there; ``get`` may still find them damaged."""
        ...

    def size_bytes(self, digest: str) -> int | None:
        """Return how many bytes seem to be there; None where ``has`` says no."""
        ...


class MemoryBlobs:
    """Blobs of one process, for builds without a cache."""

    def __init__(self) -> None:
        self._contents: dict[str, memoryview] = {}

    def put(self, content: bytes | memoryview) -> str:
        """Keep ``content``: a read-only view is kept as it is, without a copy."""
        view = memoryview(content)
        flat = view.cast("B") if view.nbytes else memoryview(b"")
        digest = hashlib.sha256(flat).hexdigest()
        if digest not in self._contents:
            self._contents[digest] = flat if flat.readonly else memoryview(bytes(flat))
        return digest

    def get(self, digest: str) -> memoryview:
        """Return the bytes."""
        if digest not in self._contents:
            raise blob_missing(digest)
        return self._contents[digest]

    def has(self, digest: str) -> bool:
        """Whether somebody put it."""
        return digest in self._contents

    def size_bytes(self, digest: str) -> int | None:
        """Return how many bytes somebody put."""
        return self._contents[digest].nbytes if digest in self._contents else None


class Values:
    """Keeps and loads; the ``_KEPT_COUNT`` values used last stay in memory."""

    def __init__(self, blobs: Blobs, codec: Codec) -> None:
        self.blobs = blobs
        self.codec = codec
        self._kept: OrderedDict[str, object] = OrderedDict()

    def keep(self, value: Value) -> Artifact[Value]:
        """Store a value as an artifact of its own."""
        content, refs = self.codec.encode(value)
        if refs:  # nobody would know that they are needed
            raise TypeError("an artifact inside an artifact: name it in the result")
        digest = self.blobs.put(content)
        self._remember(digest, value)
        return Artifact(digest, self)

    def keep_bytes(self, content: bytes | memoryview) -> Artifact[memoryview]:
        """Store bytes as they are (any shape, contiguous)."""
        return Artifact(self.blobs.put(content), self, raw=True)

    def load(self, digest: str, *, raw: bool) -> object:
        """Return the value of an artifact."""
        if raw:
            return self.blobs.get(digest)
        if digest in self._kept:
            self._kept.move_to_end(digest)
            return self._kept[digest]
        try:
            value = self.codec.decode(self.blobs.get(digest), self)
        except ValueError:  # right bytes of something else: whoever named them here was wrong
            raise blob_damaged(digest) from None
        self._remember(digest, value)
        return value

    def forget(self) -> None:
        """Drop what is kept in memory."""
        self._kept.clear()

    def _remember(self, digest: str, value: object) -> None:
        self._kept[digest] = value
        self._kept.move_to_end(digest)
        if len(self._kept) > _KEPT_COUNT:
            self._kept.popitem(last=False)
