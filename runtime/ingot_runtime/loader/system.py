"""The few calls into the operating system, by ctypes.

In: numbers. Out: addresses; every failure is a ``ResourceError`` that names the call. Not done
here: policy. Constants are Linux's, the same everywhere unless a table says otherwise.
"""

import ctypes
import os

from ..errors import ResourceError
from ..format.file import BundleFile, QuietFile, stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import partial
else:
    from _functools import partial  # functools itself costs milliseconds

PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
MAP_SHARED, MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS, MAP_NORESERVE = 1, 2, 16, 32, 0x4000
MADV_WILLNEED, MADV_WIPEONFORK, MADV_HUGEPAGE = 3, 18, 14
HUGE_PAGE_SIZE_BYTES = 1 << 21
_MFD_CLOEXEC, _MFD_ALLOW_SEALING, _MFD_NOEXEC_SEAL = 1, 2, 8
_F_ADD_SEALS, _ALL_SEALS = 1033, 0x000F  # seal, shrink, grow, write
_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_TILEDATA = 158, 0x1023, 18

# futex(2) and mmap(2) by machine (os.uname().machine).
FUTEX_NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
MMAP_NUMBERS = {"x86_64": 9, "aarch64": 222, "riscv64": 222}

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
)  # fmt: skip
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_LIBC.sigaction.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_LIBC.getauxval.restype = ctypes.c_ulong
_LIBC.getauxval.argtypes = (ctypes.c_ulong,)
_MEMFD_CREATE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_uint, ctypes.py_object, ctypes.py_object, use_errno=True
)(ctypes.cast(_LIBC.memfd_create, ctypes.c_void_p).value or 0)
_MAP_FAILED = ctypes.c_void_p(-1).value

PAGE_SIZE_BYTES = os.sysconf("SC_PAGE_SIZE")


def address_of_libc(name: str) -> int:
    """Return the address of a function of libc."""
    return ctypes.cast(getattr(_LIBC, name), ctypes.c_void_p).value or 0


def round_up(size_bytes: int, unit: int = PAGE_SIZE_BYTES) -> int:
    """Round up to a multiple of `unit`."""
    return (size_bytes + unit - 1) // unit * unit


def map_memory(
    address: int, size_bytes: int, protection: int, flags: int, fd: int, offset: int
) -> int:
    """mmap(2); return the address, or raise ``ResourceError``."""
    got = _LIBC.mmap(address, size_bytes, protection, flags, fd, offset)
    if got is None or got == _MAP_FAILED:
        raise _refused("mmap", f"{size_bytes} bytes")
    return int(got)


def protect(address: int, size_bytes: int, protection: int) -> None:
    """mprotect(2)."""
    if _LIBC.mprotect(address, size_bytes, protection):
        raise _refused("mprotect", f"{size_bytes} bytes")


def advise(address: int, size_bytes: int, advice: int) -> bool:
    """madvise(2): return whether the kernel took the hint."""
    return bool(_LIBC.madvise(address, size_bytes, advice) == 0)


def install_action(signal_number: int, action: int, old_action: int) -> None:
    """sigaction(2) by addresses of libc's struct; 0 for none."""
    if _LIBC.sigaction(signal_number, action or None, old_action or None):
        raise _refused("sigaction", f"signal {signal_number}")


def auxiliary_value(kind: int) -> int:
    """getauxval(3)."""
    return int(_LIBC.getauxval(kind))


def request_amx() -> bool:
    """Ask the kernel for AMX tile data for this process; return whether it is granted."""
    return bool(_LIBC.syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_TILEDATA) == 0)


def sealed_file(data: "bytes | bytearray | memoryview") -> BundleFile:
    """Return an anonymous file with the bytes of `data` that nobody can change any more, or raise
    ``ResourceError``."""
    try:
        file = _memory_file()
        view = memoryview(data).cast("B")
        while view:
            view = view[os.write(file.number, view) :]
        import fcntl

        fcntl.fcntl(file.number, _F_ADD_SEALS, _ALL_SEALS)
        file.stamp = stamp(os.fstat(file.number))
    except OSError as error:
        why = str(error)
        raise ResourceError("no sealed memory file", "memfd_create", why, FREE_MEMORY) from error
    return file


def _memory_file() -> BundleFile:
    """Make one by libc's own function: its descriptor belongs to an object from the beginning."""
    for flag in (_MFD_NOEXEC_SEAL, _MFD_ALLOW_SEALING):  # the second: before Linux 6.3
        # FileIO gives a name and flags of open(2), which libc does not look at.
        opener = partial(_MEMFD_CREATE, b"ingot", _MFD_CLOEXEC | flag)
        try:
            return BundleFile(QuietFile(b"ingot", "r+b", opener=opener))
        except ValueError:  # a descriptor of -1
            number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def callback(function: "Callable[..., object]", *arguments: object) -> "Callable[[object], object]":
    """Return `function` with all arguments but the last bound, for a weak reference to call."""
    return partial(function, *arguments)


def usable_processors() -> int:
    """Return how many processors this process may run on; all where it may not ask."""
    try:
        return len(os.sched_getaffinity(0))
    except (OSError, OverflowError):  # the second: no size of mask is right
        return os.cpu_count() or 1


FREE_MEMORY = "free memory, or lift the limit of this process (ulimit -v, the container's memory)"


def _refused(call: str, what: str) -> ResourceError:
    number = ctypes.get_errno()
    return ResourceError(f"the system refused {call}", what, os.strerror(number), FREE_MEMORY)
