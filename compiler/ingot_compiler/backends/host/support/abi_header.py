"""``abi.h``: the numbers and layouts of ``ingot_runtime.format.abi``, for the support functions in
C.

In: ``abi``, a target. Out: the header's text. Not done here: the structs themselves
(``c/support.h``), whose layouts the header's ``CHECK_LAYOUT`` compares with ``abi`` when they are
compiled.
"""

from collections.abc import Iterator, Mapping

from ingot_compiler.targets.target import Target
from ingot_runtime.format import abi
from ingot_runtime.format.limits import MIB, TREE_ENTRY_SIZE_BYTES

_LANES_MIN = 4  # also where the loops of kernels have no vectors
_LAYOUTS: Mapping[str, Mapping[str, int]] = {
    "guarded": abi.GUARDED.offsets,
    "pool": abi.POOL_OFFSETS,
    "python_poll": abi.PYTHON_POLL.offsets,
    "sigbus_page": abi.SIGBUS_OFFSETS,
    "verified": abi.VERIFIED.offsets,
    "watch": abi.WATCH.offsets,
}


def abi_header(target: Target) -> str:
    """Write the header: a number for each name, then one check for each field."""
    numbers = {
        "HAS_FMA": int(target.has_fma),
        "LANES": max(target.f32_lanes, _LANES_MIN),
        "MIB": MIB,
        "POOL_MAGIC": abi.POOL_MAGIC,
        "POOL_QUIT_BIT": abi.POOL_QUIT_BIT,
        "RC_CANCELLED": abi.RC_CANCELLED,
        "RC_DAMAGED": abi.RC_DAMAGED,
        "RC_THREADS_LOST": abi.RC_THREADS_LOST,
        "TREE_ENTRY_SIZE_BYTES": TREE_ENTRY_SIZE_BYTES,
        "VERIFY_SCRATCH_BYTES": abi.VERIFY_SCRATCH_BYTES,
    }
    lines = [f"#define {name} {value}" for name, value in numbers.items()]
    return "\n".join([*lines, f"#define CHECK_LAYOUT {' '.join(_checks())}", ""])


def _checks() -> Iterator[str]:
    for struct, offsets in _LAYOUTS.items():
        for field, offset in offsets.items():
            place = f"__builtin_offsetof(struct {struct}, {field})"
            yield f'_Static_assert({place} == {offset}, "abi: {struct}.{field}");'
