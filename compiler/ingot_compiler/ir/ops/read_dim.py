"""``read_dim(x){index, symbol}``: bind a fresh symbol to element ``index`` (row-major) of an
integer tensor at run time.

In: an integer tensor. Out: no value; later types and attributes may use the symbol. Not done here:
the binding itself (``interpret``, host code in ``main``), which asserts that the element is >= 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_int,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.typing_rules import INTEGERS, require_dtype, require_operands
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "index", "symbol")
    require_operands(types, 1)
    require_dtype(types[0], INTEGERS)
    index, count = attribute_int(attributes, "index"), types[0].element_count
    require(
        index >= 0 and (not isinstance(count, int) or index < count),
        message("index in [0, ", count, ")"),
        index,
    )
    name = attribute_str(attributes, "symbol")
    require(name.isidentifier() and name.isascii(), "symbol to be an identifier", repr(name))
    return Inferred(())


def _reference(_operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    return ()


OP = CoreOp("read_dim", _infer, _reference)
