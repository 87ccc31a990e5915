"""How one element of an op's result is computed: the ops that fuse into any kernel.

In: a node and a point of its result. Out: a value. Not done here: ops that need loops of their own
(``kinds``).

An elementwise op is the function of its name, and needs nothing here, unless its attributes choose
among functions; that and any other op here is one function and one line.
"""

from __future__ import annotations

from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.lowering.ops import elementwise, indexing, pad, quantization
from ingot_compiler.lowering.ops.element import ElementRule, StridesRule, apply_rule

ELEMENTS: dict[str, ElementRule] = {
    "batch_norm": elementwise.batch_norm,
    "cast": quantization.cast,
    "dim_values": elementwise.dim_values,
    "gather": indexing.gather,
    "gather_elements": indexing.gather_elements,
    "gather_nd": indexing.gather_nd,
    "gelu": elementwise.gelu,
    "iota": elementwise.iota,
    "isinf": elementwise.isinf,
    "literal": elementwise.literal,
    "pad": pad.element,
    "require": elementwise.require,
}
"""Ops of a rule of their own."""


def has_element_rule(op: OpName) -> bool:
    """Whether an op fuses into any kernel."""
    return op in ELEMENTS or Trait.ELEMENTWISE in OPS_BY_NAME[op].traits


def element_rule(op: OpName) -> ElementRule:
    """The rule of an op that fuses into any kernel."""
    return ELEMENTS.get(op) or apply_rule(op)


INDEXED_OPERANDS: dict[str, tuple[int, ...]] = {
    "batch_norm": (1, 2, 3, 4),
    "gather": (0,),
    "gather_elements": (0,),
    "gather_nd": (0,),
    "pad": (0,),
}
"""Ops that read operands at computed positions: those operands must be stored, not fused."""
STRIDES: dict[str, StridesRule] = {
    "gather": indexing.gather_strides,
    "gather_elements": indexing.gather_elements_strides,
    "gather_nd": indexing.gather_nd_strides,
    "pad": pad.strides_along,
}
"""How the first of these operands lies along the axes of the result."""
