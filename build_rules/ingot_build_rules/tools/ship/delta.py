"""What turns one bundle into another, as far as they differ.

In: two bundles whose bytes were verified. Out: a file by FORMAT.md, "Delta". Not done here:
applying it (``ingot_runtime.apply_delta``).

Both are cut where the content says so, into chunks of about 8 KiB: after rows of 64 bytes (sections
begin at multiples of it) whose hash ends in seven zeros. So what is inserted or removed moves the
chunks behind it and does not change them. A chunk that the old one has, too, is named; others are
given.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ingot_artifacts.inspect.describe import opened
from ingot_artifacts.store.atomic import atomic_file
from ingot_build_rules.tools.ship.sign import envelope
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format import header
from ingot_runtime.format.delta import GIVEN, HEAD, MAGIC, PROMISE, STEP, VERSION
from ingot_runtime.format.source import Source
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.loader.signatures import signatures_of

_ROW_BYTES = 64
_CHUNK_ROWS_MIN = 32
_CHUNK_ROWS_MAX = 1024
_ENDING_BITS = np.uint64(127)
_BLOCK_SIZE_BYTES = 1 << 24
_FACTORS = np.array(
    [0x9E3779B97F4A7C15 * (2 * at + 1) % 2**64 | 1 for at in range(_ROW_BYTES // 8)], np.uint64
)


@dataclass(frozen=True, slots=True)
class MadeDelta:
    """``given_bytes``: of the new bundle, which the old one has not."""

    old_digest: str
    new_digest: str
    size_bytes: int
    given_bytes: int


def write_delta(old: str, new: str, output: str) -> MadeDelta:
    """Write the delta.

    Raises:
        UserError: one of them is a program. OutputError: it cannot be written.
    """
    with opened(old) as before, opened(new) as after:
        for source, path in ((before, old), (after, new)):
            if source.start:
                do = "export the new one where it is used"
                raise UserError("no delta of programs", path, "expected a bundle", do)
        known = {digest: at for at, _, digest in _chunks(before)}
        steps, given, content = list[tuple[int, int]](), list[bytes](), hashlib.sha256()
        for at, data, digest in _chunks(after):
            content.update(data)
            place = known.get(digest, GIVEN)
            _add(steps, place, len(data))
            if place == GIVEN:
                given.append(after.read(at, len(data)))
        digests = before.root_digest, after.root_digest
        head = HEAD.pack(
            MAGIC, VERSION, 0, *digests, after.size_bytes, len(steps), content.digest()
        )
        head += _promise(after)
    plain = b"".join(given)
    body = head + b"".join(STEP.pack(*step) for step in steps) + zlib.compress(plain, 6)
    with atomic_file(output, lasting=True) as file:
        file.write(body + hashlib.sha256(body).digest())
    old_digest, new_digest = (digest.hex() for digest in digests)
    return MadeDelta(old_digest, new_digest, len(body) + 32, len(plain))


def _promise(after: Source) -> bytes:
    """What the new one's own head and signatures say, so that it is believed before it is made."""
    count = len(after.sections)
    table = after.read(0, header.HEADER_SIZE_BYTES + count * header.ROW_SIZE_BYTES)
    signatures = b"".join(envelope(signed) + b"\n" for signed in signatures_of(after))
    return PROMISE.pack(len(table), len(signatures)) + table + signatures


def _add(steps: list[tuple[int, int]], place: int, size_bytes: int) -> None:
    """Put a step behind the others; one that goes on where the last one ends is part of it."""
    if steps:
        last, size = steps[-1]
        if (place == last == GIVEN) or (GIVEN not in (place, last) and last + size == place):
            steps[-1] = last, size + size_bytes
            return
    steps.append((place, size_bytes))


def _chunks(source: Source) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the offset, the bytes and the digest of each chunk."""
    start = 0
    while start < source.size_bytes:
        block = source.read(start, min(_BLOCK_SIZE_BYTES, source.size_bytes - start))
        ends = list(_ends(block))
        if start + len(block) < source.size_bytes and len(ends) > 1:
            del ends[-1]  # where the block ends says nothing about the content
        for at, end in pairwise([0, *ends]):
            data = block[at:end]
            yield start + at, data, hashlib.sha256(data).digest()
        start += ends[-1]


def _ends(block: bytes) -> Iterator[int]:
    """Where the chunks of a block end; the last one is what is left."""
    count = len(block) // _ROW_BYTES
    rows: npt.NDArray[np.uint64] = np.frombuffer(block, np.uint64, count * (_ROW_BYTES // 8))
    hashes = (rows.reshape(count, -1) * _FACTORS).sum(axis=1, dtype=np.uint64)
    hashes ^= hashes >> np.uint64(29)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    found = np.flatnonzero(((hashes >> np.uint64(40)) & _ENDING_BITS) == 1)
    at = 0
    for end in [*(found + 1).tolist(), count]:
        while end - at > _CHUNK_ROWS_MAX:
            at += _CHUNK_ROWS_MAX
            yield at * _ROW_BYTES
        if end - at >= _CHUNK_ROWS_MIN and end < count:
            at = end
            yield at * _ROW_BYTES
    yield len(block)
