"""Code of another kind for devices: FORMAT.md, "Alternative".

In: a section, the plan. Out: ``AlternativePlan``, and where its code begins. Not done here: which
one a device is bound to (``ingot_runtime_devices.bind_device``).
"""

from .checks import require
from .limits import ALIGNMENT_SMALL_BYTES, DEVICE_COUNT_MAX
from .plan import AlternativePlan, BundlePlan, LibraryPlan
from .schema import CODE_MAX, Reader, read_record


def decode_alternative(data: bytes, plan: BundlePlan, where: str) -> "tuple[AlternativePlan, int]":
    """Decode the head of a section; return it and where the code begins, or raise ``FormatError``."""
    end = 8 + int.from_bytes(data[:8], "little", signed=True)
    start = end + -end % ALIGNMENT_SMALL_BYTES
    good = end >= 8 and start <= len(data) and not data[end:start].strip(b"\0")
    require(good, "the section ends inside its head", where, f"{end} of {len(data)} bytes")
    words = Reader(data[8:end], where, plan.minor)
    library = words.word("library", 0, len(plan.libraries) - 1)
    code = read_record(words, LibraryPlan, "library")
    count = plan.libraries[library].kernel_count
    same = code.kernel_count == count
    require(same, "an alternative with other kernels", where, f"{code.kernel_count}, not {count}")
    ids: dict[int, int] = {}
    for _ in range(words.word("device count", 1, DEVICE_COUNT_MAX)):
        device = words.word("device", max(ids, default=0) + 1, len(plan.devices) - 1)
        same = plan.devices[device].library == library
        require(same, "an alternative for a device of another library", where, str(device))
        ids[device] = words.word("device id", 0, CODE_MAX)
    words.finish()
    return AlternativePlan(library, code, ids), start
