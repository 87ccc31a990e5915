"""ai.onnx.ml SVMRegressor: a weighted sum of kernels; of one class, its sign.

In: x[N, n]. Out: f32 [N, 1]. Not done here: kernels (``ml_kernels``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, element, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_kernels import kernel_matrix
from ingot_compiler.frontend.families.ml.ml_linear import features, needed_vector
from ingot_compiler.frontend.families.ml.ml_scores import transform_name, transformed
from ingot_compiler.ir.op_type_error import require


def _translate(context: OpContext) -> Sequence[int]:
    x, vectors = features(context), context.int_attribute("n_supports", 0)
    weights = needed_vector(context, "coefficients", x)
    kernels = kernel_matrix(context, x, vectors) if vectors > 0 else x
    count, columns = context.shape_of(weights)[0], context.shape_of(kernels)[1]
    require(count == columns or not isinstance(columns, int), f"{columns} coefficients", count)
    assert isinstance(count, int)
    total = context.add("matmul", kernels, reshape(context, weights, (count, 1)))
    total = context.add("add", total, element(context, needed_vector(context, "rho", x), 0))
    if context.bool_attribute("one_class"):
        dtype = context.dtype_of(x)
        inside = context.add("less", context.scalar(dtype, 0.0), total)
        yes, no = (context.scalar(dtype, value) for value in (1.0, -1.0))
        total = context.add("select", inside, yes, no)
    return (transformed(context, cast(context, total, "f32"), transform_name(context)),)


OP = OnnxOp("SVMRegressor", _translate)
