"""A code image in executable memory: copied from private bytes into a sealed file, and mapped.

In: bytes of a code section whose digest holds. Out: ``Image``: addresses. Not done here: calling
them. No page is ever writable and executable: so it works on noexec mounts and under PR_SET_MDWE.
"""

import ctypes
import struct

from ..errors import ResourceError, VersionError
from ..format import abi
from ..format.checks import require, require_all
from ..format.limits import FRAME_SIZE_BYTES_MAX
from . import system
from .area import Area

# The image's `launch`: pool, kernel, buffers, scalars, extent, grain, scratch, scratch_stride,
# watch
LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p,
    ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64,
)  # fmt: skip
_EXECUTABLE = system.PROT_READ | system.PROT_EXEC
_WRITABLE = system.PROT_READ | system.PROT_WRITE
_FRESH = system.MAP_PRIVATE | system.MAP_ANONYMOUS
_HEAD_WORDS = len(abi.IMAGE_HEADER)
# Those that a library may have or not.
_OPTIONAL_EXPORTS = {*abi.EXPORTS} - {*abi.LIBRARY_EXPORTS, *abi.VARIANT_EXPORTS}


def map_code(data: bytes, data_bytes: int = 0) -> Area:
    """Map `data` read-execute, with `data_bytes` of zeroed read-write memory behind it, or
    raise ``ResourceError``."""
    code_size_bytes = system.round_up(len(data))
    file = system.sealed_file(data)
    area = Area(code_size_bytes + system.round_up(data_bytes))
    try:
        area.put(0, code_size_bytes, _EXECUTABLE, system.MAP_PRIVATE, file.number)
        if data_bytes:
            area.put(code_size_bytes, data_bytes, _WRITABLE, _FRESH)
    except ResourceError as error:
        why = f"{error.why}: a security policy (SELinux execmem, vm.memfd_noexec) may forbid it"
        where = "mmap of a sealed memory file"
        raise ResourceError("this process may not map code", where, why) from error
    file.close()
    return area


class Image:
    """A mapped image: ``exports`` by name and ``kernels`` by index are addresses; digests are
    bytes.

    ``page`` is the address of the writable page behind it; ``frame_size_bytes`` what `main` needs
    of its caller.
    """

    __slots__ = (
        "area", "exports", "frame_size_bytes", "interface_digest", "kernels", "page",
        "program_digest",
    )  # fmt: skip

    def __init__(
        self, data: bytes, kernel_count: int, where: str, is_library: bool = False
    ) -> None:
        """Check the export table in `data`, then map; a library's missing exports are 0.

        Raises:
            FormatError: see `read_exports`. ResourceError: mapping is refused.
        """
        text_size_bytes, offsets = read_exports(data, kernel_count, where, is_library=is_library)
        at: dict[str, int] = dict(zip(abi.EXPORTS, offsets, strict=False))
        sizes = {} if is_library else abi.DATA_SIZES_BYTES
        values = {name: data[at[name] : at[name] + size] for name, size in sizes.items()}
        self.program_digest = values.get("program_digest", b"")
        self.interface_digest = values.get("interface_digest", b"")
        self.frame_size_bytes = int.from_bytes(values.get("frame_bytes", b""), "little")
        fits = self.frame_size_bytes <= FRAME_SIZE_BYTES_MAX
        require(fits, "frame too large", where, f"{self.frame_size_bytes} bytes")
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
    """Return bytes of text and offsets of exports, then kernels, each inside its part of the image.

    The image of a variant has every export; that of a library ``abi.LIBRARY_EXPORTS``, none of
    ``abi.VARIANT_EXPORTS``, any other or 0.

    Raises:
        FormatError: the table breaks a rule of FORMAT.md, "Image".
    """
    text_size_bytes, count = _checked_head(data, kernel_count, where, page)
    offsets = struct.unpack_from(f"<{count}I", data, 4 * _HEAD_WORDS)
    table_end = 4 * (_HEAD_WORDS + count)
    names = (*abi.EXPORTS, *(["kernel"] * kernel_count))
    for name, offset in zip(names, offsets, strict=True):
        if is_library and name in abi.VARIANT_EXPORTS:
            require(offset == 0, f"a library with an export {name}", where, f"offset {offset}")
        elif offset or not (is_library and name in _OPTIONAL_EXPORTS):
            data_bytes = abi.DATA_SIZES_BYTES.get(name)
            end = len(data) - data_bytes + 1 if data_bytes else text_size_bytes
            problem = f"export {name} is missing or outside the image"
            require(table_end <= offset < end, problem, where, f"offset {offset}")
    return text_size_bytes, offsets


def _checked_head(data: bytes, kernel_count: int, where: str, page: int) -> tuple[int, int]:
    """Return the bytes of text and the count of offsets, which fit into `data`."""
    size_bytes = len(data)
    whole = size_bytes >= 4 * _HEAD_WORDS and size_bytes % page == 0
    require(whole, "image is not whole pages", where, f"{size_bytes} bytes")
    magic, version, text, exports, kernels = struct.unpack_from(f"<{_HEAD_WORDS}I", data)
    require(magic == abi.IMAGE_MAGIC, "not an image", where, f"magic {magic:#x}")
    if version != abi.ABI_VERSION:
        why = f"expected {abi.ABI_VERSION}, got {version}"
        do = "compile the bundle again, or use the loader of its release"
        raise VersionError("another call struct", where, why, do)
    known = len(abi.EXPORTS)
    good = 0 < text <= size_bytes and text % page == 0
    fits = 4 * (_HEAD_WORDS + exports + kernels) <= size_bytes
    require_all(
        where,
        (good, "bad size of text", f"{text} of {size_bytes} bytes"),
        (exports == known, "wrong number of exports", f"expected {known}, got {exports}"),
        (
            kernels == kernel_count,
            "plan and image disagree",
            f"{kernel_count} and {kernels} kernels",
        ),
        (fits, "the export table does not fit", f"{kernels} kernels"),
    )
    return text, exports + kernels
