"""The shape of an element rule, and the rule of ops that apply one function to their operands'
elements.

In: an op name. Out: an ``ElementRule``. Not done here: the list of ops, what carries out the
statements (``elements``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.groups.fused import Operand, View
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.index_range import Extents
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Local, Value


class BufferNumbers(Protocol):
    """Which argument of the kernel holds an operand."""

    def number(self, operand: Operand) -> int:
        """Return the argument's number."""
        ...


class ElementScope(Protocol):
    """What an element rule may ask for: values of other elements, and statements in front of its
    own."""

    @property
    def types(self) -> Mapping[int, TensorType]:
        """Types of the group's values."""
        ...

    @property
    def buffers(self) -> BufferNumbers:
        """The kernel's arguments."""
        ...

    @property
    def extents(self) -> Extents:
        """Loop variables of which it is known how far they count."""
        ...

    def dtype(self, value: int) -> DType:
        """Return the element type of a value."""
        ...

    def maker(self, value: int) -> Node | None:
        """Return the node that computes a value here; None of what is loaded or given."""
        ...

    def let(self, value: Value, dtype: DType) -> Local:
        """Name a value."""
        ...

    def let_index(self, value: Value) -> Dim:
        """Name an integer value as an index symbol."""
        ...

    def require(self, node: Node, condition: Value) -> None:
        """Let the kernel report the requirement of a node where ``condition`` does not hold."""
        ...

    def value(self, value: int, space: Space) -> Value:
        """Return the element of ``value`` at a point of ``space``, whose shape it may broadcast
        to."""
        ...

    def load(self, operand: Operand, space: Space) -> Load:
        """Load an operand's element at a point of a space that its shape broadcasts to."""
        ...

    def operand(self, node: Node, position: int) -> Operand:
        """Return the stored tensor behind a node's operand, for ops that index it freely."""
        ...


ElementRule = Callable[[ElementScope, Node, Space], Value]
StridesRule = Callable[[Node, View, TensorType], tuple[Dim, ...]]
"""(node, where its first operand lies, the second one) -> strides along the axes of the result."""
PICKED = symbol("picked")
"""A stride where positions are computed: a multiple of no other one."""


def apply_rule(function: str) -> ElementRule:
    """The rule ``function(element of each operand)``."""

    def element(elements: ElementScope, node: Node, space: Space) -> Value:
        arguments = tuple(elements.value(operand, space) for operand in node.operands)
        return Apply(function, arguments, elements.dtype(node.results[0]))

    return element
