"""Constants by digest, in memory: the bytes that pure functions read through a ``ConstantReader``.

In: dense little-endian bytes. Out: their digest, and the bytes again. Not done here: packing, files, eviction.
"""

from __future__ import annotations

import hashlib

from ingot_compiler.ir.errors import InternalError


class ConstantStore:
    """Bytes by sha256, at most one copy of each.

    Read-only views are kept as they are: those into the model file and into mapped external data cost no second copy.
    """

    def __init__(self) -> None:
        self._views: dict[str, memoryview] = {}

    def write(self, content: memoryview) -> str:
        """Keep ``content`` (any shape, contiguous); return its digest, 64 hex digits."""
        flat = content.cast("B") if content.nbytes else memoryview(b"")
        name = hashlib.sha256(flat).hexdigest()
        if name not in self._views:
            self._views[name] = flat if flat.readonly else memoryview(bytes(flat))
        return name

    def read(self, digest: str) -> memoryview:
        """Return the bytes of a constant, read-only.

        Raises:
            InternalError: nobody wrote it.
        """
        if digest not in self._views:
            raise InternalError("constant not found", where=f"constant {digest[:16]}")
        return self._views[digest]
