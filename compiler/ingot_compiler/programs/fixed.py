"""An expression that says its device.

In: an expression and where it is. Out: the expression, in a fixed annotation unless its device is
known without one. Not done here: where annotations are needed.
"""

from __future__ import annotations

from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import (
    Expression,
    FunctionLiteral,
    GlobalReference,
    OnDevice,
    Variable,
)


def fixed(expression: Expression, device: VirtualDevice) -> Expression:
    """The expression, said to be on ``device`` unless it says so itself."""
    if isinstance(expression, Variable | GlobalReference | FunctionLiteral):
        return expression
    if isinstance(expression, OnDevice) and expression.is_fixed and expression.device == device:
        return expression
    return OnDevice(expression, device, constrain_result=True, span=expression.span)
