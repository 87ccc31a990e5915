"""Core ops of numbers, elementwise: sums, products, rounding.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.rules.reference_rules import directly, in_f64
from ingot_compiler.ir.rules.typing_rules import ANY, NUMBERS, binary, unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    quotient, rest = np.floor_divide(a, b), np.fmod(a, b)
    # floor and truncation differ by one where the division is inexact and the signs differ.
    return np.asarray(quotient + ((rest != 0) & ((a < 0) != (b < 0)))).astype(a.dtype)


DIV = CoreOp(
    "div",
    binary(NUMBERS),
    directly(_divide),
    traits=Trait.ELEMENTWISE | Trait.DENSE_OF_ALL | Trait.EXACT | Trait.DIVIDES,
)
"""``div``: a / b; integers truncate towards 0, a divisor of 0 gives 0, the least integer over
-1 wraps (ONNX Div-14).

In: two tensors of one element type (numbers). Out: that type, the broadcast shape.
"""


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind in "fu":
        return np.power(a, b)
    positive = np.power(a, np.maximum(b, 0))
    reciprocal = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0))
    return np.where(b >= 0, positive, reciprocal.astype(a.dtype))


POW = CoreOp("pow", binary(NUMBERS), in_f64(_power), traits=Trait.ELEMENTWISE)
"""``pow``: a to the power of b; integers wrap, a negative integer exponent gives the truncated
reciprocal, 0 for base 0 (ONNX Pow-15).

In: two tensors of one element type (numbers). Out: that type, the broadcast shape.
"""


def _relu(x: Array) -> Array:
    return np.asarray(np.maximum(x, x.dtype.type(0)))


RELU = CoreOp(
    "relu", unary(NUMBERS), directly(_relu), traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.EXACT
)
"""``relu``: max(x, 0); NaN stays NaN (ONNX Relu-14).

In: a number tensor. Out: same type.
"""


OPS = (
    # Absolute value; the least signed integer stays itself (ONNX Abs-13).
    CoreOp(
        "abs",
        unary(NUMBERS),
        directly(np.absolute),
        traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.EXACT,
    ),
    # a + b; integers wrap (ONNX Add-14).
    CoreOp(
        "add",
        binary(NUMBERS),
        directly(np.add),
        traits=Trait.ELEMENTWISE | Trait.DENSE_OF_ANY | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    # Least integer >= x (ONNX Ceil-13).
    CoreOp(
        "ceil",
        unary(FLOATS),
        directly(np.ceil),
        traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.EXACT | Trait.STEP,
    ),
    DIV,
    # Greatest integer <= x (ONNX Floor-13).
    CoreOp(
        "floor",
        unary(FLOATS),
        directly(np.floor),
        traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.EXACT | Trait.STEP,
    ),
    # C remainder, with the sign of the dividend; an integer divisor of 0 gives 0 (ONNX
    # Mod-13, fmod=1).
    CoreOp(
        "fmod",
        binary(NUMBERS),
        directly(np.fmod),
        traits=Trait.ELEMENTWISE | Trait.EXACT | Trait.DIVIDES | Trait.STEP,
    ),
    # The larger; NaN if either is NaN (ONNX Max-13).
    CoreOp(
        "max",
        binary(ANY),
        directly(np.maximum),
        traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    # The smaller; NaN if either is NaN (ONNX Min-13).
    CoreOp(
        "min",
        binary(ANY),
        directly(np.minimum),
        traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    # Remainder with the sign of the divisor; an integer divisor of 0 gives 0 (ONNX Mod-13,
    # fmod=0).
    CoreOp(
        "mod",
        binary(NUMBERS),
        directly(np.mod),
        traits=Trait.ELEMENTWISE | Trait.EXACT | Trait.DIVIDES | Trait.STEP,
    ),
    # a * b; integers wrap (ONNX Mul-14).
    CoreOp(
        "mul",
        binary(NUMBERS),
        directly(np.multiply),
        traits=Trait.ELEMENTWISE | Trait.DENSE_OF_ALL | Trait.COMMUTATIVE | Trait.EXACT,
    ),
    # -x; integers wrap (ONNX Neg-13).
    CoreOp(
        "neg",
        unary(NUMBERS),
        directly(np.negative),
        traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.DENSE_OF_ALL | Trait.EXACT,
    ),
    POW,
    # 1 / x (ONNX Reciprocal-13).
    CoreOp(
        "reciprocal", unary(FLOATS), in_f64(np.reciprocal), traits=Trait.ELEMENTWISE | Trait.EXACT
    ),
    RELU,
    # Nearest integer, halves to even (ONNX Round-22).
    CoreOp(
        "round",
        unary(FLOATS),
        directly(np.rint),
        traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.EXACT | Trait.STEP,
    ),
    # -1, 0 or 1; NaN stays NaN (ONNX Sign-13).
    CoreOp(
        "sign",
        unary(NUMBERS),
        directly(np.sign),
        traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.EXACT | Trait.STEP,
    ),
    # Square root; NaN below 0 (ONNX Sqrt-13).
    CoreOp("sqrt", unary(FLOATS), in_f64(np.sqrt), traits=Trait.ELEMENTWISE | Trait.EXACT),
    # a - b; integers wrap (ONNX Sub-14).
    CoreOp(
        "sub",
        binary(NUMBERS),
        directly(np.subtract),
        traits=Trait.ELEMENTWISE | Trait.DENSE_OF_ANY | Trait.EXACT,
    ),
)
