"""Core ops that compare, choose, or work on truth values and bits, elementwise.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_bool, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.philox import philox
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import (
    ANY,
    BOOLS,
    INTEGERS,
    binary,
    broadcast_result,
    require_dtype,
    require_operands,
    require_same_dtype,
    unary,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType

BITWISE_NOT = CoreOp(
    "bitwise_not", unary(INTEGERS), directly(np.invert), traits=Trait.ELEMENTWISE | Trait.EXACT
)
"""``bitwise_not``: every bit flipped (ONNX BitwiseNot-18).

In: an integer tensor. Out: same type.
"""


_UNARY = unary(FLOATS, "bool", ("negative", "positive"))


def _infer_isinf(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    results = _UNARY(types, attributes)
    attribute_bool(attributes, "positive")
    attribute_bool(attributes, "negative")
    return results


def _reference_isinf(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x = operands[0]
    wanted = (attribute_bool(attributes, "positive") & (x > 0)) | (
        attribute_bool(attributes, "negative") & (x < 0)
    )
    return (np.asarray(np.isinf(x) & wanted),)


ISINF = CoreOp("isinf", _infer_isinf, _reference_isinf, traits=Trait.ELEMENTWISE | Trait.EXACT)
"""``isinf{positive, negative}``: whether x is an infinity of a wanted sign (ONNX IsInf-20).

In: a float tensor. Out: bool, same shape.
"""


def _infer_select(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 3)
    require_dtype(types[0], BOOLS)
    require_same_dtype(types[1:])
    return broadcast_result(types[1].dtype, types)


SELECT = CoreOp(
    "select",
    _infer_select,
    directly(np.where),
    traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.DENSE_OF_BRANCHES | Trait.EXACT | Trait.CODES,
)
"""``select(condition, a, b)``: a where the condition holds, else b (ONNX Where-16).

In: a bool tensor and two tensors of one element type. Out: that type, the broadcast shape.
"""


def _bits(counter: Array, key: Array) -> Array:
    return np.asarray(philox(counter, key, lambda x, count: x >> np.uint64(count)))


PHILOX = CoreOp(
    "philox", binary(frozenset(("u64",))), directly(_bits), traits=Trait.ELEMENTWISE | Trait.EXACT
)
"""``philox``: 64 random bits for each counter and key (what ONNX's random ops are made of).

In: two u64 tensors. Out: u64, the broadcast shape.
"""


OPS = (
    # a and b on every bit (ONNX BitwiseAnd-18).
    CoreOp(
        "bitwise_and",
        binary(INTEGERS),
        directly(np.bitwise_and),
        traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    BITWISE_NOT,
    # a or b on every bit (ONNX BitwiseOr-18).
    CoreOp(
        "bitwise_or",
        binary(INTEGERS),
        directly(np.bitwise_or),
        traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    # a xor b on every bit (ONNX BitwiseXor-18).
    CoreOp(
        "bitwise_xor",
        binary(INTEGERS),
        directly(np.bitwise_xor),
        traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    # a == b; NaN differs from everything (ONNX Equal-19).
    CoreOp(
        "equal",
        binary(ANY, "bool"),
        directly(np.equal),
        traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT | Trait.STEP,
    ),
    ISINF,
    # Whether x is NaN (ONNX IsNaN-20).
    CoreOp(
        "isnan", unary(FLOATS, "bool"), directly(np.isnan), traits=Trait.ELEMENTWISE | Trait.EXACT
    ),
    # a < b; false for NaN (ONNX Less-13).
    CoreOp(
        "less",
        binary(ANY, "bool"),
        directly(np.less),
        traits=Trait.ELEMENTWISE | Trait.EXACT | Trait.STEP,
    ),
    # a <= b; false for NaN (ONNX LessOrEqual-16).
    CoreOp(
        "less_equal",
        binary(ANY, "bool"),
        directly(np.less_equal),
        traits=Trait.ELEMENTWISE | Trait.EXACT | Trait.STEP,
    ),
    # a and b (ONNX And-7).
    CoreOp(
        "logical_and",
        binary(BOOLS),
        directly(np.logical_and),
        traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    # Not x (ONNX Not-1).
    CoreOp(
        "logical_not",
        unary(BOOLS),
        directly(np.logical_not),
        traits=Trait.ELEMENTWISE | Trait.EXACT,
    ),
    # a or b (ONNX Or-7).
    CoreOp(
        "logical_or",
        binary(BOOLS),
        directly(np.logical_or),
        traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    # a xor b (ONNX Xor-7).
    CoreOp(
        "logical_xor",
        binary(BOOLS),
        directly(np.logical_xor),
        traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    SELECT,
    # a * 2^b, wrapping; 0 for b >= the width (ONNX BitShift-11).
    CoreOp(
        "shift_left",
        binary(INTEGERS),
        directly(np.left_shift),
        traits=Trait.ELEMENTWISE | Trait.EXACT,
    ),
    # a / 2^b rounded to -infinity; 0 or -1 for b >= the width (ONNX BitShift-11).
    CoreOp(
        "shift_right",
        binary(INTEGERS),
        directly(np.right_shift),
        traits=Trait.ELEMENTWISE | Trait.EXACT,
    ),
    PHILOX,
)
