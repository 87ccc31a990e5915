"""The axis along which a kernel's rows are cut where they enter and leave a tensor that is padded.

In: a group. Out: ``PaddedAxis``. Not done here: loops (``pointwise``), what lies outside of the
tensor (``ops.pad``).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.sizes.ranges import minimum
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.views import Shape, storage_order
from ingot_compiler.lowering.kinds.touched_views import are_one_run
from ingot_runtime.lazy_dataclass import dataclass

_SHORT_ROW = 64  # elements
_LONGEST_SINGLE = 65536  # elements of a tensor of one row that one thread copies


@dataclass(frozen=True, slots=True)
class PaddedAxis:
    """``before`` elements, ``extent`` of the tensor, ``after`` elements; ``folded``: these are
    elements of the tensor, so that where they come from must be divided out where they are further
    from it than it is long."""

    axis: int
    before: Dim
    extent: Dim
    after: Dim
    folded: bool = False

    def spans(self) -> list[tuple[Dim, Dim]]:
        """(first, how many) of what is not empty; what needs no division is a span of its own."""
        before, after = self._near(self.before), self._near(self.after)
        end = self.before + self.extent
        ends = [
            (0, self.before - before),
            (self.before - before, before),
            (self.before, self.extent),
            (end, after),
            (end + after, self.after - after),
        ]
        return [span for span in ends if span[1] != 0]

    def run_of_short_rows(self, group: Group) -> tuple[int, ...] | None:
        """The axis and those inside of it, where these are rows of few elements that lie one behind
        the other in a tensor which is only padded: of an axis inside of another one nothing is
        left out."""
        result, x = group.results[0], group.operands[0]
        order = storage_order(result.view, result.type.shape)
        run = tuple(a for a in order[order.index(self.axis) :] if result.type.shape[a] != 1)
        row = dim_product(tuple(result.type.shape[axis] for axis in run[1:]))
        others = [node for node in group.nodes if node.op not in ("pad", "literal")]
        if others or not isinstance(row, int) or not 1 < row < _SHORT_ROW:
            return None
        pairs = list(pairwise(run))
        lies = all(
            are_one_run((each.view,), each.type.shape, *pair)
            for each in (x, result)
            for pair in pairs
        )
        return run if lies else None

    def _near(self, pad: Dim) -> Dim:
        return minimum(pad, self.extent - 1) if self.folded and pad != 0 else pad


def padded_axis(group: Group) -> PaddedAxis | None:
    """The innermost axis that the group's pads enlarge, where they agree and give the result's
    shape."""
    types, result = dict(group.types), group.results[0].type
    pads = [node for node in group.nodes if node.op == "pad"]
    found = {_innermost(node, types[node.operands[0]].shape) for node in pads}
    if len(found) != 1 or any(types[node.results[0]].shape != result.shape for node in pads):
        return None
    (axis,) = found
    if axis is not None and any(node.text("mode") in ("reflect", "wrap") for node in pads):
        axis = replace(axis, folded=True)
    if axis is not None and result.shape[axis.axis] == result.element_count:
        return axis if typical(result.element_count) <= _LONGEST_SINGLE else None
    return axis


def _innermost(pad: Node, shape: Shape) -> PaddedAxis | None:
    pads = list(zip(pad.dims("before"), shape, pad.dims("after"), strict=True))
    padded = [axis for axis, (before, _, after) in enumerate(pads) if before != 0 or after != 0]
    return PaddedAxis(padded[-1], *pads[padded[-1]]) if padded else None
