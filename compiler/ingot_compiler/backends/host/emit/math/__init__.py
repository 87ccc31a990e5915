"""Every function that ``Apply`` may name, with its emitter; a new one is one line here.

In: nothing. Out: ``FUNCTIONS``. Not done here: ``select`` and ``cast`` (``emit.value``), f16 and
bf16 (computed as f32).

An emitter takes the writer, the operands' dtype and the operands (one shape), and returns the
result. None calls a
library: everything is instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingot_compiler.backends.host.emit.math import arithmetic, logic
from ingot_compiler.backends.host.emit.math.erf import erf, gelu_none, gelu_tanh
from ingot_compiler.backends.host.emit.math.exp import exp, sigmoid, silu
from ingot_compiler.backends.host.emit.math.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from ingot_compiler.backends.host.emit.math.inverse import acos, asin, atan
from ingot_compiler.backends.host.emit.math.log import log, softplus
from ingot_compiler.backends.host.emit.math.power import power
from ingot_compiler.backends.host.emit.math.trigonometric import cos, sin, tan
from ingot_compiler.backends.host.emit.number import Number
from ingot_compiler.backends.host.writer import LlvmValue, Writer
from ingot_compiler.ir.types import DType

Emitter = Callable[[Writer, DType, tuple[LlvmValue, ...]], LlvmValue]


def unary(function: Callable[[Number], Number]) -> Emitter:
    """An emitter from a formula."""

    def emit(w: Writer, _: DType, operands: tuple[LlvmValue, ...]) -> LlvmValue:
        return function(Number(w, operands[0])).operand

    return emit


def in_double(function: Callable[[Number], Number]) -> Emitter:
    """An emitter from a formula for f64: f32 is widened and the result rounded, for rare
    functions."""
    return unary(lambda x: function(x) if x.is_double else function(x.to("double")).to("float"))


FUNCTIONS: Mapping[str, Emitter] = {
    "abs": arithmetic.absolute,
    "acos": in_double(acos),
    "acosh": in_double(acosh),
    "add": arithmetic.binary("add"),
    "asin": in_double(asin),
    "asinh": in_double(asinh),
    "atan": in_double(atan),
    "atanh": in_double(atanh),
    "bitwise_and": logic.bitwise("and"),
    "bitwise_not": logic.invert,
    "bitwise_or": logic.bitwise("or"),
    "bitwise_xor": logic.bitwise("xor"),
    "ceil": arithmetic.intrinsic("ceil"),
    "cos": in_double(cos),
    "cosh": in_double(cosh),
    "div": arithmetic.divide,
    "equal": logic.compare("equal"),
    "erf": unary(erf),
    "exp": unary(exp),
    "floor": arithmetic.intrinsic("floor"),
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
    "logical_and": logic.bitwise("and"),
    "logical_not": logic.invert,
    "logical_or": logic.bitwise("or"),
    "logical_xor": logic.bitwise("xor"),
    "max": arithmetic.maximum,
    "min": arithmetic.minimum,
    "mod": arithmetic.modulo,
    "mul": arithmetic.binary("mul"),
    "neg": arithmetic.negate,
    "pow": power,
    "reciprocal": arithmetic.reciprocal,
    "relu": arithmetic.relu,
    "round": arithmetic.intrinsic("roundeven"),
    "shift_left": logic.shift_left,
    "shift_right": logic.shift_right,
    "sigmoid": unary(sigmoid),
    "sign": arithmetic.sign,
    "silu": unary(silu),
    "sin": in_double(sin),
    "sinh": in_double(sinh),
    "softplus": unary(softplus),
    "sqrt": arithmetic.intrinsic("sqrt"),
    "sub": arithmetic.binary("sub"),
    "tan": in_double(tan),
    "tanh": unary(tanh),
}
