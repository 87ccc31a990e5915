"""Blobs: bytes known by their sha256, one read-only file each, written whole or not at all, verified when they are read.

In: bytes. Out: their digest, and the bytes again. Not done here: which blobs are still needed (``collect``), a check of all
(``scrub``). What is damaged in our own folder is moved to quarantine, and whoever made it makes it again.

Layout: ``cas/sha256/ab/<62 digits>``, ``tmp/``, ``quarantine/``. Lower folders are read, never written. A mapped file that
another program shortens while it is in use is not guarded against.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Sequence

from ingot_artifacts.errors import ArtifactError, StoreReadOnly
from ingot_artifacts.store.atomic import output_error
from ingot_artifacts.store.blob_file import Identity, blob_path, is_digest, read_whole, write_whole
from ingot_artifacts.store.quarantine import set_aside

# The file is of no use: a link, a folder, a pipe, no permission, a broken disk; or its folder is none.
_USELESS = (
    errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EACCES, errno.EPERM, errno.EIO, errno.ENODEV, errno.ENOTDIR,
)  # fmt: skip

_COMPARED_BYTES = 32 << 10


class StoreError(ArtifactError):
    """A blob cannot be had; ``digest`` names it."""

    def __init__(self, digest: str, what: str, why: str) -> None:
        super().__init__(what, f"blob {digest}", why, "build again: what made it runs again")
        self.digest = digest


class BlobMissing(StoreError):
    """No layer has the blob."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest, "the cache has lost an artifact", "expected a file of this name, got none")

    def __reduce__(self) -> tuple[type[BlobMissing], tuple[str]]:  # type: ignore[override]  # one part makes it
        return type(self), (self.digest,)


class BlobDamaged(StoreError):
    """The blob's file had other bytes; it is in quarantine now."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest, "the cache had a damaged artifact", "expected bytes with this sha256, got others")

    def __reduce__(self) -> tuple[type[BlobDamaged], tuple[str]]:  # type: ignore[override]  # one part makes it
        return type(self), (self.digest,)


class BlobStore:
    """The blobs of a folder and of the folders below it; several processes may use one folder at once."""

    def __init__(self, folder: str, lower: Sequence[str] = (), read_only: bool = False) -> None:
        self.folder = folder
        self.read_only = read_only
        self._layers = (folder, *lower)
        # Of the layers that we cannot heal: what is there is damaged, and counts as missing.
        self._useless: set[tuple[str, str]] = set()
        self._verified: dict[str, Identity] = {}
        self._plain_shards: set[tuple[str, str]] = set()

    def put(self, content: bytes | memoryview) -> str:
        """Keep ``content`` (contiguous); return its digest. Nothing is written where the same bytes are already.

        Raises:
            OutputError: no permission, no space; nothing is left behind. ``StoreReadOnly`` in a cache that is only read.
        """
        view = memoryview(content)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        digest = hashlib.sha256(view).hexdigest()
        found, _ = self._find(digest, view)
        if found is None:
            if self.read_only:
                raise StoreReadOnly(self.folder)
            self._write(digest, view)
        return digest

    def get(self, digest: str) -> memoryview:
        """Return the bytes, verified; those of 64 KiB and more are mapped.

        Raises:
            BlobMissing: no layer has it, or ``digest`` is none.
            BlobDamaged: the upper layer had other bytes, and no lower one has it.
        """
        found, damaged = self._find(digest) if is_digest(digest) else (None, False)
        if found is None:
            raise BlobDamaged(digest) if damaged else BlobMissing(digest)
        return found

    def has(self, digest: str) -> bool:
        """Whether a file is there; ``get`` may still find it damaged."""
        return self.size_bytes(digest) is not None

    def size_bytes(self, digest: str) -> int | None:
        """Return the size of the file that is there; None where ``has`` says no."""
        layers = self._layers_of(digest) if is_digest(digest) else ()
        sizes = (_size_bytes(blob_path(layer, digest)) for layer in layers)
        return next((size for size in sizes if size is not None), None)

    def verify(self, digest: str) -> bool:
        """Read a blob of the upper layer in any case; whether it is right, or gone. One that is not is discarded."""
        try:
            content, _ = self._read(self.folder, digest)
            if hashlib.sha256(content).hexdigest() == digest:
                return True
        except OSError as error:
            if error.errno == errno.ENOENT:
                return True
            if error.errno not in _USELESS:
                raise _unreadable(self.folder, error) from error
        self._discard(self.folder, digest)
        return False

    def _find(self, digest: str, known: memoryview | None = None) -> tuple[memoryview | None, bool]:
        """Return the right bytes, which may be ``known``, if a layer has them, and whether wrong ones had to be moved out of our own layer."""
        damaged = False
        for layer in self._layers_of(digest):
            try:
                content, identity = self._read(layer, digest)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in _USELESS:
                    raise _unreadable(layer, error) from error
            else:
                if self._verified.get(digest) == identity or _is_right(content, digest, known):
                    self._verified[digest] = identity
                    return content, damaged
            damaged |= self._discard(layer, digest)
        return None, damaged

    def _read(self, layer: str, digest: str) -> tuple[memoryview, Identity]:
        """Read a blob's file.

        Raises:
            OSError: not there, not a regular file, or its folder is a link.
        """
        path, shard = blob_path(layer, digest), (layer, digest[:2])
        if shard not in self._plain_shards and os.path.islink(os.path.dirname(path)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        found = read_whole(path)
        self._plain_shards.add(shard)
        return found

    def _layers_of(self, digest: str) -> list[str]:
        return [layer for layer in self._layers if (layer, digest) not in self._useless]

    def _discard(self, layer: str, digest: str) -> bool:
        """Move a blob that is no good out of the way; False where that cannot be: it is remembered as useless."""
        path = blob_path(layer, digest)
        if layer == self.folder and not self.read_only:
            shard = os.path.dirname(path)
            if os.path.islink(shard) or (os.path.lexists(shard) and not os.path.isdir(shard)):
                return set_aside(layer, shard, digest[:2])
            if set_aside(layer, path, digest):
                return True
        self._useless.add((layer, digest))
        return False

    def _write(self, digest: str, view: memoryview) -> None:
        path = blob_path(self.folder, digest)
        try:
            try:
                write_whole(self.folder, path, view)
            except FileNotFoundError:
                for folder in (os.path.join(self.folder, "tmp"), os.path.dirname(path)):
                    os.makedirs(folder, 0o700, exist_ok=True)
                write_whole(self.folder, path, view)
        except OSError as error:
            raise output_error(self.folder, path, error) from error
        self._useless.discard((self.folder, digest))


def _is_right(content: memoryview, digest: str, known: memoryview | None) -> bool:
    """Compare with bytes that are known, which takes a fifth of the time; views compare item by item, small copies of them do not."""
    if known is None:
        return hashlib.sha256(content).hexdigest() == digest
    steps = range(0, len(known), _COMPARED_BYTES)
    return len(content) == len(known) and all(
        bytes(content[at : at + _COMPARED_BYTES]) == bytes(known[at : at + _COMPARED_BYTES]) for at in steps
    )


def _size_bytes(path: str) -> int | None:
    """Return the size of a regular file; None where there is none."""
    try:
        state = os.lstat(path)
    except OSError:
        return None
    return state.st_size if stat.S_ISREG(state.st_mode) else None


def _unreadable(folder: str, error: OSError) -> ArtifactError:
    return ArtifactError("the cache cannot be read", folder, error.strerror or str(error), "check the machine's limits")
