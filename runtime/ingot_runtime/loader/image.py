"""A code image in executable memory: copied from private bytes into a sealed file, mapped, its export table read.

In: bytes of a code section whose digest holds. Out: ``Image``: addresses. Not done here: calling them.
There is never a moment when a page is writable and executable (research: the one way that also works on noexec mounts and
under PR_SET_MDWE).
"""

import os
import struct

from ..errors import ResourceError
from ..format import abi
from ..format.checks import require
from . import system


def map_code(data: bytes, room_after_bytes: int = 0) -> tuple[int, int]:
    """Map `data` read-execute, with `room_after_bytes` of zeroed read-write memory behind it.

    Returns:
        (address, bytes mapped in all).

    Raises:
        ResourceError: this process may not map code.
    """
    code_size_bytes = system.round_up(len(data))
    whole = code_size_bytes + system.round_up(room_after_bytes)
    fd = system.sealed_file((data,))
    try:
        # Reserve both first: nothing of another thread may land between image and page.
        base = system.map_memory(whole, 0, system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE)
        fixed = system.MAP_PRIVATE | system.MAP_FIXED
        executable = system.PROT_READ | system.PROT_EXEC
        try:
            system.map_memory(code_size_bytes, executable, fixed, fd, 0, base)
            if room_after_bytes:
                writable = system.PROT_READ | system.PROT_WRITE
                behind = base + code_size_bytes
                system.map_memory(whole - code_size_bytes, writable, fixed | system.MAP_ANONYMOUS, -1, 0, behind)
        except ResourceError as error:
            system.unmap(base, whole)
            why = f"{error.why}: a security policy (SELinux execmem, vm.memfd_noexec) may forbid it"
            raise ResourceError("this process may not map code", "mmap of a sealed memory file", why) from error
    finally:
        os.close(fd)
    return base, whole


class Image:
    """A mapped image: ``exports`` by name and ``kernels`` by index are addresses; digests are bytes."""

    __slots__ = ("base", "exports", "interface_digest", "kernels", "mapped_size_bytes", "program_digest", "size_bytes")

    def __init__(self, data: bytes, kernel_count: int, where: str) -> None:
        """Check the export table in `data`, then map.

        Raises:
            FormatError: the table breaks a rule of FORMAT.md, "Image". ResourceError: mapping is refused.
        """
        text_size_bytes, offsets = read_exports(data, kernel_count, where)
        names = offsets[: len(abi.EXPORTS)]
        digest_offsets = dict(zip(abi.EXPORTS, names, strict=True))
        program_at, interface_at = digest_offsets["program_digest"], digest_offsets["interface_digest"]
        self.program_digest = data[program_at : program_at + 32]
        self.interface_digest = data[interface_at : interface_at + 32]
        self.size_bytes = len(data)
        self.base, self.mapped_size_bytes = map_code(data, system.PAGE_SIZE_BYTES)
        self.exports = {name: self.base + offset for name, offset in digest_offsets.items()}
        self.kernels = tuple(self.base + offset for offset in offsets[len(abi.EXPORTS) :])
        if text_size_bytes < len(data):
            system.protect(self.base + text_size_bytes, len(data) - text_size_bytes, system.PROT_READ)

    def unmap(self) -> None:
        """Give the memory back; nothing of the image may be running."""
        system.unmap(self.base, self.mapped_size_bytes)


def read_exports(
    data: bytes, kernel_count: int, where: str, page: int = system.PAGE_SIZE_BYTES
) -> tuple[int, tuple[int, ...]]:
    """Return (text bytes, offsets of exports then kernels), all inside the right part of an image of whole pages.

    Raises:
        FormatError: the table breaks a rule of FORMAT.md, "Image".
    """
    head_words = len(abi.IMAGE_HEADER)
    require(
        len(data) >= 4 * head_words and len(data) % page == 0, "image is not whole pages", where, f"{len(data)} bytes"
    )
    magic, version, text_size_bytes, exports, kernels = struct.unpack_from(f"<{head_words}I", data)
    require(magic == abi.IMAGE_MAGIC, "not an image", where, f"magic {magic:#x}")
    require(version == abi.ABI_VERSION, "another call struct", where, f"expected {abi.ABI_VERSION}, got {version}")
    good = 0 < text_size_bytes <= len(data) and text_size_bytes % page == 0
    require(good, "bad size of text", where, f"{text_size_bytes} of {len(data)} bytes")
    require(
        exports == len(abi.EXPORTS), "wrong number of exports", where, f"expected {len(abi.EXPORTS)}, got {exports}"
    )
    require(kernels == kernel_count, "plan and image disagree", where, f"{kernel_count} and {kernels} kernels")
    table_size_bytes = 4 * (head_words + exports + kernels)
    require(table_size_bytes <= len(data), "the export table does not fit", where, f"{kernels} kernels")
    offsets = struct.unpack_from(f"<{exports + kernels}I", data, 4 * head_words)
    for name, offset in zip((*abi.EXPORTS, *(["kernel"] * kernels)), offsets, strict=True):
        if name.endswith("_digest"):
            inside = 0 < offset <= len(data) - 32
        else:
            inside = table_size_bytes <= offset < text_size_bytes
        require(inside, f"export {name} is missing or outside the image", where, f"offset {offset}")
    return text_size_bytes, offsets
