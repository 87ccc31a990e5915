"""The fixed header and the section table: FORMAT.md, "Header" and "Section table".

In: the first bytes of a file and its size. Out: checked ``Section`` rows. Not done here: writing
(``ingot_artifacts.bundle.encode_head``), reading sections, their digests, the zero gaps between
them (``source``).
"""

import struct

from ..errors import DigestError, NotABundleError, VersionError
from .checks import DAMAGED, require, require_all, unknown
from .limits import (
    ALIGNMENT_MAPPED_BYTES,
    ALIGNMENT_SMALL_BYTES,
    MIB,
    SECTION_COUNT_MAX,
    SIZE_BYTES_MAX,
    TREE_ENTRY_SIZE_BYTES,
)
from .sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAGIC = b"\x8aINGOT\r\n"
VERSION_MAJOR = 1
VERSION_MINOR = 5  # the latest: a bundle has the lowest whose readers know what it requires

# magic, major, minor, header bytes, row bytes, section count, file bytes, flags, root digest
HEADER = struct.Struct("<8sHHIIIQQ32s")
# kind, id, offset, size, alignment, flags, sha256
ROW = struct.Struct("<IIQQII32s")
HEADER_SIZE_BYTES = HEADER.size
ROW_SIZE_BYTES = ROW.size
_DIGEST_AT = HEADER_SIZE_BYTES - 32
NO_DIGEST = bytes(32)

# Section kinds; a kind's id says which one: the variant's, the device's or the library's index,
# else 0.
(
    MANIFEST, PLAN, CODE, PROGRAM, WEIGHTS, TREE, LOCK, DEBUG, LIBRARY, DEFAULT, STATE, ALTERNATIVE,
    VALUES, SIGNATURE, SELFTEST, SHARED,
) = range(1, 17)  # fmt: skip
KIND_NAMES = (
    "", "manifest", "plan", "code", "program", "weights", "tree", "lock", "debug", "library",
    "default", "state", "alternative", "values", "signature",
    "selftest", "shared",
)  # fmt: skip
# Of those that are not 256 MiB.
_SIZE_BYTES_MAX = {
    MANIFEST: MIB, PLAN: 64 * MIB, WEIGHTS: SIZE_BYTES_MAX, TREE: SIZE_BYTES_MAX, LOCK: 64 * MIB,
}  # fmt: skip
_MAPPED = (CODE, WEIGHTS, LIBRARY)
OPTIONAL_KINDS = DEFAULT, STATE, ALTERNATIVE, VALUES, SIGNATURE, SELFTEST
OPTIONAL = 1  # of a row's flags: who does not know the kind skips the section


def kind_name(kind: int) -> str:
    """Return the name of a kind of section; of an unknown one, ``of kind 12``."""
    return KIND_NAMES[kind] if kind < len(KIND_NAMES) else f"of kind {kind}"


class Section:
    """One row of the table. ``digest`` is sha256 of the section, or 32 zero bytes for weights
    (their tree covers them)."""

    __slots__ = ("alignment", "digest", "flags", "id", "kind", "offset", "size_bytes")

    def __init__(
        self,
        kind: int,
        id: int,
        offset: int,
        size_bytes: int,
        alignment: int,
        digest: bytes,
        flags: int = 0,
    ) -> None:
        self.flags = flags
        self.kind = kind
        self.id = id
        self.offset = offset
        self.size_bytes = size_bytes
        self.alignment = alignment
        self.digest = digest

    @property
    def name(self) -> str:
        """Kind and id for messages, e.g. ``section code 2``."""
        return f"section {self.kind_name} {self.id}"

    @property
    def is_known(self) -> bool:
        """Whether this version knows the kind; it skips others."""
        return self.kind < len(KIND_NAMES)

    @property
    def is_required(self) -> bool:
        """Whether no reader may skip it."""
        return self.is_known and self.kind not in OPTIONAL_KINDS

    @property
    def kind_name(self) -> str:
        """See `kind_name`."""
        return kind_name(self.kind)


def alignment_of(kind: int) -> int:
    """Return the alignment in the file, in bytes, that a section of `kind` MUST have."""
    return ALIGNMENT_MAPPED_BYTES if kind in _MAPPED else ALIGNMENT_SMALL_BYTES


