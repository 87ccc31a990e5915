"""The bytes of header and section table: FORMAT.md, "Header" and "Section table".

In: rows, the size of the file. Out: bytes, root digest. Not done here: checking the rows
(``ingot_runtime.format.header`` does).
"""

from ingot_runtime.format import header as head
from ingot_runtime.format.sha256 import sha256


def encode_head(sections: list[head.Section], file_size_bytes: int) -> tuple[bytes, bytes]:
    """Return (header + table, root digest)."""
    table = b"".join(
        head.ROW.pack(
            row.kind, row.id, row.offset, row.size_bytes, row.alignment, row.flags, row.digest
        )
        for row in sections
    )

    def header(root: bytes) -> bytes:
        return head.HEADER.pack(
            head.MAGIC,
            head.VERSION_MAJOR,
            head.VERSION_MINOR,
            head.HEADER_SIZE_BYTES,
            head.ROW_SIZE_BYTES,
            len(sections),
            file_size_bytes,
            0,
            root,
        )

    root = sha256(header(head.NO_DIGEST) + table)
    return header(root) + table, root
