"""``argmin{axis, select_last, keepdims}``: index of the least element along an axis (ONNX
ArgMin-13).

In: a tensor of numbers, the axis not empty. Out: i64, the axis gone or of size 1. Of equal elements
the first wins, or the last with ``select_last``; NaN counts as the least. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes
from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.rules.reference_rules import arg_extreme
from ingot_compiler.ir.rules.typing_rules import infer_arg_extreme
from ingot_compiler.ir.traits import Trait


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (arg_extreme(np.argmin, operands[0], attributes),)


OP = CoreOp("argmin", infer_arg_extreme, _reference, traits=Trait.EXACT | Trait.STEP)
