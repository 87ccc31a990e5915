"""Make the new bundle of the old one and a delta: whole or not at all, going on where it stopped.

In: the old bundle, a delta, a path. Out: the new bundle. Not done here: making deltas
(``ingot_build_rules.ship.delta``), installing (``install``).

What is made lies beside its path until its sha256 is that of the new bundle. After an interruption
it is gone on with; if a power cut has damaged it, that digest tells, and it is made once more.
"""

import hashlib
import os
import zlib

from .errors import DigestError
from .files import Files, failed
from .format.checks import require
from .format.delta import GIVEN, Delta
from .format.source import Source, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CHUNK_SIZE_BYTES = 1 << 22


def apply_delta(old: str, delta_path: str, output: str, files: "Files | None" = None) -> str:
    """Write the new bundle to `output`, which may be the path of the old one; return its root
    digest.

    Raises:
        DigestError: the delta is for another bundle, or the old one is damaged. FormatError: it is
            no delta. ResourceError: the disk refused it.
    """
    files = files or Files()
    delta = Delta(_content(delta_path), delta_path)
    source = open_file(old)
    if source.root_digest != delta.old_root:
        why = f"expected root digest {delta.old_root.hex()}, got {source.root_digest.hex()}"
        do = "apply it to the bundle that it was made from"
        raise DigestError("the delta is for another bundle", old, why, do)
    part = f"{output}.{delta.new_root.hex()[:16]}.part"
    try:
        resumed = _made(source, delta, part, files)
        if not _is_new(part, delta) and resumed:
            files.remove(part)
            _made(source, delta, part, files)
        if not _is_new(part, delta):
            files.remove(part)
            do = "copy the old bundle again, or the whole new one"
            raise DigestError("the old bundle is damaged", old, "another bundle came out", do)
        files.sync(part)
        files.rename(part, output)
        files.sync(os.path.dirname(os.path.abspath(output)))
    except OSError as error:
        raise failed(output, error) from error
    return delta.new_root.hex()


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise failed(path, error) from error


def _made(source: Source, delta: Delta, part: str, files: Files) -> bool:
    """Write what is missing of the new one; return whether some of it was there."""
    done = os.path.getsize(part) if os.path.exists(part) else 0
    if done > delta.size_bytes:
        files.remove(part)
        done = 0
    at = 0
    for chunk in _chunks(source, delta):
        if at + len(chunk) > done:
            files.write(part, chunk[max(done - at, 0) :], max(at, done))
        at += len(chunk)
    return done > 0


def _chunks(source: Source, delta: Delta) -> "Iterator[bytes]":
    inflater, rest = zlib.decompressobj(), delta.given
    for offset, size_bytes in delta.steps:
        for at in range(0, size_bytes, _CHUNK_SIZE_BYTES):
            wanted = min(_CHUNK_SIZE_BYTES, size_bytes - at)
            if offset != GIVEN:
                data = source.read(offset + at, wanted)
            else:
                try:
                    data = inflater.decompress(rest, wanted)
                except zlib.error:
                    data = b""
                rest = inflater.unconsumed_tail
            why = f"{wanted - len(data)} bytes missing"
            require(len(data) == wanted, "a step of the delta has no such bytes", "delta", why)
            yield data


def _is_new(path: str, delta: Delta) -> bool:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_SIZE_BYTES):
            found.update(chunk)
    return found.digest() == delta.content_digest