def later_version(header: bytes) -> "VersionError | None":
    """Return the refusal of a later minor version, whose rows are as here; None for a known one.

    Raises:
        VersionError: another major version, of which nothing is known.
    """
    _, major, minor, *_ = HEADER.unpack(header)
    if (major, minor) <= (VERSION_MAJOR, VERSION_MINOR) and major == VERSION_MAJOR:
        return None
    why = f"expected {VERSION_MAJOR}.0 to {VERSION_MAJOR}.{VERSION_MINOR}, got {major}.{minor}"
    error = unknown(f"bundle format {major}.{minor}", "header, version", why)
    if major != VERSION_MAJOR:
        raise error
    return error


def check_header(header: bytes, file_size_bytes: int) -> int:
    """Check the header alone, but for its version; return the section count."""
    require_magic(header)
    _, _, _, header_size, row_size, count, file_size, flags, _ = HEADER.unpack(header)
    require_all(
        "header",
        (header_size == HEADER_SIZE_BYTES, "wrong header size", f"got {header_size}"),
        (row_size == ROW_SIZE_BYTES, "wrong row size", f"got {row_size}"),
        (flags == 0, "unknown flags", f"expected 0, got {flags}"),
    )
    why = f"the header promises {file_size} bytes, the file has {file_size_bytes}"
    extended = "the file is truncated or extended"
    require(file_size == file_size_bytes, extended, "header, file size", why)
    why = f"expected 1 to {SECTION_COUNT_MAX}, got {count}"
    require(1 <= count <= SECTION_COUNT_MAX, "bad number of sections", "header", why)
    fits = HEADER_SIZE_BYTES + count * ROW_SIZE_BYTES <= file_size_bytes
    require(fits, "the section table does not fit", "header", f"{count} rows")
    return int(count)


def require_magic(header: bytes) -> None:
    """Raise ``NotABundleError`` or ``FormatError`` unless `header` is whole and starts with the
    magic bytes."""
    if header[:8] != MAGIC[: len(header[:8])] or not header:
        why = f"expected {MAGIC.hex(' ')}, got {header[:8].hex(' ') or 'nothing'}"
        do = "give a file made by `ingot compile`"
        raise NotABundleError("not a bundle", "the first 8 bytes", why, do)
    whole = len(header) == HEADER_SIZE_BYTES
    require(whole, "the file ends inside its header", "header", f"{len(header)} bytes")


def check_table(header: bytes, table: bytes, file_size_bytes: int) -> list[Section]:
    """Check digest and rows of the table; return the rows.

    Guarantees: kinds that are known or may be skipped, no (kind, id) twice, exact alignments,
    sorted, disjoint, inside the file, every gap shorter than an alignment, last end == file size.
    """
    _check_root_digest(header, table)
    rows = list(ROW.iter_unpack(table))
    _require_known_kinds(rows)
    sections: list[Section] = []
    seen: set[tuple[int, int]] = set()
    end = HEADER_SIZE_BYTES + len(table)
    for index, row in enumerate(rows):
        kind, id_, offset, size_bytes, alignment, flags, digest = row
        section = Section(kind, id_, offset, size_bytes, alignment, digest, flags)
        where = f"section[{index}]"
        _check_row(section, where, end, file_size_bytes)
        require(row[:2] not in seen, "section appears twice", where, section.name)
        seen.add(row[:2])
        sections.append(section)
        end = section.offset + section.size_bytes
    why = f"end {end} of {file_size_bytes}"
    require(end == file_size_bytes, "bytes after the last section", "section table", why)
    return sections


def _check_root_digest(header: bytes, table: bytes) -> None:
    root = header[_DIGEST_AT:]
    got = sha256(header[:_DIGEST_AT] + NO_DIGEST + table)
    if got != root:
        why = f"expected sha256 {root.hex()}, got {got.hex()}"
        raise DigestError("header or section table damaged", "header, root digest", why, DAMAGED)


def _require_known_kinds(rows: "list[tuple[Any, ...]]") -> None:
    """Raise ``VersionError`` naming all kinds that are not known and may not be skipped."""
    strange = {
        str(row[0]): 0 for row in rows if row[0] >= len(KIND_NAMES) and not row[5] & OPTIONAL
    }
    if strange:
        raise unknown(f"section kind {', '.join(strange)}", "section table")


