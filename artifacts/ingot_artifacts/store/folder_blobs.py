"""Blobs in a folder: one read-only file each, written whole or not at all, verified when they are
read. A ``BlobLayer``.

In: digests, bytes. Out: the bytes again. Not done here: digests of what is new, other layers
(``blobs``). What is damaged in a folder that may be written is moved to quarantine, and whoever
made it makes it again.

Layout: ``cas/sha256/ab/<62 digits>``, ``tmp/``, ``quarantine/``. A mapped file that another program
shortens while it is in use is not guarded against.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat

from ingot_artifacts.errors import ArtifactError, read_only_error
from ingot_artifacts.store.atomic import output_error
from ingot_artifacts.store.blob_file import Identity, blob_path, read_whole, write_atomically
from ingot_artifacts.store.quarantine import set_aside
from ingot_artifacts.store.tally import add_size

# The file is of no use: a link, a folder, a pipe, no permission, a broken disk; or its folder is
# none.
_USELESS = (
    errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EACCES, errno.EPERM, errno.EIO, errno.ENODEV,
    errno.ENOTDIR,
)  # fmt: skip

_COMPARED_BYTES = 32 << 10


class FolderBlobs:
    """The blobs of one folder; with ``read_only`` nothing in it is written, moved or deleted."""

    def __init__(self, folder: str, *, read_only: bool = False) -> None:
        self._folder = folder
        self._read_only = read_only
        # What is damaged and cannot be moved: it counts as missing.
        self._useless: set[str] = set()
        self._verified: dict[str, Identity] = {}
        self._plain_shards: set[str] = set()

    def find(self, digest: str, known: memoryview | None = None) -> tuple[memoryview | None, bool]:
        """Return the right bytes, which may be ``known``, and whether wrong ones had to be moved to
        quarantine."""
        if digest in self._useless:
            return None, False
        try:
            content, identity = self._read(digest)
        except FileNotFoundError:
            return None, False
        except OSError as error:
            if error.errno not in _USELESS:
                raise _unreadable(self._folder, error) from error
        else:
            if self._verified.get(digest) == identity or _is_right(content, digest, known):
                self._verified[digest] = identity
                return content, False
        return None, self._discard(digest)

    def size_bytes(self, digest: str) -> int | None:
        """Return the size of a blob's file; None where there is no regular file."""
        if digest in self._useless:
            return None
        try:
            state = os.lstat(blob_path(self._folder, digest))
        except OSError:
            return None
        return state.st_size if stat.S_ISREG(state.st_mode) else None

    def write(self, digest: str, content: memoryview) -> None:
        """Write a blob's file.

        Raises:
            OutputError: no permission, no space; nothing is left behind. ``StoreReadOnly`` in a
                folder that is only read.
        """
        if self._read_only:
            raise read_only_error(self._folder)
        path = blob_path(self._folder, digest)
        add_size(self._folder, content.nbytes)
        try:
            try:
                write_atomically(self._folder, path, content)
            except FileNotFoundError:
                os.makedirs(os.path.join(self._folder, "tmp"), 0o700, exist_ok=True)
                write_atomically(self._folder, path, content)
        except OSError as error:
            raise output_error(self._folder, path, error) from error
        self._useless.discard(digest)

    def verify(self, digest: str) -> bool:
        """Read a blob's file in any case; whether it is right, or gone. One that is not is
        discarded."""
        try:
            content, _ = self._read(digest)
            if hashlib.sha256(content).hexdigest() == digest:
                return True
        except OSError as error:
            if error.errno == errno.ENOENT:
                return True
            if error.errno not in _USELESS:
                raise _unreadable(self._folder, error) from error
        self._discard(digest)
        return False

    def _read(self, digest: str) -> tuple[memoryview, Identity]:
        """Read a blob's file.

        Raises:
            OSError: not there, not a regular file, or its folder is a link.
        """
        path, shard = blob_path(self._folder, digest), digest[:2]
        if shard not in self._plain_shards and os.path.islink(os.path.dirname(path)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        found = read_whole(path)
        self._plain_shards.add(shard)
        return found

    def _discard(self, digest: str) -> bool:
        """Move a blob that is no good out of the way; False where that cannot be: it is remembered
        as useless."""
        path = blob_path(self._folder, digest)
        if not self._read_only:
            shard = os.path.dirname(path)
            if os.path.islink(shard) or (os.path.lexists(shard) and not os.path.isdir(shard)):
                return set_aside(self._folder, shard, digest[:2])
            if set_aside(self._folder, path, digest):
                return True
        self._useless.add(digest)
        return False


def _is_right(content: memoryview, digest: str, known: memoryview | None) -> bool:
    """Compare with bytes that are known, which takes a fifth of the time; views compare item by
    item, small copies of them do not."""
    if known is None:
        return hashlib.sha256(content).hexdigest() == digest
    steps = range(0, len(known), _COMPARED_BYTES)
    return len(content) == len(known) and all(
        bytes(content[at : at + _COMPARED_BYTES]) == bytes(known[at : at + _COMPARED_BYTES])
        for at in steps
    )


def _unreadable(folder: str, error: OSError) -> ArtifactError:
    return ArtifactError(
        "the cache cannot be read",
        folder,
        error.strerror or str(error),
        "check the machine's limits",
    )
