"""How one element of an op's result is computed: the ops that fuse into any kernel.

In: a node and a point of its result. Out: a value. Not done here: ops that need loops of their own
(``kinds``).

An elementwise op is the function of its name, and needs nothing here, unless its attributes choose
among functions; that and any other op here is one file and one line.
"""

from __future__ import annotations

from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.lowering.ops import (
    batch_norm,
    dim_values,
    gather,
    gather_elements,
    gather_nd,
    gelu,
    iota,
    isinf,
    literal,
    pad,
    require,
)
from ingot_compiler.lowering.ops.element import ElementRule, StridesRule, apply_rule

ELEMENTS: dict[str, ElementRule] = {
    "batch_norm": batch_norm.element,
    "dim_values": dim_values.element,
    "gather": gather.element,
    "gather_elements": gather_elements.element,
    "gather_nd": gather_nd.element,
    "gelu": gelu.element,
    "iota": iota.element,
    "isinf": isinf.element,
    "literal": literal.element,
    "pad": pad.element,
    "require": require.element,
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
    "gather": gather.strides_along,
    "gather_elements": gather_elements.strides_along,
    "gather_nd": gather_nd.strides_along,
    "pad": pad.strides_along,
}
"""How the first of these operands lies along the axes of the result."""
