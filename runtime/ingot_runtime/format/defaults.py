"""Values of inputs that a call need not give: FORMAT.md, "Default".

In: the section of one input, its plan. Out: shape and bytes, checked. Not done here: arrays
(``executor.arrays``).
"""

import struct

from .checks import require
from .dtypes import DTYPE_SIZES_BYTES
from .limits import ALIGNMENT_SMALL_BYTES, ELEMENT_COUNT_MAX
from .plan import TensorPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .plan import Default


def decode_default(data: bytes, tensor: TensorPlan, where: str) -> "Default":
    """Decode the section that holds the default of an input: its shape, and its elements in
    row-major order.

    Raises:
        FormatError: any rule of FORMAT.md, "Default", broken.
    """
    rank = len(tensor.dims)
    start = head_size_bytes(rank)
    require(len(data) >= start, "the section ends inside its head", where, f"{len(data)} bytes")
    got, *shape = struct.unpack_from(f"<{1 + rank}q", data)
    require(got == rank, "a default of another rank", where, f"expected {rank}, got {got}")
    count = 1
    for size, dim in zip(shape, tensor.dims, strict=True):
        good = 0 <= size <= ELEMENT_COUNT_MAX and (dim < 0 or size == dim)
        require(good, "a default of another shape", where, f"{shape} for {tensor.dims}")
        count *= size
    size_bytes = count * DTYPE_SIZES_BYTES[tensor.dtype]
    why = f"{len(data)} bytes for {size_bytes} of elements"
    require(len(data) == start + size_bytes, "a default of another size", where, why)
    zero = not data[8 * (1 + rank) : start].strip(b"\0")
    require(zero, "bytes before the elements are not zero", where)
    return tuple(shape), data[start:]


def head_size_bytes(rank: int) -> int:
    """Return where the elements begin."""
    words_bytes = 8 * (1 + rank)
    return words_bytes + -words_bytes % ALIGNMENT_SMALL_BYTES
