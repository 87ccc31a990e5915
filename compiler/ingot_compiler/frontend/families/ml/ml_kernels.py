"""Kernels of support vector machines: how near each row is to each support vector.

In: a context with ``kernel_type``, ``kernel_params``, ``support_vectors``. Out: [N, vectors]. Not
done here: what is made of them (``ops/ml/svm_classifier``, ``svm_regressor``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    reduce,
    reshape,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.families.ml.ml_linear import needed_vector
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import require

_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def kernel_matrix(context: OpContext, x: int, vectors: int) -> int:
    """The kernel of each row of x and each of ``vectors`` support vectors."""
    kind = context.string_attribute("kernel_type", "LINEAR", _KERNELS)
    gamma, added, degree = _parameters(context)
    flat = needed_vector(context, "support_vectors", x)
    count = context.shape_of(flat)[0]
    assert isinstance(count, int)
    require(count % vectors == 0, f"a multiple of {vectors} numbers of support vectors", count)
    table = reshape(context, flat, (vectors, count // vectors))
    if kind == "RBF":
        return _rbf(context, x, table, gamma)
    product = context.add("matmul", x, transpose(context, table, (1, 0)))
    if kind == "LINEAR":
        return product
    scaled = binary_scalar(context, "add", binary_scalar(context, "mul", product, gamma), added)
    if kind == "SIGMOID":
        return context.add("tanh", scaled)
    return binary_scalar(context, "pow", scaled, degree)


def _parameters(context: OpContext) -> tuple[float, float, float]:
    """Gamma, what is added, and the degree; zeros where they are not given."""
    value = context.attributes.get("kernel_params")
    numbers = (
        [float(item) for item in context.translation.elements(value).tolist()]
        if isinstance(value, ConstantSource)
        else []
    )
    require(len(numbers) in (0, 3), "3 kernel_params", len(numbers))
    gamma, added, degree = numbers or (0.0, 0.0, 0.0)
    return gamma, added, degree


def _rbf(context: OpContext, x: int, table: int, gamma: float) -> int:
    """From the differences themselves: a difference of products would lose their digits."""
    difference = context.add("sub", unsqueeze(context, x, (1,)), unsqueeze(context, table, (0,)))
    squared = reduce(context, context.add("mul", difference, difference), "sum", (2,))
    return context.add("exp", binary_scalar(context, "mul", squared, -gamma))
