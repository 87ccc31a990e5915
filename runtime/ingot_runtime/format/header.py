"""The fixed header and the section table: FORMAT.md, "Header" and "Section table".

In: the first bytes of a file and its size. Out: checked ``Section`` rows. Not done here: writing
(``ingot_artifacts.bundle.encode_head``), reading sections, their digests, the zero gaps between
them (``source``).
"""

import struct

from ..errors import DigestError, NotABundleError, VersionError
from .checks import DAMAGED, require, unknown
from .limits import (
    ALIGNMENT_MAPPED_BYTES,
    ALIGNMENT_SMALL_BYTES,
    MIB,
    SECTION_COUNT_MAX,
    SIZE_BYTES_MAX,
    TREE_ENTRY_SIZE_BYTES,
)
from .sha256 import sha256

MAGIC = b"\x8aINGOT\r\n"
VERSION_MAJOR = 1
VERSION_MINOR = 0

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
MANIFEST, PLAN, CODE, PROGRAM, WEIGHTS, TREE, LOCK, DEBUG, LIBRARY = range(1, 10)
KIND_NAMES = (
    "",
    "manifest",
    "plan",
    "code",
    "program",
    "weights",
    "tree",
    "lock",
    "debug",
    "library",
)
_SIZE_BYTES_MAX = {
    MANIFEST: MIB,
    PLAN: 64 * MIB,
    CODE: 256 * MIB,
    PROGRAM: 256 * MIB,
    WEIGHTS: SIZE_BYTES_MAX,
    TREE: SIZE_BYTES_MAX,
    LOCK: 64 * MIB,
    DEBUG: 256 * MIB,
    LIBRARY: 256 * MIB,
}
_MAPPED = (CODE, WEIGHTS, LIBRARY)
OPTIONAL = 1  # of a row's flags: who does not know the kind skips the section
_OPTIONAL_SIZE_BYTES_MAX = 256 * MIB


def kind_name(kind: int) -> str:
    """Return the name of a kind of section, or ``of kind 12`` where this version does not know
    it."""
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
    def kind_name(self) -> str:
        """See `kind_name`."""
        return kind_name(self.kind)


def alignment_of(kind: int) -> int:
    """Return the alignment in the file, in bytes, that a section of `kind` MUST have."""
    return ALIGNMENT_MAPPED_BYTES if kind in _MAPPED else ALIGNMENT_SMALL_BYTES


