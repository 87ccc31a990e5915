"""The bytes of header and section table: FORMAT.md, "Header" and "Section table".

In: rows, the size of the file. Out: bytes, root digest. Not done here: checking the rows
(``ingot_runtime.format.header`` does).
"""

from ingot_runtime.format import header as head
from ingot_runtime.format.sha256 import sha256


def encode_head(
    sections: list[head.Section], file_size_bytes: int, version_minor: int = 0
) -> tuple[bytes, bytes]:
    """Return (header + table, root digest)."""
    count = len(sections)
    table = b"".join(map(_row, sections))
    root = sha256(_header(count, file_size_bytes, head.NO_DIGEST, version_minor) + table)
    return _header(count, file_size_bytes, root, version_minor) + table, root


def _header(section_count: int, file_size_bytes: int, root: bytes, version_minor: int) -> bytes:
    return head.HEADER.pack(
        head.MAGIC,
        head.VERSION_MAJOR,
        version_minor,
        head.HEADER_SIZE_BYTES,
        head.ROW_SIZE_BYTES,
        section_count,
        file_size_bytes,
        0,
        root,
    )


def _row(row: head.Section) -> bytes:
    return head.ROW.pack(
        row.kind, row.id, row.offset, row.size_bytes, row.alignment, row.flags, row.digest
    )
