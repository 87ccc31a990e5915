"""What this machine's processor can run, by the names of ``format.features``.

In: nothing. Out: a set of feature names, for which the operating system saves the registers too;
the model. Not done here: choosing a variant; which features code takes (``choose``).
"""

import ctypes
import os

from . import system
from .image import map_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# void cpuid(u32 leaf, u32 subleaf, u32 out[4]); at 32: void xgetbv(u32 out[2]). Baseline x86-64,
# System V.
_PROBE = bytes.fromhex(
    "53 4989d0 89f8 89f1 0fa2 418900 41895804 41894808 4189500c 5b c3".replace(" ", "")
).ljust(32, b"\xcc") + bytes.fromhex("31c9 0f01d0 8907 895704 c3".replace(" ", ""))
_XGETBV_AT = 32

# (leaf, subleaf, register, bit) by name; registers 0-3 are eax, ebx, ecx, edx.
X86_BITS = {
    "sse3": (1, 0, 2, 0), "ssse3": (1, 0, 2, 9), "fma": (1, 0, 2, 12), "cx16": (1, 0, 2, 13),
    "sse4.1": (1, 0, 2, 19), "sse4.2": (1, 0, 2, 20), "movbe": (1, 0, 2, 22),
    "popcnt": (1, 0, 2, 23), "avx": (1, 0, 2, 28), "f16c": (1, 0, 2, 29),
    "bmi1": (7, 0, 1, 3), "avx2": (7, 0, 1, 5), "bmi2": (7, 0, 1, 8),
    "avx512f": (7, 0, 1, 16), "avx512dq": (7, 0, 1, 17), "avx512cd": (7, 0, 1, 28),
    "avx512bw": (7, 0, 1, 30), "avx512vl": (7, 0, 1, 31), "avx512vbmi": (7, 0, 2, 1),
    "avx512vnni": (7, 0, 2, 11), "avx512fp16": (7, 0, 3, 23),
    "amx-bf16": (7, 0, 3, 22), "amx-tile": (7, 0, 3, 24), "amx-int8": (7, 0, 3, 25),
    "avxvnni": (7, 1, 0, 4), "avx512bf16": (7, 1, 0, 5),
    "lahf": (0x80000001, 0, 2, 0), "lzcnt": (0x80000001, 0, 2, 5),
}  # fmt: skip
_OSXSAVE = (1, 0, 2, 27)
# Register state that the operating system must save (XCR0), by prefix of the name; later ones win.
_XCR0_BITS = (("avx", 0x6), ("fma", 0x6), ("f16c", 0x6), ("avx512", 0xE6), ("amx", 0x60000))

# Bits of AT_HWCAP (16) and AT_HWCAP2 (26).
HWCAPS = {
    "aarch64": {
        "fp": (16, 0), "asimd": (16, 1), "asimdhp": (16, 10), "asimddp": (16, 20), "i8mm": (26, 13),
        "bf16": (26, 14),
    },
    "riscv64": {
        "a": (16, 0), "c": (16, 2), "d": (16, 3), "f": (16, 5), "m": (16, 12), "v": (16, 21),
    },
}  # fmt: skip

_MIDR = "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1"
ARCHITECTURES = {"x86_64": "x86-64", "aarch64": "aarch64", "riscv64": "riscv64"}


def machine_architecture() -> str:
    """Return the architecture's name as targets spell it, e.g. ``x86-64``."""
    machine = os.uname().machine
    return ARCHITECTURES.get(machine, machine)


def machine_features() -> frozenset[str]:
    """Return the names of the features that code may use here (AMX: if permission is given)."""
    machine = os.uname().machine
    if machine == "x86_64":
        return _x86_features()
    table = HWCAPS.get(machine, {})
    return frozenset(
        name for name, (kind, bit) in table.items() if system.auxiliary_value(kind) >> bit & 1
    )


def permitted_features() -> frozenset[str]:
    """Return ``machine_features`` without AMX where the system refuses it to this process."""
    features = machine_features()
    others = without_amx(features)
    return features if features == others or system.request_amx() else others


def without_amx(features: "Iterable[str]") -> frozenset[str]:
    """Return the features that need no permission."""
    return frozenset(name for name in features if not name.startswith("amx-"))


def processor_model() -> str:
    """Return the maker, family and model of the processor in hexadecimal, ``GenuineIntel 6 8f``,
    or maker and part, ``0x41 0xd0c``, as it says them; "" where it says nothing."""
    if os.uname().machine == "x86_64":
        area = map_code(_PROBE)
        leaves = _read_leaves(area.address, (ctypes.c_uint32 * 4)())
        word, (_, b, c, d) = leaves[1, 0][0], leaves[0, 0]
        maker = b"".join(part.to_bytes(4, "little") for part in (b, d, c)).decode("latin-1")
        family, model = word >> 8 & 15, word >> 4 & 15 | word >> 12 & 240
        return f"{maker} {family + (word >> 20 & 255 if family == 15 else 0):x} {model:02x}"
    try:
        with open(_MIDR) as file:
            word = int(file.read(), 16)
    except (OSError, ValueError):
        return ""
    return f"{word >> 24 & 255:#x} {word >> 4 & 4095:#x}"


def _x86_features() -> frozenset[str]:
    area = map_code(_PROBE)
    out = (ctypes.c_uint32 * 4)()
    leaves = _read_leaves(area.address, out)

    def bit(place: tuple[int, int, int, int]) -> bool:
        return bool(leaves[place[:2]][place[2]] >> place[3] & 1)

    xcr0 = 0
    if bit(_OSXSAVE):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(area.address + _XGETBV_AT)(ctypes.addressof(out))
        xcr0 = out[0] | out[1] << 32
    return frozenset(
        name for name, place in X86_BITS.items() if bit(place) and not _state_of(name) & ~xcr0
    )


def _read_leaves(
    cpuid_at: int, out: "ctypes.Array[ctypes.c_uint32]"
) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return the registers of each leaf in ``X86_BITS``, zeros where the processor has no such."""
    cpuid = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(cpuid_at)

    def leaf(number: int, subleaf: int = 0, known: bool = True) -> tuple[int, ...]:
        cpuid(number, subleaf, ctypes.addressof(out))
        return tuple(out) if known else (0, 0, 0, 0)

    base = leaf(0)
    has_7, has_extended = base[0] >= 7, leaf(0x80000000)[0] >= 0x80000001
    return {
        (0, 0): base,
        (1, 0): leaf(1),
        (7, 0): leaf(7, 0, has_7),
        (7, 1): leaf(7, 1, has_7 and leaf(7)[0] >= 1),
        (0x80000001, 0): leaf(0x80000001, 0, has_extended),
    }


def _state_of(name: str) -> int:
    """Return the bits of XCR0 for the registers that a feature uses."""
    needed = 0
    for prefix, bits in _XCR0_BITS:
        if name.startswith(prefix):
            needed = bits
    return needed
