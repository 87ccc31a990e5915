"""The ops of ONNX-ML that prepare features.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from ingot_compiler.frontend.build.compose import (
    as_float,
    as_vector,
    binary_scalar,
    cast,
    concat,
    reduce,
    slice_axis,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked, checked_indices
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import numbers_of, vector_of
from ingot_compiler.frontend.families.strings.lookup import places_among
from ingot_compiler.frontend.families.strings.pool import strings_of
from ingot_compiler.ir.dims import dim_add, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.sizes.ranges import minimum
from ingot_compiler.ir.types import FLOATS


def _array_feature_extractor(context: OpContext) -> Sequence[int]:
    """Columns of the last axis, picked by indices.

    In: x[.., n], i64 indices. Out: x[.., indices]; of a vector, one row.
    """
    x, indices = context.operand(0), as_vector(context, context.operand(1))
    rank = context.rank_of(x)
    require(rank >= 1, "x[.., n]", context.type_of(x))
    indices = checked_indices(context, indices, context.shape_of(x)[-1])
    picked = context.add("gather", x, indices, axis=rank - 1)
    return (unsqueeze(context, picked, (0,)) if rank == 1 else picked,)


def _binarizer(context: OpContext) -> Sequence[int]:
    """1 where an element is above the threshold, else 0.

    In: a tensor of numbers. Out: the same element type.
    """
    x = context.operand(0)
    wide = as_float(context, x)
    limit = context.scalar(context.dtype_of(wide), context.float_attribute("threshold", 0.0))
    return (cast(context, context.add("less", limit, wide), context.dtype_of(x)),)


def _feature_vectorizer(context: OpContext) -> Sequence[int]:
    """Features of several tensors beside each other.

    In: tensors [N, n] or [N]. Out: f32 [N, sum of the sizes]: each tensor cut, or filled with
    zeros, to the size that ``inputdimensions`` says.
    """
    operands = context.given()
    sizes = numbers_of(context, "inputdimensions")
    if sizes:
        require(len(sizes) == len(operands), f"{len(operands)} inputdimensions", len(sizes))
    parts = [_columns(context, operand) for operand in operands]
    if sizes:
        parts = [_sized(context, x, size) for x, size in zip(parts, sizes, strict=True)]
    return (concat(context, parts, 1),)


def _columns(context: OpContext, x: int) -> int:
    rank = context.rank_of(x)
    require(rank in (1, 2), "tensors [N, n] or [N]", context.type_of(x))
    return cast(context, unsqueeze(context, x, (1,)) if rank == 1 else x, "f32")


def _sized(context: OpContext, x: int, size: int) -> int:
    kept = slice_axis(context, x, 1, 0, minimum(context.shape_of(x)[1], size))
    lacking = dim_add(size, dim_mul(context.shape_of(kept)[1], -1))
    if lacking == 0:
        return kept
    zero = context.scalar("f32", 0.0)
    return context.add("pad", kept, zero, before=(0, 0), after=(0, lacking), mode="constant")


def _imputer(context: OpContext) -> Sequence[int]:
    """A value for each column in the place of what stands for a missing one.

    In: x[N, n]. Out: the same element type.
    """
    x = context.operand(0)
    dtype, shape = context.dtype_of(x), context.shape_of(x)
    values = _values(context)
    count, columns = context.shape_of(values)[0], shape[-1] if shape else 1
    fits = count in (1, columns) or not isinstance(columns, int)
    require(fits, f"1 or {columns} imputed values", count)
    values = cast(context, values, dtype)
    return (context.add("select", _missing(context, x), values, x),)


def _values(context: OpContext) -> int:
    floats, whole = (
        vector_of(context, "imputed_value_floats"),
        numbers_of(context, "imputed_value_int64s"),
    )
    if floats is not None:
        return floats
    if not whole:
        raise OpTypeError("imputed_value_floats or imputed_value_int64s", "neither")
    return context.integers(whole)


def _missing(context: OpContext, x: int) -> int:
    """Where x is what stands for a missing value."""
    dtype = context.dtype_of(x)
    if dtype in FLOATS:
        stands = context.float_attribute("replaced_value_float", 0.0)
        if isnan(stands):
            return context.add("isnan", x)
        return context.add("equal", x, context.scalar(dtype, stands))
    whole = context.int_attribute("replaced_value_int64", 0)
    return context.add("equal", x, context.scalar(dtype, whole))


_LEAST = 1e-30  # of a divisor, as in ONNX's reference


def _normalizer(context: OpContext) -> Sequence[int]:
    """Rows divided by their norm; a row of zeros stays.

    In: x[N, n], or one row. Out: f32.
    """
    x = context.operand(0)
    require(context.rank_of(x) >= 1, "x[N, n], or one row", context.type_of(x))
    x = cast(context, x, "f64" if context.dtype_of(x) == "f64" else "f32")
    norm = _norm(context, x, context.string_attribute("norm", "MAX", ("MAX", "L1", "L2")))
    norm = binary_scalar(context, "max", norm, _LEAST)
    return (cast(context, context.add("div", x, norm), "f32"),)


def _norm(context: OpContext, x: int, name: str) -> int:
    axes = (context.rank_of(x) - 1,)
    if name == "L2":
        squares = reduce(context, context.add("mul", x, x), "sum", axes, keepdims=True)
        return context.add("sqrt", squares)
    size = context.add("abs", x)
    return reduce(context, size, "max" if name == "MAX" else "sum", axes, keepdims=True)


def _one_hot_encoder(context: OpContext) -> Sequence[int]:
    """For each number or string a row that is 1 at its category.

    In: a tensor of numbers or strings. Out: f32 [.., categories]; one that is none of them gives
    zeros, or is refused (``zeros`` 0). Floats are cut to integers.
    """
    x, texts = context.operand(0), context.attributes.get("cats_strings", ())
    categories = numbers_of(context, "cats_int64s")
    if x < 0:
        words = list(map(str, texts)) if isinstance(texts, tuple) else []
        require(len(set(words)) == len(words), "categories that differ", str(words)[:64])
        x = places_among(context, strings_of(context, x), words)
        categories = tuple(range(len(words)))
    if not categories:
        raise OpTypeError("categories", "none")
    x, listed = cast(context, x, "i64"), context.integers(categories)
    hit = context.add("equal", unsqueeze(context, x, (context.rank_of(x),)), listed)
    found = cast(context, hit, "f32")
    if not context.bool_attribute("zeros", default=True):
        is_known = reduce(context, found, "max", (context.rank_of(found) - 1,), keepdims=True)
        inside = context.add("less", context.scalar("f32", 0.0), is_known)
        found = checked(context, found, inside, "every element to be a category")
    return (found,)


def _scaler(context: OpContext) -> Sequence[int]:
    """(x - offset) * scale, for each column or for all.

    In: x[.., n]. Out: f32.
    """
    x = as_float(context, context.operand(0))
    if context.dtype_of(context.operand(0))[0] in "iu":
        x = cast(context, x, "f32")
    for name, op in (("offset", "sub"), ("scale", "mul")):
        factors = vector_of(context, name)
        if factors is not None:
            count, columns = context.shape_of(factors)[0], (context.shape_of(x) or (1,))[-1]
            fits = count in (1, columns) or not isinstance(columns, int)
            require(fits, f"1 or {columns} entries of {name}", count)
            own = cast(context, factors, context.dtype_of(x))
            x = context.add("sub" if op == "sub" else "mul", x, own)
    return (cast(context, x, "f32"),)


OPS = (
    OnnxOp("ArrayFeatureExtractor", _array_feature_extractor),
    OnnxOp("Binarizer", _binarizer),
    OnnxOp("FeatureVectorizer", _feature_vectorizer),
    OnnxOp("Imputer", _imputer),
    OnnxOp("Normalizer", _normalizer),
    OnnxOp("OneHotEncoder", _one_hot_encoder),
    OnnxOp("Scaler", _scaler),
)
