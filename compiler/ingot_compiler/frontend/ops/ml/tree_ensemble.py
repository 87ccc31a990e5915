"""ai.onnx.ml TreeEnsemble: decision trees whose leaves add to targets.

In: x[N, features]. Out: scores [N, targets] in x's element type. Not done here: the tables
(``trees``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import transform_name, transformed
from ingot_compiler.frontend.families.ml.tree_sums import leaf_sums
from ingot_compiler.ir.op_type_error import require

_FUNCTIONS = ("AVERAGE", "SUM", "MIN", "MAX")


def _translate(context: OpContext) -> Sequence[int]:
    function = context.int_attribute("aggregate_function", 1)
    require(0 <= function < len(_FUNCTIONS), "aggregate_function in [0, 4)", function)
    total = cast(
        context, leaf_sums(context, _FUNCTIONS[function]), context.dtype_of(context.operand(0))
    )
    return (transformed(context, total, transform_name(context)),)


OP = OnnxOp("TreeEnsemble", _translate)
