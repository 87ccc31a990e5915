"""What turns one bundle into another: FORMAT.md, "Delta".

In: the path of such a file. Out: ``Delta``: its head, checked, and an open file. Not done here:
making one (``ingot_build_rules.tools.ship.delta``), who must have signed it (``loader.signatures``),
applying it (``apply_delta``).
"""

import os
import struct
from hashlib import sha256

from .checks import require
from .file import open_without_waiting, unreadable
from .header import (
    HEADER_SIZE_BYTES,
    SIGNATURE,
    Section,
    check_header,
    check_table,
    later_version,
    require_magic,
)
from .limits import MIB, SIZE_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"\x8aINGOTD\n"
# magic, version, 0, root digest of the old and the new one, bytes of the new one, steps, its sha256
HEAD = struct.Struct("<8sII32s32sQQ32s")
# Since version 2: bytes of the header and table of the new one, and of its signatures
PROMISE = struct.Struct("<QQ")
STEP = struct.Struct("<QQ")
GIVEN = (1 << 64) - 1  # in the place of an offset in the old one: bytes that the delta has
VERSION = 2
SIGNATURES_SIZE_BYTES_MAX = 16 * MIB
_DIGEST_SIZE_BYTES = 32
_SLICE_SIZE_BYTES = 1 << 16


class Delta:
    """``steps``: offset in the old one (or ``GIVEN``) and bytes. ``sections`` and ``signatures``,
    DSSE envelopes, one a line: of the new one; none in version 1, whose head nobody vouches for."""

    __slots__ = (
        "_fd", "_given_at", "_given_end", "content_digest", "name", "new_root", "old_root",
        "sections", "signatures", "size_bytes", "steps",
    )  # fmt: skip

    def __init__(self, path: str) -> None:
        """Open it; check everything but what the given bytes are.

        Raises:
            FileError: it cannot be read, or is no file. FormatError: any rule broken.
        """
        self.name, self._fd = path, -1
        self.sections: list[Section] = []
        self.signatures = b""
        try:
            self._fd = open_without_waiting(path)
            size_bytes = os.fstat(self._fd).st_size
            data = self._read(0, HEAD.size)
            whole = size_bytes >= HEAD.size + _DIGEST_SIZE_BYTES and data.startswith(MAGIC)
            why = f"expected {MAGIC.hex(' ')}, got {data[:8].hex(' ')}"
            require(whole, "not a delta", path, why)
            self._given_end = size_bytes - _DIGEST_SIZE_BYTES
            good = self._digest() == self._read(self._given_end, _DIGEST_SIZE_BYTES)
            require(good, "the delta is damaged", path, "its digest is another")
            self._read_head(data)
        except (OSError, ValueError) as error:
            raise unreadable("open", path, error) from error

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def given(self) -> "Iterator[bytes]":
        """Yield the given bytes, deflated, slice by slice."""
        for at in range(self._given_at, self._given_end, _SLICE_SIZE_BYTES):
            yield self._read(at, min(_SLICE_SIZE_BYTES, self._given_end - at))

    def _read(self, at: int, size_bytes: int) -> bytes:
        parts: list[bytes] = []
        while size_bytes and (part := os.pread(self._fd, size_bytes, at)):
            parts.append(part)
            at, size_bytes = at + len(part), size_bytes - len(part)
        return b"".join(parts)

    def _digest(self) -> bytes:
        found = sha256()
        for at in range(0, self._given_end, _SLICE_SIZE_BYTES):
            found.update(self._read(at, min(_SLICE_SIZE_BYTES, self._given_end - at)))
        return found.digest()

    def _read_head(self, data: bytes) -> None:
        _, version, zero, old_root, new_root, size_bytes, count, content = HEAD.unpack(data)
        self.old_root: bytes = old_root
        self.new_root: bytes = new_root
        self.size_bytes: int = size_bytes
        self.content_digest: bytes = content
        known = 1 <= version <= VERSION and zero == 0
        require(known, "unknown version of a delta", self.name, f"{version}")
        at = HEAD.size if version == 1 else self._read_promise(HEAD.size)
        end = at + count * STEP.size
        require(end <= self._given_end, "the delta ends too early", self.name, f"{count} steps")
        self.steps = list(STEP.iter_unpack(self._read(at, end - at)))
        total = sum(size for _, size in self.steps)
        good = total == self.size_bytes <= SIZE_BYTES_MAX
        require(good, "the steps make another size", self.name, f"{total}")
        self._given_at = end

    def _read_promise(self, at: int) -> int:
        """Read what the new one's own header, table and signatures say; return where they end."""
        table_bytes, signatures_bytes = PROMISE.unpack(self._read(at, PROMISE.size))
        at += PROMISE.size
        fits = signatures_bytes <= SIGNATURES_SIZE_BYTES_MAX
        fits = fits and at + table_bytes + signatures_bytes <= self._given_end
        require(fits, "the delta ends too early", self.name, f"{signatures_bytes} of signatures")
        header = self._read(at, min(table_bytes, HEADER_SIZE_BYTES))
        require_magic(header)
        later = later_version(header)
        if later:
            raise later
        check_header(header, self.size_bytes)
        table = self._read(at + len(header), table_bytes - len(header))
        self.sections = check_table(header, table, self.size_bytes)
        good = header[-_DIGEST_SIZE_BYTES:] == self.new_root
        require(good, "the head is of another bundle", self.name, "expected its root digest")
        # They are in no statement: so they may not take more than those that are here.
        taken = sum(row.size_bytes for row in self.sections if row.kind == SIGNATURE)
        good = taken <= signatures_bytes
        require(good, "signatures that are not there", self.name, f"{taken} bytes in the new one")
        at += table_bytes
        self.signatures = self._read(at, signatures_bytes)
        return int(at + signatures_bytes)
