"""The other bundle in which weights lie: FORMAT.md, "Shared".

In: an open bundle whose plan was read. Out: where each part of its weights lies. Not done here: mapping
them (``loader.weights``).
"""

import os

from ..errors import BundleError, FileError
from . import header as head
from .checks import require
from .source import Source, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Piece = tuple[int, int, Source, int]


def open_base(source: Source) -> None:
    """Open the bundle that `source` shares weights with, where it does and that was not done yet.

    Raises:
        BundleError: it is not there, damaged, another one, or has not what is shared.
    """
    shared = source.shared
    if shared is None or source.base is not None:
        return
    path = os.path.join(os.path.dirname(source.name), shared.name)
    try:
        base = open_file(path, shared.digest)
        row = base.by_key.get((head.WEIGHTS, 0))
        limit_bytes = row.size_bytes if row and (head.SHARED, 0) not in base.by_key else 0
        most = max(there + size for _, there, size in shared.rows)
        require(
            most <= limit_bytes,
            "shared weights that are not there",
            "section shared 0",
            f"{most} of {limit_bytes} bytes",
        )
    except FileError as error:
        do = "put the bundle that it was made from beside it, under the name that it had then"
        what = "the bundle whose weights are shared cannot be read"
        raise FileError(what, f"{source.name}, {path}", error.why, do) from error
    except BundleError as error:
        raise error.at(f"{source.name}, {path}, {error.where}") from error
    source.share(base)


def pieces(source: Source, id: int = 0) -> "Iterator[Piece]":
    """Yield offset, bytes, file and offset there of each piece of the weights of device `id`."""
    row = source.by_key[head.WEIGHTS, id]
    at, own, base = 0, row.offset, source.base
    if source.shared is not None and base is not None and not id:
        other = base.by_key[head.WEIGHTS, 0].offset
        for start, there, size in source.shared.rows:
            if start > at:
                yield at, start - at, source, own
            own += start - at
            yield start, size, base, other + there
            at = start + size
    end = row.offset + row.size_bytes
    if own < end:
        yield at, end - own, source, own


def read_weights(source: Source, id: int, at: int, size_bytes: int) -> bytes:
    """Return bytes of the weights of device `id`, wherever they lie."""
    parts: list[bytes] = []
    for start, size, file, offset in pieces(source, id):
        first, last = max(at, start), min(at + size_bytes, start + size)
        if first < last:
            parts.append(file.read(offset + first - start, last - first))
    return b"".join(parts)
