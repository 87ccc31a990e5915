"""What turns one bundle into another: FORMAT.md, "Delta".

In: the bytes of such a file. Out: ``Delta``. Not done here: making one
(``ingot_build_rules.ship.delta``), applying it (``apply_delta``).
"""

import struct

from .checks import require
from .limits import SIZE_BYTES_MAX
from .sha256 import sha256

MAGIC = b"\x8aINGOTD\n"
# magic, version, 0, root digest of the old and the new one, bytes of the new one, steps, its sha256
HEAD = struct.Struct("<8sII32s32sQQ32s")
STEP = struct.Struct("<QQ")
GIVEN = (1 << 64) - 1  # in the place of an offset in the old one: bytes that the delta has
VERSION = 1


class Delta:
    """``steps``: offset in the old one (or ``GIVEN``) and bytes; ``given``: those, deflated."""

    __slots__ = ("content_digest", "given", "new_root", "old_root", "size_bytes", "steps")

    def __init__(self, data: bytes, where: str) -> None:
        """Check everything but what the given bytes are.

        Raises:
            FormatError: any rule broken.
        """
        whole = len(data) >= HEAD.size + 32 and data.startswith(MAGIC)
        require(whole, "not a delta", where, f"expected {MAGIC.hex(' ')}, got {data[:8].hex(' ')}")
        good = sha256(data[:-32]) == data[-32:]
        require(good, "the delta is damaged", where, "its digest is another")
        _, version, zero, old_root, new_root, size_bytes, count, content = HEAD.unpack_from(data)
        self.old_root: bytes = old_root
        self.new_root: bytes = new_root
        self.size_bytes: int = size_bytes
        self.content_digest: bytes = content
        require((version, zero) == (VERSION, 0), "unknown version of a delta", where, f"{version}")
        end = HEAD.size + count * STEP.size
        require(end <= len(data) - 32, "the delta ends too early", where, f"{count} steps")
        self.steps = list(STEP.iter_unpack(data[HEAD.size : end]))
        total = sum(size for _, size in self.steps)
        good = total == self.size_bytes <= SIZE_BYTES_MAX
        require(good, "the steps make another size", where, f"{total}")
        self.given = data[end:-32]
