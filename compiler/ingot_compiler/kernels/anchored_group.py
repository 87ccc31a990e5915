"""A group described by its anchor, as the kernels with register tiles need it.

In: a group. Out: ``AnchoredGroup``: operands by position, what follows a kernel's sums. Not done
here: the sums (``kinds``).
"""

from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.ir.types import FLOATS, DType
from ingot_compiler.kernels.tiles import sum_dtype
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Local, Value
from ingot_compiler.lowering.loops.program import Statement, Store

ACCUMULATOR = "acc"
"""The name of a kernel's sum."""
_BIAS = 2  # operand of conv


class AnchoredGroup:
    """``node`` is the anchor of ``group``, ``method`` how it is computed, ``result`` the type of its result, ``buffers`` are the
    arguments of the kernel."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.node = group.nodes[group.anchor]
        self.method = group.method
        self.result = dict(group.types)[self.node.results[0]]
        self.buffers = GroupBuffers(group)

    def operand(self, position: int) -> Operand:
        """Return an operand of the anchor."""
        value = self.node.operands[position]
        return next(operand for operand in self.group.operands if operand.value == value)

    def number(self, position: int) -> int:
        """Return the argument of the kernel that holds an operand of the anchor."""
        return self.buffers.number(self.operand(position))

    def elements(self) -> Elements:
        """Begin to compute elements of values of the group."""
        return Elements(self.group, self.buffers)

    def epilogue(self, space: Space) -> tuple[Statement, ...]:
        """Bias, then the fused nodes, then the store, for the sum at a point of the result."""
        dtype = self.result.dtype
        wide = dtype if dtype in FLOATS else sum_dtype(dtype)  # registers hold halves as f32
        elements = self.elements()
        value: Value = Local(ACCUMULATOR, wide)
        if len(self.node.operands) > _BIAS + self._more_weights:
            value = elements.let(self._with_bias(wide, space), wide)
        if wide != dtype:
            value = elements.let(Apply("cast", (value,), dtype), dtype)
        return self.store(value, elements, space)

    def store(self, value: Value, elements: Elements, space: Space) -> tuple[Statement, ...]:
        """The fused nodes and the store, for the anchor's ``value`` at a point of the result, whose
        channels may be split."""
        elements.given[self.node.results[0]] = value
        result = self.group.results[0]
        maker = elements.nodes[result.value]
        if maker.op == "reshape":
            stored = elements.held(maker.operands[0], space)
            place = space.split(1, result.type.shape).offset(result.view)
        else:
            stored = elements.held(result.value, space)
            place = space.offset_of(result.view, result.type.shape)
        return (*elements.take(), Store(self.buffers.number(result), place, stored))

    @property
    def _more_weights(self) -> int:
        """How many of the last operands are no bias, but the weights once more: transformed, what
        is added to their columns, or their lower parts and their greatest magnitude."""
        method = self.method
        return method.parts if method.parts > 1 else bool(method.tile) + method.has_addends

    @property
    def factors(self) -> tuple[DType, DType]:
        """The element types that the anchor multiplies."""
        a, b = self.operand(0).type.dtype, self.operand(1).type.dtype
        return ("bf16" if self.method.parts > 1 else a), b

    def _with_bias(self, wide: DType, space: Space) -> Value:
        """The sum and the bias, which is held in f32 where it is of f16 or bf16: one addition in
        f32, which nothing rounds."""
        bias = self.operand(_BIAS)
        held = bias.type.dtype if wide in FLOATS else wide
        at = bias.view.offset + dim_mul(space.index(1), bias.view.strides[0])
        load = Load(self.buffers.number(bias), at)
        return Apply("add", (Local(ACCUMULATOR, held), load), held)
