"""The collected outputs of a loop: one row for each iteration.

In: the type of an output; the row that an iteration makes. Out: its buffer, and the steps that fill
it. Not done here: the loop (``control``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_min, dim_mul
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fusion.control_symbols import (
    grow_block,
    is_name,
    named_sizes,
    new_buffer,
    set_symbols,
)
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.groups.fused import Grow, Requirement, View
from ingot_compiler.lowering.groups.views import dense_view
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Scan:
    """A collected output: its type and buffer, whether rows are added to a block that grows, the
    block to move it by."""

    kind: TensorType
    buffer: int
    grows: bool
    spare: int


def new_scan(fuser: Fuser, tensor_type: TensorType, names: frozenset[str], *, known: bool) -> Scan:
    """The buffer of a collected output; ``known``: whether the number of iterations is."""
    unknown = [dim for dim in tensor_type.shape if is_name(dim, names)]
    set_symbols(fuser, [(dim, 0) for dim in unknown])
    grows = bool(unknown) or not known
    buffer = new_buffer(fuser, tensor_type, names, grows=grows)
    if not grows:
        grow_block(fuser, buffer, tensor_type.element_count)
        return Scan(tensor_type, buffer, False, -1)
    spare = fuser.storage.add(fuser.storage.spec(buffer), grows=True)
    fuser.append(Grow(buffer, 0))
    return Scan(tensor_type, buffer, True, spare)


def store_row(fuser: Fuser, value: int, scan: Scan, counter: Dim, names: frozenset[str]) -> None:
    """One element of a collected output, at its row."""
    own = fuser.values.type_of(value)
    sizes = named_sizes(scan.kind.shape[1:], own.shape, names)
    for dim, size in sizes:
        difference = dim_mul(dim - size, dim_min(counter, 1))
        what = "the iterations of a loop give results of different sizes"
        fuser.append(Requirement(difference, what))
    set_symbols(fuser, sizes)
    start = dim_mul(counter, own.element_count)
    if scan.grows:
        fuser.append(Grow(scan.buffer, start + own.element_count, start, scan.spare))
    view = dense_view(own.shape)
    fuser.store(value, Stored(scan.buffer, View(view.strides, start)))
