"""How much memory a buffer is given before its size is known.

In: a fused graph. Out: bytes of buffers. Not done here: places (``plan_memory``).

A small buffer whose size has a bound is planned as if it were as large: a block of its own, while
``main`` runs, costs more time than memory is saved. Of an output, pages that are not written take
no memory, so its bound may be higher.
"""

from __future__ import annotations

from math import prod

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import dtype_size_bytes
from ingot_compiler.lowering.groups.fused import FusedGraph
from ingot_compiler.lowering.groups.size_bounds import Bounds, most_of, size_bounds
from ingot_compiler.memory.memory_plan import buffer_bytes

BOUNDED_BYTES_MAX = 1 << 16
OUTPUT_BYTES_MAX = 1 << 20


class PlannedSizes:
    """The sizes of a graph, ``fused``, by which memory is planned."""

    def __init__(self, fused: FusedGraph) -> None:
        self.fused = fused
        self._bounds: Bounds = size_bounds(fused.steps)

    def buffer_bytes(self, buffer: int) -> Dim:
        """Bytes of a buffer, or what they are never above where that is small."""
        size_bytes = buffer_bytes(self.fused, buffer)
        if isinstance(size_bytes, int):
            return size_bytes
        most = most_of(size_bytes, self._bounds)
        return size_bytes if most is None or most > BOUNDED_BYTES_MAX else most

    def output_shape(self, output: int) -> tuple[int, ...] | None:
        """What the sizes of an output are never above, where only the data decide them and it is
        small then; else None."""
        tensor_type = self.fused.outputs[output]
        if all(isinstance(dim, int) for dim in tensor_type.shape):
            return None
        sizes = [most_of(dim, self._bounds) for dim in tensor_type.shape]
        most = tuple(size for size in sizes if size is not None)
        if len(most) < len(sizes):
            return None
        size_bytes = prod(most) * dtype_size_bytes(tensor_type.dtype)
        return most if size_bytes <= OUTPUT_BYTES_MAX else None
