"""Make the new bundle of the old one and a delta: whole or not at all, going on where it stopped.

In: the old bundle, a delta, a path, who must have signed. Out: the new bundle. Not done here:
making deltas (``ingot_build_rules.tools.ship.delta``), installing (``install``).

What is made lies beside its path until its sha256 is that of the new bundle. After an interruption
it is gone on with; if a power cut has damaged it, that digest tells, and it is made once more. A
disk that is full keeps nothing of it.
"""

import errno
import hashlib
import os
import zlib

from .errors import DigestError, InputError, ResourceError
from .files import Files, failed, is_own_file
from .format.checks import require
from .format.delta import GIVEN, Delta
from .format.source import Source, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .loader.signatures import Keys

_CHUNK_SIZE_BYTES = 1 << 22
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def apply_delta(
    old: str,
    delta_path: str,
    output: str,
    files: "Files | None" = None,
    keys: "Keys | None" = None,
) -> str:
    """Write the new bundle to `output`, which may be the path of the old one; return its root
    digest. With `keys`, nothing is written unless their owners have signed the new bundle: its
    table, and so its size, stand in the head of the delta.

    Raises:
        DigestError: the delta is for another bundle, or the old one is damaged. FormatError: it is
            no delta. SignatureError: it leads to a bundle that is not signed. InputError: the
            output is a link. ResourceError: the disk refused it.
    """
    files = files or Files()
    if os.path.islink(output):
        beside = os.path.join(os.path.dirname(output), "received.ingot")
        why = f"expected a file, or a free name; it leads to {os.readlink(output)!r}"
        do = f"-o {beside}, and `python -m ingot_runtime install` it"
        raise InputError("the output is a symbolic link", output, why, do)
    delta = Delta(delta_path)
    if keys is not None:
        from .loader.signatures import require_delta_signed

        require_delta_signed(delta, keys)
    source = open_file(old)
    if source.root_digest != delta.old_root:
        why = f"expected root digest {delta.old_root.hex()}, got {source.root_digest.hex()}"
        do = "apply it to the bundle that it was made from"
        raise DigestError("the delta is for another bundle", old, why, do)
    part = f"{output}.{delta.new_root.hex()[:16]}.part"
    try:
        _write(source, delta, part, files)
        files.sync(part)
        files.rename(part, output)
        files.sync(os.path.dirname(os.path.abspath(output)))
    except OSError as error:
        if error.errno in _FULL:
            files.remove(part)
        raise failed(output, error) from error
    return delta.new_root.hex()


def _write(source: Source, delta: Delta, part: str, files: Files) -> None:
    """Write the new bundle to `part`, or what is missing of it there."""
    resumed = _made(source, delta, part, files)
    if not _is_new(part, delta) and resumed:
        files.remove(part)
        _made(source, delta, part, files)
    if not _is_new(part, delta):
        files.remove(part)
        do = "copy the old bundle again, or the whole new one"
        raise DigestError("the old bundle is damaged", source.name, "another bundle came out", do)


def _made(source: Source, delta: Delta, part: str, files: Files) -> bool:
    """Write what is missing of the new one; return whether some of it was there."""
    done = os.path.getsize(part) if is_own_file(part) else 0
    if not 0 < done <= delta.size_bytes:
        files.remove(part)
        done = 0
    found = os.statvfs(os.path.dirname(os.path.abspath(part)))
    free = found.f_bavail * found.f_frsize
    if free < delta.size_bytes - done:
        why = f"the new bundle needs {delta.size_bytes - done} bytes more, {free} are free"
        raise ResourceError("not enough space for the new bundle", part, why, "free space")
    at = 0
    for chunk in _chunks(source, delta):
        if at + len(chunk) > done:
            files.write(part, chunk[max(done - at, 0) :], max(at, done))
        at += len(chunk)
    return done > 0


def _chunks(source: Source, delta: Delta) -> "Iterator[bytes]":
    """Yield the new bundle, in pieces that are worth an operation on the disk."""
    given = _Given(delta)
    pieces, size = list[bytes](), 0
    for offset, size_bytes in delta.steps:
        for at in range(0, size_bytes, _CHUNK_SIZE_BYTES):
            wanted = min(_CHUNK_SIZE_BYTES, size_bytes - at)
            data = given.take(wanted) if offset == GIVEN else source.read(offset + at, wanted)
            why = f"{wanted - len(data)} bytes missing"
            require(len(data) == wanted, "a step of the delta has no such bytes", "delta", why)
            pieces.append(data)
            size += wanted
            if size >= _CHUNK_SIZE_BYTES:
                yield b"".join(pieces)
                pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)


class _Given:
    """The bytes that the delta has, inflated as they are asked for."""

    __slots__ = ("_inflater", "_rest", "_slices")

    def __init__(self, delta: Delta) -> None:
        self._inflater, self._rest, self._slices = zlib.decompressobj(), b"", delta.given()

    def take(self, size_bytes: int) -> bytes:
        """Return the next ones; fewer where there are no more."""
        parts: list[bytes] = []
        while size_bytes:
            try:
                data = self._inflater.decompress(self._rest, size_bytes)
            except zlib.error:
                break
            self._rest = self._inflater.unconsumed_tail
            if not data:
                self._rest = next(self._slices, b"")
                if not self._rest:
                    break
            parts.append(data)
            size_bytes -= len(data)
        return b"".join(parts)


def _is_new(path: str, delta: Delta) -> bool:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_SIZE_BYTES):
            found.update(chunk)
    return found.digest() == delta.content_digest
