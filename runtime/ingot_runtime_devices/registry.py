"""The kinds of devices that this loader can open, one line each.

In: a device as it is bound, its library. Out: an open ``Device``. Not done here: the kinds, one
file each; which are bound (``ingot_runtime.loader.bind_devices``).
"""

from ingot_runtime.format.plan import LibraryPlan

from .cpu import open_cpu
from .cuda import open_cuda
from .device import Device
from .null import open_null
from .opencl import open_opencl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Open = Callable[[str, int, LibraryPlan, bytes, str, frozenset[str]], Device]

OPEN: "dict[str, Open]" = {
    "cpu": open_cpu,
    "cuda": open_cuda,
    "null": open_null,
    "opencl": open_opencl,
}
"""Kind ->
``open(virtual name, id, library, the library's section, its name, features of this machine)``; it
raises ``BundleError``."""

_HOST_CODE = ("cpu", "null")


def code_kinds(kind: str) -> "tuple[str, ...]":
    """Return the kinds of libraries that devices of a kind run: its own, and what is the same."""
    return _HOST_CODE if kind in _HOST_CODE else (kind,)
