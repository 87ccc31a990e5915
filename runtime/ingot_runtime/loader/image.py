"""A code image in executable memory: copied from private bytes into a sealed file, mapped, its
export table read.

In: bytes of a code section whose digest holds. Out: ``Image``: addresses. Not done here: calling
them.
There is never a moment when a page is writable and executable (research: the one way that also
works on noexec mounts and under PR_SET_MDWE).
"""

import ctypes
import struct

from ..errors import ResourceError, VersionError
from ..format import abi
from ..format.checks import require
from ..format.limits import FRAME_SIZE_BYTES_MAX
from . import system
from .area import Area

# The image's `launch`: pool, kernel, buffers, scalars, extent, grain, scratch, scratch_stride,
# watch
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
    ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64,
)  # fmt: skip


def map_code(data: bytes, room_after_bytes: int = 0) -> Area:
    """Map `data` read-execute, with `room_after_bytes` of zeroed read-write memory behind it.

    Raises:
        ResourceError: this process may not map code.
    """
    code_size_bytes = system.round_up(len(data))
    file = system.sealed_file(data)
    area = Area(code_size_bytes + system.round_up(room_after_bytes))
    try:
        executable = system.PROT_READ | system.PROT_EXEC
        area.put(0, code_size_bytes, executable, system.MAP_PRIVATE, file.number)
        if room_after_bytes:
            writable = system.PROT_READ | system.PROT_WRITE
            area.put(
                code_size_bytes,
                room_after_bytes,
                writable,
                system.MAP_PRIVATE | system.MAP_ANONYMOUS,
            )
    except ResourceError as error:
        why = f"{error.why}: a security policy (SELinux execmem, vm.memfd_noexec) may forbid it"
        raise ResourceError(
            "this process may not map code", "mmap of a sealed memory file", why
        ) from error
    file.close()
    return area


class Image:
    """A mapped image: ``exports`` by name and ``kernels`` by index are addresses; digests are
    bytes.

    ``page`` is the address of the writable page behind it; ``frame_size_bytes`` what `main` needs
    of its caller.
    """

    __slots__ = (
        "area", "exports", "frame_size_bytes", "interface_digest", "kernels", "page", "program_digest",
    )  # fmt: skip

    def __init__(
        self, data: bytes, kernel_count: int, where: str, is_library: bool = False
    ) -> None:
        """Check the export table in `data`, then map; of a library's exports, those that are
        missing are 0.

        Raises:
            FormatError: the table breaks a rule of FORMAT.md, "Image". ResourceError: mapping is
                refused.
        """
        text_size_bytes, offsets = read_exports(data, kernel_count, where, is_library=is_library)
        at: dict[str, int] = dict(zip(abi.EXPORTS, offsets, strict=False))
        sizes = {} if is_library else abi.DATA_SIZES_BYTES
        values = {name: data[at[name] : at[name] + size] for name, size in sizes.items()}
        self.program_digest = values.get("program_digest", b"")
        self.interface_digest = values.get("interface_digest", b"")
        self.frame_size_bytes = int.from_bytes(values.get("frame_bytes", b""), "little")
        require(
            self.frame_size_bytes <= FRAME_SIZE_BYTES_MAX,
            "frame too large",
            where,
            f"{self.frame_size_bytes} bytes",
        )
        self.area = map_code(data, system.PAGE_SIZE_BYTES)
        base = self.area.address
        self.page = base + system.round_up(len(data))
        self.exports = {name: base + offset if offset else 0 for name, offset in at.items()}
        self.kernels = tuple(base + offset for offset in offsets[len(abi.EXPORTS) :])
        if text_size_bytes < len(data):
            system.protect(base + text_size_bytes, len(data) - text_size_bytes, system.PROT_READ)


def read_exports(
    data: bytes,
    kernel_count: int,
    where: str,
    page: int = system.PAGE_SIZE_BYTES,
    is_library: bool = False,
) -> tuple[int, tuple[int, ...]]:
    """Return (text bytes, offsets of exports then kernels), all inside the right part of an image
    of whole pages.

    The image of a variant has every export; that of a library ``abi.LIBRARY_EXPORTS``, none of
    ``abi.VARIANT_EXPORTS``, any other or 0.

    Raises:
        FormatError: the table breaks a rule of FORMAT.md, "Image".
    """
    head_words = len(abi.IMAGE_HEADER)
    require(
        len(data) >= 4 * head_words and len(data) % page == 0,
        "image is not whole pages",
        where,
        f"{len(data)} bytes",
    )
    magic, version, text_size_bytes, exports, kernels = struct.unpack_from(f"<{head_words}I", data)
    require(magic == abi.IMAGE_MAGIC, "not an image", where, f"magic {magic:#x}")
    if version != abi.ABI_VERSION:
        why = f"expected {abi.ABI_VERSION}, got {version}"
        raise VersionError(
            "another call struct",
            where,
            why,
            "compile the bundle again, or use the loader of its release",
        )
    good = 0 < text_size_bytes <= len(data) and text_size_bytes % page == 0
    require(good, "bad size of text", where, f"{text_size_bytes} of {len(data)} bytes")
    require(
        exports == len(abi.EXPORTS),
        "wrong number of exports",
        where,
        f"expected {len(abi.EXPORTS)}, got {exports}",
    )
    require(
        kernels == kernel_count,
        "plan and image disagree",
        where,
        f"{kernel_count} and {kernels} kernels",
    )
    table_size_bytes = 4 * (head_words + exports + kernels)
    require(
        table_size_bytes <= len(data), "the export table does not fit", where, f"{kernels} kernels"
    )
    offsets = struct.unpack_from(f"<{exports + kernels}I", data, 4 * head_words)
    for name, offset in zip((*abi.EXPORTS, *(["kernel"] * kernels)), offsets, strict=True):
        if is_library and name in abi.VARIANT_EXPORTS:
            require(offset == 0, f"a library with an export {name}", where, f"offset {offset}")
            continue
        if is_library and offset == 0 and name in abi.EXPORTS and name not in abi.LIBRARY_EXPORTS:
            continue
        if name in abi.DATA_SIZES_BYTES:
            inside = table_size_bytes <= offset <= len(data) - abi.DATA_SIZES_BYTES[name]
        else:
            inside = table_size_bytes <= offset < text_size_bytes
        require(inside, f"export {name} is missing or outside the image", where, f"offset {offset}")
    return text_size_bytes, offsets
