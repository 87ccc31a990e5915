"""The fixed header and the section table: FORMAT.md, "Header" and "Section table".

In: the first bytes of a file and its size. Out: checked ``Section`` rows. Not done here: writing
(``ingot_artifacts.bundle.encode_head``), reading sections, their digests, the zero gaps between
them (``source``).
"""

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
from .schema import Record, layout, row
from .sha256 import sha256

MAGIC = b"\x8aINGOT\r\n"
VERSION_MAJOR = 1
VERSION_MINOR = 6  # the latest: a bundle has the lowest whose readers know what it requires

NO_DIGEST = bytes(32)
OPTIONAL = 1  # of a row's flags: who does not know the kind skips the section


class Header(Record):
    """What a bundle begins with; ``root`` is a digest over header and table, with zeros for itself."""

    magic: bytes = row("bytes", high=8)
    major: int = row("u16")
    minor: int = row("u16")
    header_bytes: int = row("u32")
    row_bytes: int = row("u32")
    section_count: int = row("u32")
    file_bytes: int = row("u64")
    flags: int = row("u64")
    root: bytes = row("bytes", high=32)


class SectionKind(Record):
    """What is the same for all sections of a kind. ``since``: the first minor version of bundles that
    have some; ``is_optional``: a reader may skip them."""

    name: str = row("text")
    alignment: int = row("word", default=ALIGNMENT_SMALL_BYTES)
    size_bytes_max: int = row("word", default=256 * MIB)
    since: int = row("word", default=0)
    is_optional: bool = row("word", default=False)


# By their numbers. A section's id says which one: the variant's, the device's or the library's index,
# else 0.
SECTION_KINDS = (
    SectionKind(""),  # of those that are not known
    SectionKind("manifest", size_bytes_max=MIB),
    SectionKind("plan", size_bytes_max=64 * MIB),
    SectionKind("code", ALIGNMENT_MAPPED_BYTES),
    SectionKind("program"),
    SectionKind("weights", ALIGNMENT_MAPPED_BYTES, SIZE_BYTES_MAX),
    SectionKind("tree", size_bytes_max=SIZE_BYTES_MAX),
    SectionKind("lock", size_bytes_max=64 * MIB),
    SectionKind("debug"),
    SectionKind("library", ALIGNMENT_MAPPED_BYTES),
    SectionKind("default", is_optional=True),
    SectionKind("state", since=1, is_optional=True),
    SectionKind("alternative", is_optional=True),
    SectionKind("values", is_optional=True),
    SectionKind("signature", is_optional=True),
    SectionKind("selftest", is_optional=True),
    SectionKind("shared", since=4),
)
(
    MANIFEST, PLAN, CODE, PROGRAM, WEIGHTS, TREE, LOCK, DEBUG, LIBRARY, DEFAULT, STATE, ALTERNATIVE,
    VALUES, SIGNATURE, SELFTEST, SHARED,
) = range(1, len(SECTION_KINDS))  # fmt: skip
KIND_NAMES = tuple(kind.name for kind in SECTION_KINDS)
OPTIONAL_KINDS = tuple(at for at, kind in enumerate(SECTION_KINDS) if kind.is_optional)


def kind_name(kind: int) -> str:
    """Return the name of a kind of section; of an unknown one, ``of kind 12``."""
    return KIND_NAMES[kind] if kind < len(KIND_NAMES) else f"of kind {kind}"


def section_kind(kind: int) -> SectionKind:
    """Return what is known of a kind of section."""
    return SECTION_KINDS[kind if kind < len(SECTION_KINDS) else 0]


class Section(Record):
    """One row of the table. ``digest`` is sha256 of the section, or 32 zero bytes for weights
    (their tree covers them)."""

    kind: int = row("u32")
    id: int = row("u32")
    offset: int = row("u64")
    size_bytes: int = row("u64")
    alignment: int = row("u32")
    flags: int = row("u32")
    digest: bytes = row("bytes", high=32)

    @property
    def name(self) -> str:
        """Kind and id for messages, e.g. ``section code 2``."""
        return f"section {kind_name(self.kind)} {self.id}"

    @property
    def is_known(self) -> bool:
        """Whether this version knows the kind; it skips others."""
        return self.kind < len(KIND_NAMES)

    @property
    def is_required(self) -> bool:
        """Whether no reader may skip it."""
        return self.is_known and self.kind not in OPTIONAL_KINDS


