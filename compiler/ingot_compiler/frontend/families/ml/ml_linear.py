"""Products with coefficients that are attributes of a node.

In: a context with ``coefficients``, ``intercepts``. Out: scores [N, rows]. Not done here: labels,
transforms (``ml_scores``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import cast, reshape, transpose
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.families.ml.ml_scores import as_rows, vector_of
from ingot_compiler.ir.op_type_error import OpTypeError, require


def features(context: OpContext) -> int:
    """Operand 0 as [N, features] of f32 or f64."""
    x = as_rows(context, context.operand(0))
    return cast(context, x, "f64" if context.dtype_of(x) == "f64" else "f32")


def needed_vector(context: OpContext, name: str, like: int) -> int:
    """A list of floats that must be there, in the element type of another value."""
    found = vector_of(context, name)
    if found is None:
        raise OpTypeError(f"attribute {name}", "none")
    return cast(context, found, context.dtype_of(like))


def coefficient_rows(context: OpContext) -> int:
    """How many rows of coefficients there are, one for each score."""
    x = features(context)
    count = context.shape_of(needed_vector(context, "coefficients", x))[0]
    columns = context.shape_of(x)[1]
    if not isinstance(columns, int):
        intercepts = vector_of(context, "intercepts")
        rows = context.shape_of(intercepts)[0] if intercepts is not None else None
        if not isinstance(rows, int):
            raise Unsupported("a number of features that is known at run time only")
        return rows
    assert isinstance(count, int)
    fits = columns > 0 and count % columns == 0
    require(fits, f"a multiple of {columns} coefficients", count)
    return count // columns


def linear_scores(context: OpContext, rows: int) -> int:
    """X @ coefficients.T + intercepts."""
    x = features(context)
    flat = needed_vector(context, "coefficients", x)
    count = context.shape_of(flat)[0]
    assert isinstance(count, int)
    require(rows > 0 and count % rows == 0, f"a multiple of {rows} coefficients", count)
    table = transpose(context, reshape(context, flat, (rows, count // rows)), (1, 0))
    scores = context.add("matmul", x, table)
    intercepts = vector_of(context, "intercepts")
    if intercepts is None:
        return scores
    given = context.shape_of(intercepts)[0]
    require(given == rows, f"{rows} intercepts", given)
    return context.add("add", scores, cast(context, intercepts, context.dtype_of(x)))
