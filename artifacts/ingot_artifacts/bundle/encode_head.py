"""The bytes of header and section table: FORMAT.md, "Header" and "Section table".

In: rows, the size of the file. Out: bytes, root digest. Not done here: checking the rows
(``ingot_runtime.format.header`` does).
"""

from ingot_runtime.format import header as head
from ingot_runtime.format.sha256 import sha256


def encode_head(sections: list[head.Section], file_size_bytes: int) -> tuple[bytes, bytes]:
    """Return (header + table, root digest)."""
    table = b"".join(map(_row, sections))
    root = sha256(_header(sections, file_size_bytes, head.NO_DIGEST) + table)
    return _header(sections, file_size_bytes, root) + table, root


def _header(sections: list[head.Section], file_size_bytes: int, root: bytes) -> bytes:
    return head.HEADER.pack(
        head.MAGIC,
        head.VERSION_MAJOR,
        head.minor_version(row.kind for row in sections),
        head.HEADER_SIZE_BYTES,
        head.ROW_SIZE_BYTES,
        len(sections),
        file_size_bytes,
        0,
        root,
    )


def _row(row: head.Section) -> bytes:
    return head.ROW.pack(
        row.kind, row.id, row.offset, row.size_bytes, row.alignment, row.flags, row.digest
    )
