"""Core functions of floats, elementwise.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_str
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import erf, in_f64, sigmoid
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType

_UNARY = unary(FLOATS, names=("approximate",))


def _infer_gelu(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    results = _UNARY(types, attributes)
    attribute_str(attributes, "approximate", ("none", "tanh"))
    return results


def _exact(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + erf(x * math.sqrt(0.5))))


def _by_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))))


def _reference_gelu(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return in_f64(_exact if attribute_str(attributes, "approximate") == "none" else _by_tanh)(
        operands, attributes
    )


GELU = CoreOp("gelu", _infer_gelu, _reference_gelu, traits=Trait.ELEMENTWISE | Trait.DENSE)
"""``gelu{approximate}``: x * P(a normal variable <= x), exact ("none") or by tanh (ONNX
Gelu-20).

In: a float tensor. Out: same type.
"""


def _silu(x: Array) -> Array:
    result: Array = x * sigmoid(x)
    return result


SILU = CoreOp("silu", unary(FLOATS), in_f64(_silu), traits=Trait.ELEMENTWISE | Trait.DENSE)
"""``silu``: x * sigmoid(x), also called swish (ONNX Swish-24 with alpha 1).

In: a float tensor. Out: same type.
"""


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0.0)


SOFTPLUS = CoreOp(
    "softplus", unary(FLOATS), in_f64(_softplus), traits=Trait.ELEMENTWISE | Trait.DENSE
)
"""``softplus``: ln(1 + e^x) (ONNX Softplus-22).

In: a float tensor. Out: same type.
"""


OPS = (
    # Arc cosine in radians (ONNX Acos-22).
    CoreOp("acos", unary(FLOATS), in_f64(np.arccos), traits=Trait.ELEMENTWISE),
    # Inverse hyperbolic cosine (ONNX Acosh-22).
    CoreOp("acosh", unary(FLOATS), in_f64(np.arccosh), traits=Trait.ELEMENTWISE),
    # Arc sine in radians (ONNX Asin-22).
    CoreOp("asin", unary(FLOATS), in_f64(np.arcsin), traits=Trait.ELEMENTWISE),
    # Inverse hyperbolic sine (ONNX Asinh-22).
    CoreOp("asinh", unary(FLOATS), in_f64(np.arcsinh), traits=Trait.ELEMENTWISE),
    # Arc tangent in radians (ONNX Atan-22).
    CoreOp("atan", unary(FLOATS), in_f64(np.arctan), traits=Trait.ELEMENTWISE),
    # Inverse hyperbolic tangent (ONNX Atanh-22).
    CoreOp("atanh", unary(FLOATS), in_f64(np.arctanh), traits=Trait.ELEMENTWISE),
    # Cosine of radians (ONNX Cos-22).
    CoreOp("cos", unary(FLOATS), in_f64(np.cos), traits=Trait.ELEMENTWISE),
    # Hyperbolic cosine (ONNX Cosh-22).
    CoreOp("cosh", unary(FLOATS), in_f64(np.cosh), traits=Trait.ELEMENTWISE),
    # The error function (ONNX Erf-13).
    CoreOp("erf", unary(FLOATS), in_f64(erf), traits=Trait.ELEMENTWISE),
    # e to the power of x (ONNX Exp-13).
    CoreOp("exp", unary(FLOATS), in_f64(np.exp), traits=Trait.ELEMENTWISE | Trait.DENSE),
    GELU,
    # Natural logarithm; NaN below 0 (ONNX Log-13).
    CoreOp("log", unary(FLOATS), in_f64(np.log), traits=Trait.ELEMENTWISE),
    # 1 / (1 + e^-x) (ONNX Sigmoid-13).
    CoreOp("sigmoid", unary(FLOATS), in_f64(sigmoid), traits=Trait.ELEMENTWISE | Trait.DENSE),
    SILU,
    # Sine of radians (ONNX Sin-22).
    CoreOp("sin", unary(FLOATS), in_f64(np.sin), traits=Trait.ELEMENTWISE),
    # Hyperbolic sine (ONNX Sinh-22).
    CoreOp("sinh", unary(FLOATS), in_f64(np.sinh), traits=Trait.ELEMENTWISE),
    SOFTPLUS,
    # Tangent of radians (ONNX Tan-22).
    CoreOp("tan", unary(FLOATS), in_f64(np.tan), traits=Trait.ELEMENTWISE),
    # Hyperbolic tangent (ONNX Tanh-13).
    CoreOp("tanh", unary(FLOATS), in_f64(np.tanh), traits=Trait.ELEMENTWISE | Trait.DENSE),
)
