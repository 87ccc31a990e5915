"""Blobs: bytes known by their sha256, found in one of several layers, written to the first,
verified when they are read.

In: bytes. Out: their digest, and the bytes again. Not done here: where a layer keeps them
(``folder_blobs``), which are still needed (``collect``), a check of all (``scrub``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from ingot_artifacts.errors import ArtifactError
from ingot_artifacts.store.blob_file import is_digest
from ingot_runtime.lazy_dataclass import dataclass

_DO = "build again: what made it runs again"


@dataclass(frozen=True, slots=True)
class BlobRef:
    """A blob, as the place of an error."""

    digest: str

    def __str__(self) -> str:
        return f"blob {self.digest}"


class StoreError(ArtifactError):
    """A blob cannot be had."""

    @property
    def digest(self) -> str:
        """The blob that the error is about; "" if it is about none."""
        where = self.parts[1]
        return where.digest if isinstance(where, BlobRef) else ""


class BlobMissing(StoreError):
    """No layer has the blob."""


class BlobDamaged(StoreError):
    """The blob's file had other bytes; it is in quarantine now."""


def blob_missing(digest: str) -> BlobMissing:
    """Return the error of a blob that no layer has."""
    why = "expected a file of this name, got none"
    return BlobMissing("the cache has lost an artifact", BlobRef(digest), why, _DO)


def blob_damaged(digest: str) -> BlobDamaged:
    """Return the error of a blob that is in quarantine now."""
    why = "expected bytes with this sha256, got others"
    return BlobDamaged("the cache had a damaged artifact", BlobRef(digest), why, _DO)


class BlobLayer(Protocol):
    """One place that blobs lie in. Digests are 64 hex digits; several processes may use one place
    at once."""

    def find(self, digest: str, known: memoryview | None = None) -> tuple[memoryview | None, bool]:
        """Return the right bytes, if they are here, and whether wrong ones had to be moved out of
        the way.

        ``known``: the right bytes, where the caller has them; they may be returned instead. What is
        wrong and cannot be moved counts as missing from then on.
        """
        ...

    def size_bytes(self, digest: str) -> int | None:
        """Return the size of what is here, which ``find`` may still refuse; None where nothing
        is."""
        ...

    def write(self, digest: str, content: memoryview) -> None:
        """Keep bytes with this digest, whole or not at all.

        Raises:
            OutputError: no permission, no space. ``StoreReadOnly`` in a layer that is only read.
        """
        ...

    def verify(self, digest: str) -> bool:
        """Read a blob in any case; whether it is right, or gone. One that is not is moved out of
        the way."""
        ...


class BlobStore:
    """The blobs of several layers; the first one is written to."""

    def __init__(self, layers: Sequence[BlobLayer]) -> None:
        self._layers = tuple(layers)

    def put(self, content: bytes | memoryview) -> str:
        """Keep ``content`` (contiguous); return its digest. Nothing is written where a layer has
        the same bytes already.

        Raises:
            OutputError: no permission, no space; nothing is left behind. ``StoreReadOnly`` in a
                cache that is only read.
        """
        view = memoryview(content)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        digest = hashlib.sha256(view).hexdigest()
        if not any(layer.find(digest, view)[0] is not None for layer in self._layers):
            self._layers[0].write(digest, view)
        return digest

    def get(self, digest: str) -> memoryview:
        """Return the bytes, verified; those of 64 KiB and more are mapped.

        Raises:
            BlobMissing: no layer has it, or ``digest`` is none.
            BlobDamaged: a layer had other bytes, which are out of the way now, and no layer has the
                right ones.
        """
        damaged = False
        for layer in self._layers if is_digest(digest) else ():
            found, moved = layer.find(digest)
            if found is not None:
                return found
            damaged |= moved
        raise blob_damaged(digest) if damaged else blob_missing(digest)

    def has(self, digest: str) -> bool:
        """Whether a layer has something there; ``get`` may still find it damaged."""
        return self.size_bytes(digest) is not None

    def size_bytes(self, digest: str) -> int | None:
        """Return the size of what is there; None where ``has`` says no."""
        for layer in self._layers if is_digest(digest) else ():
            size_bytes = layer.size_bytes(digest)
            if size_bytes is not None:
                return size_bytes
        return None

    def verify(self, digest: str) -> bool:
        """Read a blob of the first layer in any case; whether it is right, or gone."""
        return self._layers[0].verify(digest)
