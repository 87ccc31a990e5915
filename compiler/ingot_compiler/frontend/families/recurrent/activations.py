"""Activations that fused ops name by a string.

In: a context whose node names one, a value. Out: the value after it. Not done here: the layers of
recurrent ops (``recurrent_layers``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.op_type_error import OpTypeError

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Relu": (),
    "Tanh": (),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "LeakyRelu": ("alpha",),
    "ThresholdedRelu": ("alpha",),
    "Elu": ("alpha",),
    "Celu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}
"""ONNX op -> its attributes, in the order in which lists of parameters give them."""


def activated(context: OpContext, x: int, name: str, parameters: Mapping[str, float]) -> int:
    """``x`` after the activation ``name``; the empty name stands for none."""
    if not name:
        return x
    if name not in PARAMETERS:
        raise OpTypeError(f"attribute activation to be {' or '.join(PARAMETERS)}", repr(name))
    given = {key: parameters[key] for key in PARAMETERS[name] if key in parameters}
    return as_onnx(context, name, x, opset=10 if name == "Clip" else 20, **given)


def by_list(context: OpContext) -> tuple[str, dict[str, float]]:
    """What ``activation`` and ``activation_params`` say."""
    name = context.string_attribute("activation", "")
    values = context.floats_or("activation_params", ())
    return name, dict(zip(PARAMETERS.get(name, ()), values, strict=False))


def by_name(context: OpContext) -> tuple[str, dict[str, float]]:
    """What ``activation``, ``activation_alpha``, ``activation_beta``, .. say."""
    found = {
        key: context.float_attribute(f"activation_{key}", 0.0)
        for key in ("alpha", "beta", "gamma")
        if f"activation_{key}" in context.attributes
    }
    return context.string_attribute("activation", ""), found