HEADER, ROW = layout(Header), layout(Section)
HEADER_SIZE_BYTES, ROW_SIZE_BYTES = HEADER.size, ROW.size


def later_version(header: bytes) -> "VersionError | None":
    """Return the refusal of a later minor version, whose rows are as here; None for a known one.

    Raises:
        VersionError: another major version, of which nothing is known.
    """
    read = Header(*HEADER.unpack(header))
    major, minor = read.major, read.minor
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
    read = Header(*HEADER.unpack(header))
    count = read.section_count
    require_all(
        "header",
        (read.header_bytes == HEADER_SIZE_BYTES, "wrong header size", f"got {read.header_bytes}"),
        (read.row_bytes == ROW_SIZE_BYTES, "wrong row size", f"got {read.row_bytes}"),
        (read.flags == 0, "unknown flags", f"expected 0, got {read.flags}"),
    )
    why = f"the header promises {read.file_bytes} bytes, the file has {file_size_bytes}"
    extended = "the file is truncated or extended"
    require(read.file_bytes == file_size_bytes, extended, "header, file size", why)
    why = f"expected 1 to {SECTION_COUNT_MAX}, got {count}"
    require(1 <= count <= SECTION_COUNT_MAX, "bad number of sections", "header", why)
    fits = HEADER_SIZE_BYTES + count * ROW_SIZE_BYTES <= file_size_bytes
    require(fits, "the section table does not fit", "header", f"{count} rows")
    return count


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
    sections = [Section(*values) for values in ROW.iter_unpack(table)]
    _require_known_kinds(sections)
    seen: set[tuple[int, int]] = set()
    end = HEADER_SIZE_BYTES + len(table)
    for index, section in enumerate(sections):
        where, key = f"section[{index}]", (section.kind, section.id)
        _check_row(section, where, end, file_size_bytes)
        require(key not in seen, "section appears twice", where, section.name)
        seen.add(key)
        end = section.offset + section.size_bytes
    why = f"end {end} of {file_size_bytes}"
    require(end == file_size_bytes, "bytes after the last section", "section table", why)
    return sections


def _check_root_digest(header: bytes, table: bytes) -> None:
    start, root = header[:-32], header[-32:]
    got = sha256(start + NO_DIGEST + table)
    if got != root:
        why = f"expected sha256 {root.hex()}, got {got.hex()}"
        raise DigestError("header or section table damaged", "header, root digest", why, DAMAGED)


def _require_known_kinds(sections: list[Section]) -> None:
    """Raise ``VersionError`` naming all kinds that are not known and may not be skipped."""
    needed = (each for each in sections if not each.is_known and not each.flags & OPTIONAL)
    strange = {str(each.kind): 0 for each in needed}
    if strange:
        raise unknown(f"section kind {', '.join(strange)}", "section table")


def _check_row(section: Section, where: str, end: int, file_size_bytes: int) -> None:
    """Check one row; the section before it ends at `end`."""
    kind, offset, alignment = section.kind, section.offset, section.alignment
    size_bytes = section.size_bytes
    own = section_kind(kind)
    is_aligned = alignment == own.alignment or (
        not section.is_known and alignment == ALIGNMENT_MAPPED_BYTES
    )
    expected = 0 if section.is_required else OPTIONAL
    left_bytes, outside = file_size_bytes - offset, "section outside the file"
    has_digest = section.digest != NO_DIGEST
    require_all(
        where,
        (kind >= 1, "unknown kind of section", f"kind {kind}"),
        (section.flags == expected, "unknown flags", f"flags {section.flags}"),
        (is_aligned, "wrong alignment", f"expected {own.alignment}, got {alignment}"),
        (not alignment or not offset % alignment, "misaligned section", f"offset {offset}"),
        (end <= offset, "section overlaps the one before it", f"offset {offset} before {end}"),
        (offset - end < alignment, "gap before section", f"{offset - end} bytes"),
        (left_bytes >= 0, outside, f"offset {offset} of {file_size_bytes}"),
        (size_bytes <= left_bytes, outside, f"{size_bytes} bytes where {left_bytes} are left"),
        (size_bytes <= own.size_bytes_max, "section too large", f"{size_bytes} bytes"),
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
