"""A call and what it must give: FORMAT.md, "Selftest".

In: a section, the plan. Out: ``Case``. Not done here: calling, comparing (``selftest``).
"""

import struct

from .checks import require
from .defaults import decode_default, head_size_bytes
from .dtypes import DTYPE_SIZES_BYTES
from .limits import ALIGNMENT_SMALL_BYTES, RANK_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .plan import BundlePlan, Default, TensorPlan

LIMITS = struct.Struct("<dd48x")


class Case:
    """``inputs`` and ``outputs``: shape and bytes of each; ``limits``: tolerance and share of each
    output."""

    __slots__ = ("inputs", "limits", "outputs")

    def __init__(self) -> None:
        self.inputs: list[Default] = []
        self.outputs: list[Default] = []
        self.limits: list[tuple[float, float]] = []


def decode_case(data: bytes, plan: "BundlePlan", where: str) -> Case:
    """Decode a section.

    Raises:
        FormatError: any rule of FORMAT.md, "Selftest", broken.
    """
    case, at = Case(), 0
    for tensor in plan.inputs:
        found, at = _tensor(data, at, tensor, where)
        case.inputs.append(found)
    for tensor in plan.outputs:
        require(len(data) - at >= LIMITS.size, "the section ends too early", where)
        tolerance, share = LIMITS.unpack_from(data, at)
        good = 0 <= tolerance < 1e300 and 0 <= share <= 1
        require(good, "bad limits of an output", where, f"{tolerance}, {share}")
        case.limits.append((tolerance, share))
        found, at = _tensor(data, at + LIMITS.size, tensor, where)
        case.outputs.append(found)
    require(at == len(data), "bytes after the last output", where, f"{len(data) - at} bytes")
    return case


def _tensor(data: bytes, at: int, tensor: "TensorPlan", where: str) -> "tuple[Default, int]":
    """Return a tensor that begins at `at`, and where the next thing does."""
    rank, size_bytes = len(tensor.dims), DTYPE_SIZES_BYTES[tensor.dtype]
    head = data[at : at + 8 * (1 + min(rank, RANK_MAX))]
    require(len(head) == 8 * (1 + rank), "the section ends too early", where)
    for dim in struct.unpack_from(f"<{rank}q", head, 8):
        require(0 <= dim <= len(data), "a tensor larger than the section", where, f"{dim}")
        size_bytes *= dim
    end = at + head_size_bytes(rank) + size_bytes
    after = end + -end % ALIGNMENT_SMALL_BYTES
    require(after <= len(data), "the section ends too early", where, f"{len(data)} bytes")
    require(not data[end:after].strip(b"\0"), "bytes after a tensor are not zero", where)
    return decode_default(data[at:end], tensor, where), after
