"""ONNX Runtime's normalizations, with what is added before.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx, results_of
from ingot_compiler.frontend.build.compose import binary_scalar, cast, reduce, reshape, unsqueeze
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import known_sizes
from ingot_compiler.frontend.families.images.channels_last import to_first, to_last
from ingot_compiler.frontend.model.imported import ABSENT
from ingot_compiler.ir.dims import dim_floordiv, dim_mod
from ingot_compiler.ir.op_type_error import OpTypeError


def _gated_rms_norm(context: OpContext) -> Sequence[int]:
    """Groups of elements divided by their root mean square, times a gate.

    In: x [.., n * C], scale [C], a gate like x. Out: core ``rms_norm``, ``silu`` or ``sigmoid``,
    computed in f32.
    """
    x, scale, gate = (cast(context, context.operand(position), "f32") for position in range(3))
    shape, (width,) = context.shape_of(x), known_sizes(context, scale, 1)
    if width < 1 or not shape or dim_mod(shape[-1], width) != 0:
        raise OpTypeError(f"a last axis of whole groups of {width}", context.type_of(x))
    groups = reshape(context, x, (*shape[:-1], dim_floordiv(shape[-1], width), width))
    epsilon = context.float_attribute("epsilon", 1e-5)
    normal = as_onnx(context, "RMSNormalization", groups, scale, axis=-1, epsilon=epsilon)
    kind = context.string_attribute("activation", "silu", ("silu", "swish", "sigmoid"))
    opened = context.add("sigmoid" if kind == "sigmoid" else "silu", gate)
    result = context.add("mul", reshape(context, normal, shape), opened)
    return (cast(context, result, context.dtype_of(context.operand(0))),)


def normalised(context: OpContext, x: int) -> int:
    """X after the node's normalisation and activation."""
    groups = context.int_attribute("groups", 1)
    if groups < 1:
        raise OpTypeError("groups >= 1", groups)
    is_last = context.bool_attribute("channels_last", default=True)
    first = to_first(context, x) if is_last else x
    parameters = [cast(context, context.operand(at), context.dtype_of(x)) for at in (1, 2)]
    epsilon = context.float_attribute("epsilon", 1e-5)
    result = context.add("group_norm", first, *parameters, groups=groups, epsilon=epsilon)
    if context.int_attribute("activation", 0):
        result = context.add("silu", result)
    return to_last(context, result) if is_last else result


def _group_norm(context: OpContext) -> Sequence[int]:
    """Groups of channels of every sample normalised, perhaps a SiLU.

    In: x with channels last (or first), scale, shift. Out: core ``group_norm``, ``silu``.
    """
    return (normalised(context, context.operand(0)),)


def simplified(context: OpContext, x: int, scale: int, *, wants_inverse: bool) -> tuple[int, int]:
    """X normalised over its last axes, and the factor of each row."""
    axis = context.axis_attribute(-1, context.rank_of(x))
    epsilon = context.float_attribute("epsilon", 1e-5)
    result = as_onnx(context, "RMSNormalization", x, scale, axis=axis, epsilon=epsilon)
    if not wants_inverse:
        return result, ABSENT
    wide = cast(context, x, "f32") if context.int_attribute("stash_type", 1) == 1 else x
    axes = tuple(range(axis, context.rank_of(x)))
    mean = reduce(context, context.add("mul", wide, wide), "mean", axes, keepdims=True)
    root = context.add("sqrt", binary_scalar(context, "add", mean, epsilon))
    return result, context.add("reciprocal", root)


def _simplified_layer_normalization(context: OpContext) -> Sequence[int]:
    """ONNX's RMSNormalization.

    In: x, scale. Out: core ``rms_norm``; 1 / sqrt(mean of squares + epsilon) where the node has a result for it.
    """
    x, scale = context.operand(0), context.operand(1)
    return simplified(context, x, scale, wants_inverse=context.wants(1))


def _skip_group_norm(context: OpContext) -> Sequence[int]:
    """GroupNorm of a sum, and the sum.

    In: x, scale, shift, a residual [N, H, W, C], [N, 1, 1, C] or [N, C], perhaps a bias [C]. Out:
    core ``add``, ``group_norm``, ``silu``.
    """
    x, skip, bias = context.operand(0), context.operand(3), context.optional(4)
    spatial = range(2, context.rank_of(x))
    is_last = context.bool_attribute("channels_last", default=True)
    if context.rank_of(skip) == 2:
        skip = unsqueeze(context, skip, range(1, context.rank_of(x) - 1) if is_last else spatial)
    total = context.add("add", x, skip)
    if bias is not None:
        column = bias if is_last else unsqueeze(context, bias, range(1, len(spatial) + 1))
        total = context.add("add", total, column)
    return normalised(context, total), total


def skipped(context: OpContext, bias: int | None) -> int:
    """``x + skip + bias``."""
    total = context.add("add", context.operand(0), context.operand(1))
    return total if bias is None else context.add("add", total, bias)


def _skip_layer_normalization(context: OpContext) -> Sequence[int]:
    """The layer norm of a sum, and the sum.

    In: x, a residual that broadcasts to it, scale, perhaps shift and bias. Out: core ``add``,
    ``layer_norm``, moments where the node has a result for it.
    """
    total = skipped(context, context.optional(4))
    epsilon = context.float_attribute("epsilon", 1e-12)
    normal = results_of(
        context,
        "LayerNormalization",
        [total, context.operand(2), context.optional(3)],
        {"axis": -1, "epsilon": epsilon},
        wanted=(True, context.wants(1), context.wants(2)),
    )
    moments = normal[1:] or (ABSENT, ABSENT)
    return normal[0], *moments, total


def _skip_simplified_layer_normalization(context: OpContext) -> Sequence[int]:
    """The RMS norm of a sum, and the sum.

    In: x, a residual, scale, perhaps a bias. Out: core ``add``, ``rms_norm``.
    """
    if context.wants(1):
        raise Unsupported("a mean, which this normalisation has not")
    total = skipped(context, context.optional(3))
    result, inverse = simplified(context, total, context.operand(2), wants_inverse=context.wants(2))
    return result, ABSENT, inverse, total


OPS = (
    OnnxOp(
        "GatedRMSNorm",
        _gated_rms_norm,
        signature="X scale gate -> Y; activation:string epsilon:float",
    ),
    OnnxOp(
        "GroupNorm",
        _group_norm,
        signature="X gamma beta -> Y; activation!:int channels_last:int epsilon:float groups!:int",
    ),
    OnnxOp(
        "SimplifiedLayerNormalization",
        _simplified_layer_normalization,
        signature="X scale -> Y inv_std_var?; axis:int epsilon:float stash_type:int",
    ),
    OnnxOp(
        "SkipGroupNorm",
        _skip_group_norm,
        signature="X gamma beta skip bias? -> Y S?; activation!:int channels_last:int epsilon:float groups!:int",
    ),
    OnnxOp(
        "SkipLayerNormalization",
        _skip_layer_normalization,
        signature="input skip gamma beta? bias? -> output mean? inv_std_var? "
        "input_skip_bias_sum?; epsilon:float",
    ),
    OnnxOp(
        "SkipSimplifiedLayerNormalization",
        _skip_simplified_layer_normalization,
        signature="input skip gamma bias? -> output mean? inv_std_var? "
        "input_skip_bias_sum?; epsilon:float",
    ),
)
