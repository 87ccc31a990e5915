"""The bytes of header and section table: FORMAT.md, "Header" and "Section table".

In: rows, the size of the file. Out: bytes, root digest. Not done here: checking the rows
(``ingot_runtime.format.header`` does).
"""

from ingot_runtime.format import header as head
from ingot_runtime.format.schema import Record, layout
from ingot_runtime.format.sha256 import sha256


def encode_head(
    sections: list[head.Section], file_size_bytes: int, version_minor: int = 0
) -> tuple[bytes, bytes]:
    """Return (header + table, root digest)."""
    table = b"".join(map(pack_record, sections))
    header = head.Header(
        head.MAGIC, head.VERSION_MAJOR, version_minor, head.HEADER_SIZE_BYTES, head.ROW_SIZE_BYTES,
        len(sections), file_size_bytes, 0, head.NO_DIGEST,
    )  # fmt: skip
    header.root = sha256(pack_record(header) + table)
    return pack_record(header) + table, header.root


def pack_record(record: Record) -> bytes:
    """Return the bytes of a record of fixed size."""
    return layout(type(record)).pack(*(getattr(record, row.name) for row in record.rows))
