"""What a kind of device costs: the numbers that ``--place auto`` decides by.

In: nothing. Out: ``DeviceCosts``. Not done here: the numbers (``Backend.costs``, one row per back
end), how much work an op is (``op_work``), the decision (``choose_devices``).
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DeviceCosts:
    """Rates of one kind of device, with one thread.

    ``contraction_flops_per_second``: of products and convolutions; ``flops_per_second``: of all
    else. ``bytes_per_second``: of values from and to its own memory, or its caches;
    ``constant_bytes_per_second``: of what the weights of one op have beyond ``cache_bytes``, up to
    which the device's cache keeps them while the op reads them, each time that it reads them.
    ``launch_seconds``: of one launch. ``copy_seconds``, ``copy_bytes_per_second``: of one copy
    between it and the host; a copy between two devices takes both. A host has none of these: its
    copies take what the other device says.
    """

    contraction_flops_per_second: float
    flops_per_second: float
    bytes_per_second: float
    constant_bytes_per_second: float
    cache_bytes: int
    launch_seconds: float
    copy_seconds: float = 0.0
    copy_bytes_per_second: float = float("inf")
