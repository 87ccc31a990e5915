"""The bundle as a source of checked bytes: opened once, read into private memory.

In: a path or an open descriptor. Out: sections' bytes whose digests hold; the checked plan. Not
done here: mapping, running. The order of checks is that of FORMAT.md, "Reading".
"""

import os

from ..errors import (
    BundleError,
    ChangedError,
    DigestError,
    FormatError,
    InputError,
    NotABundleError,
    VersionError,
)
from . import header as head
from .checks import DAMAGED, require
from .file import PROGRAM_MAGIC, TRAILER, TRAILER_MAGIC, BundleFile, open_regular, stamp, unreadable
from .limits import ALIGNMENT_MAPPED_BYTES
from .plan import BundlePlan, decode_plan, manifest_bytes
from .sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .shared import Shared

    Bundle = str | bytes | bytearray | memoryview | os.PathLike[str]

IN_MEMORY = bytes, bytearray, memoryview
_CHUNK_SIZE_BYTES = 1 << 30
_DIGEST_DIGITS = 64
_DIGEST_DIGITS_MIN = 32
_OF_A_FILE = NotABundleError, FormatError, DigestError, VersionError


class Source:
    """An open bundle whose header, table and gaps are checked; it begins at ``start`` of its file."""

    __slots__ = (
        "base", "by_key", "fd", "file", "minor", "name", "root_digest", "sections", "shared", "size_bytes",
        "start",
    )  # fmt: skip

    def __init__(self, file: BundleFile, name: str, digest: "str | None" = None) -> None:
        """Take over `file`. `digest`: the root digest, or as much of it as the user knows; see
        `checked_digest`.

        Raises:
            BundleError: the header or the table breaks a rule, or the bundle is another one.
        """
        self.file = file
        self.fd = file.number
        self.name = name
        self.start = 0
        self.shared: Shared | None = None  # where weights lie in another bundle
        self.base: Source | None = None  # that one
        self.size_bytes = file.stamp[0]
        if self.read(0, len(PROGRAM_MAGIC)) == PROGRAM_MAGIC:
            self._find_in_program()
        header = self._read(0, head.HEADER_SIZE_BYTES, "header", whole=False)
        self.root_digest = header[-_DIGEST_DIGITS // 2 :]
        head.require_magic(header)
        if digest is not None and not self.root_digest.hex().startswith(digest):
            why = f"expected root digest {digest}, got {self.root_digest.hex()}"
            do = "get the file whose digest that is"
            raise DigestError("another bundle than the one asked for", name, why, do)
        self.minor = head.Header(*head.HEADER.unpack(header)).minor
        later = head.later_version(header)
        if later:
            raise self._refusal(header, later)
        self._read_table(header)

    def _find_in_program(self) -> None:
        """Find the bundle of a program, which ends with where it begins and how large it is."""
        end = self.size_bytes - TRAILER.size
        if end < 0:
            return
        start, size_bytes, magic = TRAILER.unpack(self._read(end, TRAILER.size, "trailer"))
        if magic != TRAILER_MAGIC:
            return
        fits = start % ALIGNMENT_MAPPED_BYTES == 0 and start + size_bytes == end
        why = f"{size_bytes} bytes at {start} of {self.size_bytes}"
        require(fits, "the executable has no whole bundle", "trailer", why)
        self.start, self.size_bytes = start, size_bytes

    def _read_table(self, header: bytes) -> None:
        """Check header, table and gaps."""
        count = head.check_header(header, self.size_bytes)
        table = self._read(len(header), count * head.ROW_SIZE_BYTES, "section table")
        self.sections = head.check_table(header, table, self.size_bytes)
        self.by_key = {(row.kind, row.id): row for row in self.sections}
        self._check_gaps(len(header) + len(table))

    def _refusal(self, header: bytes, later: VersionError) -> VersionError:
        """Return `later`, the refusal of a later version, with the number of what is missing where
        the rest can be read."""
        try:
            self._read_table(header)
            _require_known(self)
        except (FormatError, DigestError):
            return later
        except VersionError as error:
            why = f"{error.why}; bundle format: {later.why}"
            return VersionError(error.what, error.where, why, error.do)
        return later

    def _check_gaps(self, end: int) -> None:
        for row in self.sections:
            zero = not self._read(end, row.offset - end, "gap").strip(b"\0")
            where, why = f"before {row.name}", f"from offset {end}"
            require(zero, "bytes between sections are not zero", where, why)
            end = row.offset + row.size_bytes

    def _read(self, offset: int, size_bytes: int, what: str, whole: bool = True) -> bytes:
        data = self.read(offset, size_bytes)
        missing = size_bytes - len(data)
        good = not whole or not missing
        require(good, "the file ends too early", what, f"{missing} bytes missing")
        return data

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Return a private copy of bytes of the file, fewer where it ends.

        Raises:
            FileError: the system cannot read them.
        """
        parts: list[bytes] = []
        size_bytes = min(size_bytes, max(self.size_bytes - offset, 0))
        try:
            while size_bytes > 0:
                part = os.pread(self.fd, min(size_bytes, _CHUNK_SIZE_BYTES), self.start + offset)
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
            why = f"the system does not find it any more: {error.strerror}"
            raise changed(self.name, why) from error
        if (found.st_dev, found.st_ino) != self.file.identity:
            why = "somebody has closed its descriptor, which is another file's now"
            raise changed(self.name, why)
        own = stamp(found)
        return own if self.base is None else _both(own, self.base.present_stamp())

    def share(self, base: "Source") -> None:
        """Take over the bundle in which weights lie: it must stay as it is, too."""
        self.base = base
        self.file.stamp = _both(self.file.stamp, base.file.stamp)

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        if self.base is not None:
            self.base.close()


def _both(one: "tuple[int, int, int]", other: "tuple[int, int, int]") -> "tuple[int, int, int]":
    """Return a stamp that moves when one of two does."""
    return one[0] + (other[0] << 64), one[1] + (other[1] << 64), max(one[2], other[2])


def changed(
    name: str, why: str = "its size or its times are not those of load time"
) -> ChangedError:
    """Return the error for a file that was written to or cut while it was in use."""
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
        do = "`ingot inspect BUNDLE` prints the root digest"
        raise InputError("bad digest", "digest", why, do)
    return str(digest).lower()


def open_file(path: "str | os.PathLike[str]", digest: "str | None" = None) -> Source:
    """Open a bundle; check header, table and gaps.

    `digest`: refuse any bundle but the one with this root digest; see `checked_digest`.

    Raises:
        FileError: missing, a folder, no permission. InputError: no path, no digest. BundleError:
            not a valid bundle.
    """
    wanted = checked_digest(digest)
    try:
        name = os.fsdecode(path)
    except TypeError as error:
        why = f"expected a path or bytes, got {type(path).__name__}"
        do = "save it and give the path, or give bundle.to_bytes()"
        raise InputError("not a path", "bundle", why, do) from error
    return Source(open_regular(name), name, wanted)


def in_file(error: BundleError, path: "Bundle") -> BundleError:
    """Return `error`; if it is of what is in a file, its place begins with the path."""
    if isinstance(path, IN_MEMORY) or not isinstance(error, _OF_A_FILE):
        return error
    name, where = os.fsdecode(path), error.where
    if where == name or where.startswith(f"{name}, "):
        return error
    return error.at(f"{name}, {where}").with_traceback(error.__traceback__)


def weights_sizes_bytes(source: Source, plan: BundlePlan) -> tuple[int, ...]:
    """Return the size of each device's weights section, 0 where it has none."""
    rows = (source.by_key.get((head.WEIGHTS, index)) for index in range(len(plan.devices)))
    sizes = tuple(row.size_bytes if row else 0 for row in rows)
    return sizes if source.shared is None else (source.shared.size_bytes, *sizes[1:])


def _require_known(source: Source) -> None:
    """Raise ``VersionError`` for the first device kind, dtype or opcode that is not known."""
    from .program_decode import decode_program

    plan = read_plan(source)
    sizes = weights_sizes_bytes(source, plan)
    for index, variant in enumerate(plan.variants):
        decode_program(
            source.section(head.PROGRAM, index), plan, variant, sizes, f"section program {index}"
        )


def _read_defaults(source: Source, plan: BundlePlan, ids: list[int]) -> None:
    """Put the defaults of inputs into the plan."""
    from .defaults import decode_default

    plan.defaults = {}
    for id_ in ids:
        name = f"section default {id_}"
        require(id_ < len(plan.inputs), "a default of no input", name, f"{len(plan.inputs)} inputs")
        tensor = plan.inputs[id_]
        data = source.section(head.DEFAULT, id_)
        plan.defaults[tensor.name] = decode_default(data, tensor, name)


def _read_alternatives(source: Source, plan: BundlePlan, ids: list[int]) -> None:
    """Put what devices may run instead into the plan."""
    from .alternative import decode_alternative

    for number, id_ in enumerate(sorted(ids)):
        where = f"section alternative {id_}"
        require(id_ == number, "an alternative is missing", where, f"expected {number}")
        data = source.section(head.ALTERNATIVE, id_)
        plan.alternatives += (decode_alternative(data, plan, where)[0],)


def read_plan(source: Source) -> BundlePlan:
    """Read and check plan and manifest, and that the section table has what they imply."""
    plan = decode_plan(source.section(head.PLAN), source.minor)
    kinds = [device.kind for device in plan.devices]
    memories = tuple(index for index, kind in enumerate(kinds) if not index or kind != "host")
    all_bytes = 0
    if (head.SHARED, 0) in source.by_key:
        from .shared import Shared

        own = source.by_key.get((head.WEIGHTS, 0))
        source.shared = Shared(source.section(head.SHARED), own.size_bytes if own else 0)
        all_bytes = source.shared.size_bytes
    head.check_kinds(source.sections, len(plan.variants), len(plan.libraries), memories, all_bytes)
    same = source.section(head.MANIFEST) == manifest_bytes(plan)
    why = "the manifest is not the one of this plan"
    require(same, "manifest and plan disagree", "section manifest 0", why)
    defaults = [row.id for row in source.sections if row.kind == head.DEFAULT]
    if defaults:
        _read_defaults(source, plan, defaults)
    if (head.STATE, 0) in source.by_key:
        from .states import decode_states

        plan.states = decode_states(source.section(head.STATE), plan)
    if (head.VALUES, 0) in source.by_key:
        from .values import decode_values

        plan.values = decode_values(source.section(head.VALUES), plan)
    alternatives = [row.id for row in source.sections if row.kind == head.ALTERNATIVE]
    if alternatives:
        _read_alternatives(source, plan, alternatives)
    weights_bytes = weights_sizes_bytes(source, plan)[0]
    for variant in plan.variants:
        # Sorted: the last one ends last.
        offset, size_bytes = variant.ranges[-1] if variant.ranges else (0, 0)
        why = f"{size_bytes} bytes at {offset} of {weights_bytes}"
        inside = offset <= weights_bytes and size_bytes <= weights_bytes - offset
        require(inside, "weight range outside the weights", "section plan 0", why)
    return plan
