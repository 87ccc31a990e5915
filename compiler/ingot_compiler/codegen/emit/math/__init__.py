"""Every function that ``Apply`` may name, with its emitter; a new one is one line here.

In: nothing. Out: ``FUNCTIONS``. Not done here: ``select`` and ``cast`` (``emit.value``), f16 and
bf16 (computed as f32).

No emitter calls a library: everything is instructions.
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.codegen.emit.math import (
    arithmetic,
    inverse,
    inverse_f32,
    logic,
    trigonometric_f32,
)
from ingot_compiler.codegen.emit.math.emitter import (
    Emitter,
    binary,
    by_width,
    in_double,
    instruction,
    intrinsic,
    unary,
)
from ingot_compiler.codegen.emit.math.erf import erf
from ingot_compiler.codegen.emit.math.exp import exp, sigmoid, silu
from ingot_compiler.codegen.emit.math.gelu import gelu_none, gelu_tanh
from ingot_compiler.codegen.emit.math.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from ingot_compiler.codegen.emit.math.log import log, softplus
from ingot_compiler.codegen.emit.math.power import power
from ingot_compiler.codegen.emit.math.trigonometric import cos, sin, tan

FUNCTIONS: Mapping[str, Emitter] = {
    "abs": arithmetic.absolute,
    "acos": by_width(inverse_f32.acos, inverse.acos),
    "acosh": in_double(acosh),
    "add": binary("add"),
    "asin": by_width(inverse_f32.asin, inverse.asin),
    "asinh": in_double(asinh),
    "atan": by_width(inverse_f32.atan, inverse.atan),
    "atanh": in_double(atanh),
    "bitwise_and": instruction("and"),
    "bitwise_not": logic.invert,
    "bitwise_or": instruction("or"),
    "bitwise_xor": instruction("xor"),
    "ceil": intrinsic("ceil"),
    "cos": by_width(trigonometric_f32.cos, cos),
    "cosh": in_double(cosh),
    "div": arithmetic.divide,
    "equal": logic.compare("equal"),
    "erf": unary(erf),
    "exp": unary(exp),
    "floor": intrinsic("floor"),
    "fmod": arithmetic.c_remainder,
    "gelu_none": unary(gelu_none),
    "gelu_tanh": unary(gelu_tanh),
    "isinf": logic.is_infinite(positive=True, negative=True),
    "isinf_negative": logic.is_infinite(positive=False, negative=True),
    "isinf_none": logic.is_infinite(positive=False, negative=False),
    "isinf_positive": logic.is_infinite(positive=True, negative=False),
    "isnan": logic.is_nan,
    "less": logic.compare("less"),
    "less_equal": logic.compare("less_equal"),
    "log": unary(log),
    "logical_and": instruction("and"),
    "logical_not": logic.invert,
    "logical_or": instruction("or"),
    "logical_xor": instruction("xor"),
    "max": arithmetic.maximum,
    "min": arithmetic.minimum,
    "mod": arithmetic.modulo,
    "mul": binary("mul"),
    "neg": arithmetic.negate,
    "philox": logic.random_bits,
    "pow": power,
    "reciprocal": arithmetic.reciprocal,
    "relu": arithmetic.relu,
    "round": intrinsic("roundeven"),
    "shift_left": logic.shift_left,
    "shift_right": logic.shift_right,
    "sigmoid": unary(sigmoid),
    "sign": arithmetic.sign,
    "silu": unary(silu),
    "sin": by_width(trigonometric_f32.sin, sin),
    "sinh": in_double(sinh),
    "softplus": unary(softplus),
    "sqrt": intrinsic("sqrt"),
    "sub": binary("sub"),
    "tan": by_width(trigonometric_f32.tan, tan),
    "tanh": unary(tanh),
}
