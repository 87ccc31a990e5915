"""Core ops that check while the model runs.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dim,
    attribute_text,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.typing_rules import (
    BOOLS,
    broadcast_result,
    require_dtype,
    require_operands,
)
from ingot_compiler.ir.shape_constraints import SizeBound
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer_require(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "what")
    require_operands(types, 2)
    attribute_text(attributes, "what")
    x, condition = types
    require_dtype(condition, BOOLS)
    return broadcast_result(x.dtype, types)


def _reference_require(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, condition = np.broadcast_arrays(*operands)
    if not condition.all():
        raise ValueError(str(attribute_text(attributes, "what")))
    return (x,)


REQUIRE = CoreOp("require", _infer_require, _reference_require, traits=Trait.ELEMENTWISE)
"""``require(x, condition){what}``: x; the run is refused with ``what`` where a condition is
false.

In: any tensor and a bool tensor that broadcast together. Out: x's element type, the broadcast
shape.

A value that nobody uses is not computed, and then nothing is checked.
"""


def _infer_require_dim(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "difference", "what")
    require_operands(types, 0)
    difference, what = attribute_dim(attributes, "difference"), attribute_text(attributes, "what")
    return Inferred((), (SizeBound(difference, what),))


def _reference_require_dim(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    if attribute_dim(attributes, "difference") != 0:
        raise ValueError(str(attribute_text(attributes, "what")))
    return ()


REQUIRE_DIM = CoreOp("require_dim", _infer_require_dim, _reference_require_dim)
"""``require_dim(){difference, what}``: the run is refused with ``what`` unless the size
expression ``difference`` is 0.

In: nothing. Out: no value.

It stands for its own sake: no pass drops it because nobody uses it.
"""


OPS = (
    REQUIRE,
    REQUIRE_DIM,
)
