"""The bundle as a source of checked bytes: opened once, read into private memory.

In: a path or an open descriptor. Out: sections' bytes whose digests hold; the checked plan. Not done here: mapping,
running.
The order of checks is that of FORMAT.md, "Reading": nothing is used before it is checked.
"""

import os
import stat

from ..errors import ChangedError, DigestError, FileError
from . import header as head
from .checks import DAMAGED, require
from .manifest import manifest_bytes
from .plan import Plan, decode_plan
from .sha256 import sha256

_CHUNK_SIZE_BYTES = 1 << 30


class Source:
    """An open bundle whose header, table and gaps are checked."""

    __slots__ = ("_stamp", "by_key", "fd", "name", "root_digest", "sections", "size_bytes")

    def __init__(self, fd: int, name: str) -> None:
        """Take over the descriptor `fd`.

        Raises:
            BundleError: the header or the table breaks a rule.
        """
        self.fd = fd
        self.name = name
        found = os.fstat(fd)
        self._stamp = stamp(found)
        header = self._read(0, head.HEADER_SIZE_BYTES, "header", whole=False)
        head.require_magic(header)
        count = head.check_header(header, found.st_size)
        table = self._read(len(header), count * head.ROW_SIZE_BYTES, "section table")
        self.sections = head.check_table(header, table, found.st_size)
        self.root_digest = header[-32:]
        self.size_bytes = found.st_size
        self.by_key = {(row.kind, row.id): row for row in self.sections}
        end = len(header) + len(table)
        for row in self.sections:
            gap = self._read(end, row.offset - end, "gap")
            require(
                not gap.strip(b"\0"), "bytes between sections are not zero", f"before {row.name}", f"from offset {end}"
            )
            end = row.offset + row.size_bytes

    def _read(self, offset: int, size_bytes: int, what: str, whole: bool = True) -> bytes:
        parts: list[bytes] = []
        while size_bytes > 0:
            part = os.pread(self.fd, min(size_bytes, _CHUNK_SIZE_BYTES), offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            size_bytes -= len(part)
        require(not whole or size_bytes == 0, "the file ends too early", what, f"{size_bytes} bytes missing")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def section(self, kind: int, id: int = 0) -> bytes:
        """Return a private copy of a section whose digest holds.

        Raises:
            FormatError: there is no such section. DigestError: other bytes than the table promises.
        """
        row = self.by_key.get((kind, id))
        require(row is not None, f"missing section {head.KIND_NAMES[kind]} {id}", "section table")
        assert row is not None
        data = self._read(row.offset, row.size_bytes, row.name)
        got = sha256(data)
        if got != row.digest:
            why = f"expected sha256 {row.digest.hex()}, got {got.hex()}"
            raise DigestError(f"{row.name} is damaged", row.name, why, DAMAGED)
        return data

    def require_unchanged(self) -> None:
        """Raise ``ChangedError`` if the file is not as it was when it was opened."""
        if stamp(os.fstat(self.fd)) != self._stamp:
            raise changed(self.name)


def changed(name: str) -> ChangedError:
    """Return the error for a file that was written to or cut while it was mapped."""
    return ChangedError(
        "the bundle changed while it was in use",
        name,
        "its size or its time of writing is not that of load time; the results of this call are lost",
        "replace bundles by renaming a new file over the old one, and load again",
    )


def stamp(found: os.stat_result) -> tuple[int, int]:
    """Return what a write or a truncation moves; not the time of the inode's change, which a harmless rename moves too."""
    return found.st_size, found.st_mtime_ns


def open_file(path: "str | os.PathLike[str]") -> Source:
    """Open a bundle; check header, table and gaps.

    Raises:
        FileError: missing, a folder, no permission. BundleError: not a valid bundle.
    """
    name = os.fspath(path)
    return take_over(_open(name), name)


def take_over(fd: int, name: str) -> Source:
    """Make a source of an open descriptor; it is closed if that fails."""
    try:
        return Source(fd, name)
    except BaseException:
        os.close(fd)
        raise


def read_plan(source: Source) -> Plan:
    """Read and check plan and manifest, and that the section table has what they imply."""
    plan = decode_plan(source.section(head.PLAN))
    head.check_kinds(source.sections, len(plan.variants), len(plan.devices))
    same = source.section(head.MANIFEST) == manifest_bytes(plan)
    require(same, "manifest and plan disagree", "section manifest 0", "the manifest is not the one of this plan")
    row = source.by_key.get((head.WEIGHTS, 0))
    weights_bytes = row.size_bytes if row else 0
    for variant in plan.variants:
        offset, size_bytes = variant.ranges[-1] if variant.ranges else (0, 0)  # sorted: the last one ends last
        why = f"{size_bytes} bytes at {offset} of {weights_bytes}"
        inside = offset <= weights_bytes and size_bytes <= weights_bytes - offset
        require(inside, "weight range outside the weights", "section plan 0", why)
    return plan


def _open(path: str) -> int:
    try:
        # O_NONBLOCK: a named pipe must not hang us; it has no effect on a regular file.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise FileError(f"cannot open {path!r}", path, why, "check the path and its permissions") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileError(f"cannot open {path!r}", path, "not a regular file", "give a file made by `ingot compile`")
    return fd