def _check_row(row: Section, where: str, end: int, file_size_bytes: int) -> None:
    """Check one row; the section before it ends at `end`."""
    kind, offset, size_bytes, alignment = row.kind, row.offset, row.size_bytes, row.alignment
    either = (ALIGNMENT_SMALL_BYTES, ALIGNMENT_MAPPED_BYTES)
    aligned = (alignment_of(kind),) if row.is_known else either
    room, outside = file_size_bytes - offset, "section outside the file"
    most = _SIZE_BYTES_MAX.get(kind, 256 * MIB)
    has_digest = row.digest != NO_DIGEST
    require_all(
        where,
        (kind >= 1, "unknown kind of section", f"kind {kind}"),
        (row.flags == (0 if row.is_required else OPTIONAL), "unknown flags", f"flags {row.flags}"),
        (alignment in aligned, "wrong alignment", f"expected {aligned[0]}, got {alignment}"),
        (not alignment or not offset % alignment, "misaligned section", f"offset {offset}"),
        (end <= offset, "section overlaps the one before it", f"offset {offset} before {end}"),
        (offset - end < alignment, "gap before section", f"{offset - end} bytes"),
        (room >= 0, outside, f"offset {offset} of {file_size_bytes}"),
        (size_bytes <= room, outside, f"{size_bytes} bytes where {room} are left"),
        (size_bytes <= most, "section too large", f"{size_bytes} bytes"),
        (has_digest == (kind != WEIGHTS), "wrong use of the digest field", f"kind {kind}"),
    )


def check_kinds(
    sections: list[Section],
    variant_count: int,
    library_count: int,
    memories: tuple[int, ...],
    shared_bytes: int = 0,
) -> None:
    """Check that exactly the sections that the plan implies are there, that each tree fits its
    weights, and that these are last. ``memories``: the devices that may have weights;
    ``shared_bytes``: all weights of the host, where some lie in another bundle."""
    table = {(row.kind, row.id): row for row in sections if row.is_required}
    ids = [id_ for kind, id_ in table if kind == WEIGHTS]
    for id_ in ids:
        why = f"section weights {id_}"
        require(id_ in memories, "weights of a device that has none", "section table", why)
    last = [(row.kind, row.id) for row in sections[len(sections) - len(ids) :]]
    in_order = last == [(WEIGHTS, id_) for id_ in sorted(ids)]
    require(in_order, "weights are not last, in the order of devices", "section table")
    expected = {(MANIFEST, 0), (PLAN, 0), (LOCK, 0), (DEBUG, 0)}
    expected |= {(kind, index) for kind in (CODE, PROGRAM) for index in range(variant_count)}
    expected |= {(LIBRARY, index) for index in range(library_count)}
    expected |= {(kind, id_) for kind in (WEIGHTS, TREE) for id_ in ids}
    if shared_bytes:
        expected.add((SHARED, 0))
    for kind, id_ in sorted(expected ^ set(table)):
        problem = "missing" if (kind, id_) in expected else "unexpected"
        require(False, f"{problem} section {KIND_NAMES[kind]} {id_}", "section table")
    for id_ in sorted(ids):
        weights_bytes = (not id_ and shared_bytes) or table[WEIGHTS, id_].size_bytes
        _check_tree_size(id_, weights_bytes, table[TREE, id_].size_bytes)


def tree_size_bytes(weights_bytes: int) -> int:
    """Return the size of the tree of weights: an entry for each MiB, also one that is not whole."""
    return -(-weights_bytes // MIB) * TREE_ENTRY_SIZE_BYTES


def _check_tree_size(id: int, weights_bytes: int, tree_bytes: int) -> None:
    whole = weights_bytes % ALIGNMENT_MAPPED_BYTES == 0 and weights_bytes > 0
    why = f"expected a multiple of {ALIGNMENT_MAPPED_BYTES} bytes, got {weights_bytes}"
    require(whole, "wrong size of weights", f"section weights {id}", why)
    expected = tree_size_bytes(weights_bytes)
    why = f"expected {expected}, got {tree_bytes}"
    require(tree_bytes == expected, "wrong tree size", f"section tree {id}", why)
