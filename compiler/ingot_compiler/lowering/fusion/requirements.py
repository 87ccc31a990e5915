"""The conditions on sizes that the types leave open: ``main`` checks each once.

In: nodes, one by one. Out: ``Requirement`` steps, none where the types show it. Not done here: what
an op takes for granted (the shape constraints of its type rule), values of indices (kernels clamp
them).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, dim_add, dim_max, dim_min
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.shape_constraints import requirements
from ingot_compiler.ir.sizes.ranges import is_nonnegative
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.groups.fused import Requirement
from ingot_runtime.format.limits import ELEMENT_COUNT_MAX
from ingot_runtime.lazy_dataclass import dataclass

_Asked = tuple[OpName, tuple[TensorType, ...], tuple[tuple[str, Attribute], ...]]


@dataclass(frozen=True, slots=True)
class Checked:
    """Sizes that are known to be at least 0 at one moment, and numbers of elements that are known
    to be possible."""

    sizes: set[Dim]
    counts: set[Dim]


class Requirements:
    """The requirements of nodes in the order in which they run; remembers what was asked for."""

    def __init__(self, values: FusionValues, inputs: Iterable[int]) -> None:
        """The loader checks the sizes of ``inputs``."""
        self._values = values
        self._nothing: set[_Asked] = set()
        self._checked = Checked(set(), {values.type_of(value).element_count for value in inputs})

    def checked(self) -> Checked:
        """What is checked now."""
        return Checked(set(self._checked.sizes), set(self._checked.counts))

    def forget_since(self, checked: Checked) -> None:
        """Go back to what was checked at an earlier moment."""
        self._checked = checked

    def of_sizes(self, node: Node) -> list[Requirement]:
        """Every size of the results is at least 0."""
        checked, shapes = self._checked.sizes, self._shapes(node)
        if all(map(checked.issuperset, shapes)):  # of most nodes
            return []
        dims = list(dict.fromkeys(dim for shape in shapes for dim in shape if dim not in checked))
        checked.update(dims)
        return [
            Requirement(dim_min(dim, 0), message("a size is negative: ", dim), node.source)
            for dim in dims
            if not is_nonnegative(dim)
        ]

    def of_counts(self, node: Node) -> list[Requirement]:
        """A value that may never be stored, so that no memory bounds it, has no more elements than
        a tensor may have."""
        found: list[Requirement] = []
        if all(isinstance(dim, int) for shape in self._shapes(node) for dim in shape):
            return found
        counts = [self._values.type_of(operand).element_count for operand in node.operands]
        for result in node.results:
            count = self._values.type_of(result).element_count
            if not isinstance(count, int) and count not in (*counts, *self._checked.counts):
                what = message(f"expected at most {ELEMENT_COUNT_MAX} elements, got ", count)
                found.append(
                    Requirement(dim_max(dim_add(count, -ELEMENT_COUNT_MAX), 0), what, node.source)
                )
                self._checked.counts.add(count)
        return found

    def of_shape_constraints(self, node: Node) -> list[Requirement]:
        """What the op of a node takes for granted, so that its kernel stays inside its buffers."""
        operands = [self._values.type_of(operand) for operand in node.operands]
        # A model has many elementwise ops of few types, and casts.
        key = node.op, tuple(operands), node.attributes
        if key in self._nothing:
            return []
        found = self._of_constraints(node, operands)
        if not found:
            self._nothing.add(key)
        return found

    def _shapes(self, node: Node) -> list[tuple[Dim, ...]]:
        return [self._values.type_of(result).shape for result in node.results]

    @staticmethod
    def _of_constraints(node: Node, operands: Sequence[TensorType]) -> list[Requirement]:
        try:
            constraints = OPS_BY_NAME[node.op].infer(operands, node.table).constraints
        except OpTypeError as error:
            # The sizes that a graph was specialised for contradict its shape constraints: a call
            # with these sizes is refused.
            return [Requirement(1, error.text, node.source)]
        return [
            Requirement(excess, what, node.source)
            for constraint in constraints
            for excess, what in requirements(constraint)
        ]
