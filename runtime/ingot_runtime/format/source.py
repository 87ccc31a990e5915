"""The bundle as a source of checked bytes: opened once, read into private memory.

In: a path or an open descriptor. Out: sections' bytes whose digests hold; the checked plan. Not
done here: mapping, running.
The order of checks is that of FORMAT.md, "Reading": nothing is used before it is checked.
"""

import os

from ..errors import ChangedError, DigestError, FormatError, InputError, VersionError
from . import header as head
from .checks import DAMAGED, require
from .file import BundleFile, open_regular, stamp, unreadable
from .manifest import manifest_bytes
from .plan import BundlePlan, decode_plan
from .sha256 import sha256

_CHUNK_SIZE_BYTES = 1 << 30
_DIGEST_DIGITS = 64
_DIGEST_DIGITS_MIN = 32


class Source:
    """An open bundle whose header, table and gaps are checked."""

    __slots__ = ("by_key", "fd", "file", "name", "root_digest", "sections", "size_bytes")

    def __init__(self, file: BundleFile, name: str, digest: "str | None" = None) -> None:
        """Take over `file`. `digest`: the root digest, or as much of it as the user knows; see
        `checked_digest`.

        Raises:
            BundleError: the header or the table breaks a rule, or the bundle is another one.
        """
        self.file = file
        self.fd = file.number
        self.name = name
        self.size_bytes = file.stamp[0]
        header = self._read(0, head.HEADER_SIZE_BYTES, "header", whole=False)
        self.root_digest = header[-_DIGEST_DIGITS // 2 :]
        head.require_magic(header)
        if digest is not None and not self.root_digest.hex().startswith(digest):
            why = f"expected root digest {digest}, got {self.root_digest.hex()}"
            raise DigestError(
                "another bundle than the one asked for",
                name,
                why,
                "get the file whose digest that is",
            )
        later = head.later_version(header)
        try:
            count = head.check_header(header, self.size_bytes)
            table = self._read(len(header), count * head.ROW_SIZE_BYTES, "section table")
            self.sections = head.check_table(header, table, self.size_bytes)
            self.by_key = {(row.kind, row.id): row for row in self.sections}
            self._check_gaps(len(header) + len(table))
            if later:
                _require_known(self)
        except (FormatError, DigestError):
            if later:
                raise later from None
            raise
        except VersionError as error:  # what is missing, by its number
            if later:
                raise VersionError(
                    error.what, error.where, f"{error.why}; bundle format: {later.why}", error.do
                ) from None
            raise
        if later:
            raise later

    def _check_gaps(self, end: int) -> None:
        for row in self.sections:
            gap = self._read(end, row.offset - end, "gap")
            zero = not gap.strip(b"\0")
            require(
                zero,
                "bytes between sections are not zero",
                f"before {row.name}",
                f"from offset {end}",
            )
            end = row.offset + row.size_bytes

    def _read(self, offset: int, size_bytes: int, what: str, whole: bool = True) -> bytes:
        data = self.read(offset, size_bytes)
        missing = size_bytes - len(data)
        require(
            not whole or not missing, "the file ends too early", what, f"{missing} bytes missing"
        )
        return data

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Return a private copy of bytes of the file, fewer where it ends.

        Raises:
            FileError: the system cannot read them.
        """
        parts: list[bytes] = []
        try:
            while size_bytes > 0:
                part = os.pread(self.fd, min(size_bytes, _CHUNK_SIZE_BYTES), offset)
                if not part:
                    break
                parts.append(part)
                offset += len(part)
                size_bytes -= len(part)
        except OSError as error:
            raise unreadable("read", self.name, error) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def section(self, kind: int, id: int = 0) -> bytes:
        """Return a private copy of a section whose digest holds.

        Raises:
            FormatError: there is no such section. DigestError: other bytes than the table promises.
        """
        row = self.by_key.get((kind, id))
        require(row is not None, f"missing section {head.kind_name(kind)} {id}", "section table")
        assert row is not None
        data = self._read(row.offset, row.size_bytes, row.name)
        got = sha256(data)
        if got != row.digest:
            why = f"expected sha256 {row.digest.hex()}, got {got.hex()}"
            raise DigestError(f"{row.name} is damaged", row.name, why, DAMAGED)
        return data

    def require_unchanged(self) -> None:
        """Raise ``ChangedError`` if the file is not as it was when it was opened."""
        if self.present_stamp() != self.file.stamp:
            raise changed(self.name)

    def present_stamp(self) -> "tuple[int, int, int]":
        """Return the file's stamp as it is now.

        Raises:
            ChangedError: the descriptor leads to another file, or cannot be looked at.
        """
        try:
            found = os.fstat(self.fd)
        except OSError as error:
            raise changed(
                self.name, f"the system does not find it any more: {error.strerror}"
            ) from error
        if (found.st_dev, found.st_ino) != self.file.identity:
            raise changed(
                self.name, "somebody has closed its descriptor, which is another file's now"
            )
        return stamp(found)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def changed(
    name: str, why: str = "its size or its times are not those of load time"
) -> ChangedError:
    """Return the error for a file that was written to, cut, or not to be read while it was in
    use."""
    return ChangedError(
        "the bundle changed while it was in use",
        name,
        f"{why}; the results of this call are lost",
        "replace bundles by renaming a new file over the old one, and load again",
    )


def checked_digest(digest: object) -> "str | None":
    """Return `digest` in lower case: all 64 hex digits of a root digest, or at least the first 32.

    Raises:
        InputError: anything else.
    """
    if digest is None:
        return None
    good = isinstance(digest, str) and _DIGEST_DIGITS_MIN <= len(digest) <= _DIGEST_DIGITS
    if not (good and set(str(digest).lower()) <= set("0123456789abcdef")):
        why = f"expected {_DIGEST_DIGITS_MIN} to {_DIGEST_DIGITS} hex digits, got {digest!r}"
        raise InputError(
            "bad digest", "digest", why, "`ingot inspect BUNDLE` prints the root digest"
        )
    return str(digest).lower()


def open_file(path: "str | os.PathLike[str]", digest: "str | None" = None) -> Source:
    """Open a bundle; check header, table and gaps.

    Args:
        path: the file.
        digest: refuse any bundle but the one with this root digest (64 hex digits, or at least the
            first 32).

    Raises:
        FileError: missing, a folder, no permission. InputError: no path, no digest. BundleError:
            not a valid bundle.
    """
    wanted = checked_digest(digest)
    try:
        name = os.fspath(path)
    except TypeError as error:
        raise InputError(
            "not a path", "bundle", f"expected a path or bytes, got {type(path).__name__}"
        ) from error
    return Source(open_regular(os.fsdecode(name)), os.fsdecode(name), wanted)


def weights_sizes_bytes(source: Source, plan: BundlePlan) -> tuple[int, ...]:
    """Return the size of each device's weights section, 0 where it has none."""
    rows = (source.by_key.get((head.WEIGHTS, index)) for index in range(len(plan.devices)))
    return tuple(row.size_bytes if row else 0 for row in rows)


def _require_known(source: Source) -> None:
    """Raise ``VersionError`` for the first device kind, dtype or opcode that is not known; nothing
    of the bundle is used otherwise."""
    from .program_decode import decode_program

    plan = read_plan(source)
    sizes = weights_sizes_bytes(source, plan)
    for index, variant in enumerate(plan.variants):
        decode_program(
            source.section(head.PROGRAM, index), plan, variant, sizes, f"section program {index}"
        )


def read_plan(source: Source) -> BundlePlan:
    """Read and check plan and manifest, and that the section table has what they imply."""
    plan = decode_plan(source.section(head.PLAN))
    memories = tuple(
        index for index, device in enumerate(plan.devices) if not index or device.kind != "host"
    )
    head.check_kinds(source.sections, len(plan.variants), len(plan.libraries), memories)
    same = source.section(head.MANIFEST) == manifest_bytes(plan)
    require(
        same,
        "manifest and plan disagree",
        "section manifest 0",
        "the manifest is not the one of this plan",
    )
    weights_bytes = weights_sizes_bytes(source, plan)[0]
    for variant in plan.variants:
        offset, size_bytes = (
            variant.ranges[-1] if variant.ranges else (0, 0)
        )  # sorted: the last one ends last
        why = f"{size_bytes} bytes at {offset} of {weights_bytes}"
        inside = offset <= weights_bytes and size_bytes <= weights_bytes - offset
        require(inside, "weight range outside the weights", "section plan 0", why)
    return plan
