"""``gelu{approximate}``: x * P(a normal variable <= x), exact ("none") or by tanh (ONNX Gelu-20).

In: a float tensor. Out: same type. Not done here: lowering.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_str
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import erf, in_f64
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType

_UNARY = unary(FLOATS, names=("approximate",))


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    results = _UNARY(types, attributes)
    attribute_str(attributes, "approximate", ("none", "tanh"))
    return results


def _exact(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + erf(x * math.sqrt(0.5))))


def _by_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return in_f64(_exact if attribute_str(attributes, "approximate") == "none" else _by_tanh)(
        operands, attributes
    )


OP = CoreOp("gelu", _infer, _reference, traits=Trait.ELEMENTWISE | Trait.DENSE)
