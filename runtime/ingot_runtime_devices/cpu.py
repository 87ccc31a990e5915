"""Kind ``cpu``: the host's processor as a device of its own: its memory is apart, its code is the host's.

In: a library section. Out: a device. Not done here: what it does (``host_memory``).
"""

from ingot_runtime.format.plan import LibraryPlan

from .host_memory import HostMemory, open_host_memory


def open_cpu(
    name: str, id: int, library: LibraryPlan, code: bytes, where: str, features: frozenset[str]
) -> HostMemory:
    """Return device `id` of the kind; see ``open_host_memory``."""
    return open_host_memory("cpu", name, id, library, code, where, features)
