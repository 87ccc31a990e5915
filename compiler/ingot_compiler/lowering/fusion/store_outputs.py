"""The outputs of the graph: each in a dense buffer of its own.

In: the fuser behind all nodes. Out: output buffers, and the copies into them. Not done here: what
an output is computed from (``fuse``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.storage import Storage, Stored
from ingot_compiler.lowering.groups.fused import BufferSpec
from ingot_compiler.lowering.groups.views import dense_view, is_dense


def store_outputs(fuser: Fuser, outputs: Sequence[int]) -> None:
    """The workspace buffer that an output fills becomes its buffer, or the output is copied."""
    taken: set[int] = set()
    for position, value in enumerate(outputs):
        stored, tensor_type = fuser.where(value), fuser.values.type_of(value)
        held = fuser.held(value)
        if held is not None and held.output == position:
            pass  # it was written into its place
        elif stored.buffer not in taken and _may_become_output(fuser.storage, stored, tensor_type):
            fuser.storage.become_output(stored.buffer, position)
        else:
            spec = BufferSpec("output", tensor_type.dtype, tensor_type.element_count, position)
            stored = Stored(fuser.storage.add(spec), dense_view(tensor_type.shape))
            fuser.copy(value, stored)
        taken.add(stored.buffer)


def _may_become_output(storage: Storage, stored: Stored, tensor_type: TensorType) -> bool:
    """Whether a value fills a workspace buffer of its own."""
    spec = storage.spec(stored.buffer)
    whole = (
        is_dense(stored.view, tensor_type.shape) and spec.element_count == tensor_type.element_count
    )
    return (
        whole
        and spec.kind == "workspace"
        and spec.dtype == tensor_type.dtype
        and not storage.grows(stored.buffer)
    )
