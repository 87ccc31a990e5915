"""Turns the nodes of a group into the value of one element, as loop-program statements.

In: a group, an iteration space. Out: ``Let``/``LetIndex`` statements and the value that names the
element. Not done here: loops (``kinds``), which nodes form a group (``fuse``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.groups.fused import Group, Operand, requirements_of
from ingot_compiler.lowering.groups.narrow_values import rounded_values
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.index_range import Extents
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Local, Value
from ingot_compiler.lowering.loops.program import Buffer, Let, LetIndex, Require, Statement, Store
from ingot_compiler.lowering.ops import element_rule


class GroupBuffers:
    """The kernel's buffer arguments: operands first, then results; one argument per distinct
    buffer."""

    def __init__(self, group: Group) -> None:
        self.numbers: dict[int, int] = {}
        self.buffers: list[Buffer] = []
        for operand in group.operands:
            self._add(operand, written=False)
        for operand in group.results:
            self._add(operand, written=True)
        self.by_value = {operand.value: operand for operand in (*group.results, *group.operands)}

    def _add(self, operand: Operand, *, written: bool) -> None:
        if operand.buffer in self.numbers:
            number = self.numbers[operand.buffer]
            self.buffers[number] = Buffer(
                operand.type.dtype, self.buffers[number].written or written
            )
            return
        self.numbers[operand.buffer] = len(self.buffers)
        self.buffers.append(Buffer(operand.type.dtype, written))

    def number(self, operand: Operand) -> int:
        """The kernel argument that holds an operand."""
        return self.numbers[operand.buffer]


class Elements:
    """Builds element values; ``given`` are values that are already computed (an anchor's
    accumulator). ``extents``: loop variables of which it is known how far they count."""

    def __init__(
        self, group: Group, buffers: GroupBuffers, given: Mapping[int, Value] | None = None
    ) -> None:
        self.types: dict[int, TensorType] = dict(group.types)
        self.nodes = {result: node for node in group.nodes for result in node.results}
        self.requirements = requirements_of(group)
        self.buffers = buffers
        self.given = dict(given or {})
        self.operands = {operand.value: operand for operand in group.operands}
        self.statements: list[Statement] = []
        self.known: dict[tuple[int, Space], Value] = {}
        self.narrow = rounded_values(group)
        self.rounded: dict[Value, Value] = {}
        self.counter = 0
        self.extents: Extents = {}

    def dtype(self, value: int) -> DType:
        """Element type of a value."""
        return self.types[value].dtype

    def maker(self, value: int) -> Node | None:
        """The node that computes a value here; None of what is loaded or given."""
        return None if value in self.given or value in self.operands else self.nodes.get(value)

    def fresh(self, prefix: str) -> str:
        """A name that no other statement of this scope has."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def let(self, value: Value, dtype: DType) -> Local:
        """Name a value."""
        name = self.fresh("v")
        self.statements.append(Let(name, value))
        return Local(name, dtype)

    def let_index(self, value: Value, reach: int = 0) -> Dim:
        """Name an integer value as an index symbol; ``reach`` as ``LetIndex`` has it."""
        name = self.fresh("x")
        self.statements.append(LetIndex(name, value, reach))
        return symbol(name)

    def require(self, node: Node, condition: Value) -> None:
        """Let the kernel report the requirement of a node where ``condition`` does not hold."""
        self.statements.append(Require(self.requirements.index(node), condition))

    def value(self, value: int, space: Space) -> Value:
        """The element of ``value`` at a point of ``space`` (whose shape it may broadcast to), as
        others compute with it: a number of its element type."""
        held = self.held(value, space)
        if value not in self.narrow:
            return held
        if held not in self.rounded:
            dtype = self.dtype(value)
            self.rounded[held] = self.let(Apply("cast", (held,), dtype), dtype)
        return self.rounded[held]

    def held(self, value: int, space: Space) -> Value:
        """The element as a register holds it: what a store rounds."""
        if value in self.given:
            return self.given[value]
        shape = self.types[value].shape
        own = space if shape == space.shape else space.narrowed(shape)
        key = value, own
        if key not in self.known:
            self.known[key] = self._compute(value, space, own)
        return self.known[key]

    def _compute(self, value: int, space: Space, own: Space) -> Value:
        if value in self.operands:
            return self.let(self.load(self.operands[value], space), self.dtype(value))
        node = self.nodes[value]
        return self.let(element_rule(node.op)(self, node, own), self.dtype(value))

    def load(self, operand: Operand, space: Space) -> Load:
        """Load an operand's element at a point of a space that its shape broadcasts to."""
        return Load(self.buffers.number(operand), space.offset_of(operand.view, operand.type.shape))

    def operand(self, node: Node, position: int) -> Operand:
        """The stored tensor behind a node's operand (for ops that index it freely)."""
        return self.operands[node.operands[position]]

    def stored(self, result: Operand, space: Space) -> tuple[Statement, ...]:
        """The statements that compute a result of the group at a point and store it; the scope
        starts anew."""
        value = self.held(result.value, space)
        place = space.offset_of(result.view, result.type.shape)
        return (*self.take(), Store(self.buffers.number(result), place, value))

    def take(self) -> tuple[Statement, ...]:
        """The statements so far; the scope starts anew (names stay unique)."""
        statements = tuple(self.statements)
        self.statements = []
        self.known = {}
        self.rounded = {}
        return statements
