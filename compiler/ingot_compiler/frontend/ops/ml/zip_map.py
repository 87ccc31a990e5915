"""ai.onnx.ml ZipMap: one map from labels to scores for each row.

In: f32 scores [N, K]. Out: the same scores as an array [N, K]: a column for each label, in the
order of the attribute. Not done here: maps, which Ingot has not.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import as_rows, numbers_of
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    texts = context.attributes.get("classlabels_strings", ())
    labels = numbers_of(context, "classlabels_int64s")
    count = len(labels) or (len(texts) if isinstance(texts, tuple) else 0)
    scores = as_rows(context, context.operand(0))
    size = context.shape_of(scores)[1]
    require(not isinstance(size, int) or size == count, f"{count} scores for as many labels", size)
    return (scores,)


OP = OnnxOp("ZipMap", _translate)