def later_version(header: bytes) -> "VersionError | None":
    """Return the refusal of a bundle of a later minor version, whose rows are those that are read
    here; None for a version that is known.

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
    require(header_size == HEADER_SIZE_BYTES, "wrong header size", "header", f"got {header_size}")
    require(row_size == ROW_SIZE_BYTES, "wrong row size", "header", f"got {row_size}")
    require(flags == 0, "unknown flags", "header", f"expected 0, got {flags}")
    why = f"the header promises {file_size} bytes, the file has {file_size_bytes}"
    require(
        file_size == file_size_bytes, "the file is truncated or extended", "header, file size", why
    )
    why = f"expected 1 to {SECTION_COUNT_MAX}, got {count}"
    require(1 <= count <= SECTION_COUNT_MAX, "bad number of sections", "header", why)
    table_end = HEADER_SIZE_BYTES + count * ROW_SIZE_BYTES
    require(
        table_end <= file_size_bytes, "the section table does not fit", "header", f"{count} rows"
    )
    return int(count)


def require_magic(header: bytes) -> None:
    """Raise ``NotABundleError`` or ``FormatError`` unless `header` is whole and starts with the
    magic bytes."""
    if header[:8] != MAGIC[: len(header[:8])] or not header:
        raise NotABundleError(
            "not a bundle",
            "the first 8 bytes",
            f"expected {MAGIC.hex(' ')}, got {header[:8].hex(' ') or 'nothing'}",
            "give a file made by `ingot compile`",
        )
    require(
        len(header) == HEADER_SIZE_BYTES,
        "the file ends inside its header",
        "header",
        f"{len(header)} bytes",
    )


def check_table(header: bytes, table: bytes, file_size_bytes: int) -> list[Section]:
    """Check digest and rows of the table; return the rows.

    Guarantees: kinds that are known or may be skipped, no (kind, id) twice, exact alignments,
    sorted, disjoint, inside the file, every gap shorter than an alignment, last end == file size.
    """
    root = header[_DIGEST_AT:]
    got = sha256(header[:_DIGEST_AT] + NO_DIGEST + table)
    if got != root:
        why = f"expected sha256 {root.hex()}, got {got.hex()}"
        raise DigestError("header or section table damaged", "header, root digest", why, DAMAGED)
    strange = {
        f"{row[0]}": 0
        for row in ROW.iter_unpack(table)
        if row[0] >= len(KIND_NAMES) and not row[5] & OPTIONAL
    }
    if strange:
        raise unknown(f"section kind {', '.join(strange)}", "section table")
    sections: list[Section] = []
    seen: set[tuple[int, int]] = set()
    end = HEADER_SIZE_BYTES + len(table)
    for index, row in enumerate(ROW.iter_unpack(table)):
        section = _checked_row(index, row, end, file_size_bytes)
        where = f"section[{index}]"
        require(
            (section.kind, section.id) not in seen, "section appears twice", where, section.name
        )
        seen.add((section.kind, section.id))
        sections.append(section)
        end = section.offset + section.size_bytes
    require(
        end == file_size_bytes,
        "bytes after the last section",
        "section table",
        f"end {end} of {file_size_bytes}",
    )
    return sections


def _checked_row(
    index: int, row: tuple[int, int, int, int, int, int, bytes], end: int, file_size_bytes: int
) -> Section:
    kind, id_, offset, size_bytes, alignment, flags, digest = row
    where = f"section[{index}]"
    require(kind >= 1, "unknown kind of section", where, f"kind {kind}")
    is_known = kind < len(KIND_NAMES)
    require(flags == (0 if is_known else OPTIONAL), "unknown flags", where, f"flags {flags}")
    expected = (
        (alignment_of(kind),) if is_known else (ALIGNMENT_SMALL_BYTES, ALIGNMENT_MAPPED_BYTES)
    )
    require(
        alignment in expected, "wrong alignment", where, f"expected {expected[0]}, got {alignment}"
    )
    require(offset % alignment == 0, "misaligned section", where, f"offset {offset}")
    require(
        end <= offset, "section overlaps the one before it", where, f"offset {offset} before {end}"
    )
    require(offset - end < alignment, "gap before section", where, f"{offset - end} bytes")
    require(
        offset <= file_size_bytes,
        "section outside the file",
        where,
        f"offset {offset} of {file_size_bytes}",
    )
    room = file_size_bytes - offset
    require(
        size_bytes <= room,
        "section outside the file",
        where,
        f"{size_bytes} bytes where {room} are left",
    )
    most = _SIZE_BYTES_MAX.get(kind, _OPTIONAL_SIZE_BYTES_MAX)
    require(size_bytes <= most, "section too large", where, f"{size_bytes} bytes")
    require(
        (digest == NO_DIGEST) == (kind == WEIGHTS),
        "wrong use of the digest field",
        where,
        f"kind {kind}",
    )
    return Section(kind, id_, offset, size_bytes, alignment, digest, flags)


def check_kinds(
    sections: list[Section], variant_count: int, library_count: int, memories: tuple[int, ...]
) -> None:
    """Check that exactly the sections that the plan implies are there, that each tree fits its
    weights, and that these are last.

    ``memories``: the devices that have weights of their own, if there are any.
    """
    table = {(row.kind, row.id): row for row in sections if row.is_known}
    expected = {(MANIFEST, 0), (PLAN, 0), (LOCK, 0), (DEBUG, 0)}
    expected |= {(kind, index) for kind in (CODE, PROGRAM) for index in range(variant_count)}
    expected |= {(LIBRARY, index) for index in range(library_count)}
    weights = {key for key in table if key[0] == WEIGHTS}
    for _, id_ in weights:
        require(
            id_ in memories,
            "weights of a device that has none",
            "section table",
            f"section weights {id_}",
        )
    last = [(row.kind, row.id) for row in sections[len(sections) - len(weights) :]]
    require(
        last == sorted(weights), "weights are not last, in the order of devices", "section table"
    )
    expected |= weights | {(TREE, id_) for _, id_ in weights}
    for kind, id_ in sorted(expected ^ set(table)):
        problem = "missing" if (kind, id_) in expected else "unexpected"
        require(False, f"{problem} section {KIND_NAMES[kind]} {id_}", "section table")
    for _, id_ in sorted(weights):
        size, tree = table[WEIGHTS, id_].size_bytes, table[TREE, id_].size_bytes
        require(
            size % MIB == 0 and size > 0,
            "weights are not whole MiBs",
            f"section weights {id_}",
            f"{size} bytes",
        )
        expected_size = size // MIB * TREE_ENTRY_SIZE_BYTES
        require(
            tree == expected_size,
            "wrong tree size",
            f"section tree {id_}",
            f"expected {expected_size}, got {tree}",
        )
