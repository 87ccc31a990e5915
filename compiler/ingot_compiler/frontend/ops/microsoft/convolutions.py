"""ONNX Runtime's convolutions and pools, fused or with channels last.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import results_of
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.frontend.families.images.channels_last import to_first, to_last
from ingot_compiler.frontend.families.recurrent.activations import activated, by_list
from ingot_compiler.frontend.model.imported import ImportedAttribute
from ingot_compiler.frontend.model.onnx_node import RegionBody
from ingot_compiler.ir.dims import dim_mul


def _conv_transpose_with_dynamic_pads(context: OpContext) -> Sequence[int]:
    """ONNX's ConvTranspose, whose pads are an operand.

    In: x, weights, perhaps pads and a bias. Out: what ConvTranspose gives.
    """
    operands = [context.operand(0), context.operand(1), context.optional(3)]
    attributes, given = dict(context.attributes), context.optional(2)
    if given is not None:
        pads = context.known_ints(given)
        if pads is None:
            raise Unsupported("pads that are known at run time only")
        attributes["pads"] = pads
    return results_of(context, "ConvTranspose", operands, attributes)


def of_conv(context: OpContext) -> dict[str, ImportedAttribute | RegionBody]:
    """The attributes that ONNX's Conv has."""
    own = ("activation", "activation_params")
    return {name: value for name, value in context.attributes.items() if name not in own}


def _fused_conv(context: OpContext) -> Sequence[int]:
    """ONNX's Conv, perhaps plus a residual, and an activation.

    In: x, weights, perhaps a bias and a tensor of the result's shape. Out: what Conv gives, added
    and activated.
    """
    operands = [context.operand(0), context.operand(1), context.optional(2)]
    (result,) = results_of(context, "Conv", operands, of_conv(context))
    return (finished(context, result),)


def finished(context: OpContext, result: int) -> int:
    """What the convolution gives, plus the residual if there is one, activated."""
    residual = context.optional(3)
    if residual is not None:
        result = context.add("add", result, residual)
    return activated(context, result, *by_list(context))


FUSED_CONV = OnnxOp(
    "FusedConv",
    _fused_conv,
    signature="X W B? Z? -> Y; activation:string activation_params:floats auto_pad:string dilations:ints "
    "group:int kernel_shape:ints pads:ints strides:ints",
)


def _nhwc_conv(context: OpContext) -> Sequence[int]:
    """ONNX's Conv of images whose channels come last.

    In: x[N, H, W, C], weights [O, kernel.., C / group], perhaps a bias. Out: what Conv gives, with
    its channels last.

    The kernel for GPUs and the optimiser that writes the op have the channels of weights last; its
    documentation has them first, which is taken where the sizes say so.
    """
    x = context.operand(0)
    operands = [to_first(context, x), _weights(context, x), context.optional(2)]
    return (to_last(context, results_of(context, "Conv", operands, context.attributes)[0]),)


def _weights(context: OpContext, x: int) -> int:
    """[O, C / group, kernel..]."""
    w, channels = context.operand(1), context.shape_of(x)[-1]
    groups = context.int_attribute("group", 1)
    sizes = sizes_of(context, w, context.rank_of(x))
    is_first = dim_mul(sizes[1], groups) == channels and dim_mul(sizes[-1], groups) != channels
    return w if is_first else to_first(context, w)


def _nhwc_fused_conv(context: OpContext) -> Sequence[int]:
    """FusedConv of images whose channels come last.

    In: x[N, H, W, C], weights [O, C / group, kernel..], perhaps a bias and a residual. Out: what
    FusedConv gives, with its channels last.
    """
    x = to_first(context, context.operand(0))
    operands = [x, context.operand(1), context.optional(2)]
    result = to_last(context, results_of(context, "Conv", operands, of_conv(context))[0])
    return (finished(context, result),)


def _nhwc_max_pool(context: OpContext) -> Sequence[int]:
    """ONNX's MaxPool of images whose channels come last.

    In: x[N, H, W, C]. Out: what MaxPool gives, with its channels last.
    """
    x = to_first(context, context.operand(0))
    return (to_last(context, results_of(context, "MaxPool", [x], context.attributes)[0]),)


OPS = (
    OnnxOp(
        "ConvTransposeWithDynamicPads",
        _conv_transpose_with_dynamic_pads,
        signature="X W Pads? B? -> Y; auto_pad:string dilations:ints group:int kernel_shape:ints "
        "output_padding:ints strides:ints",
    ),
    FUSED_CONV,
    OnnxOp(
        "NhwcConv",
        _nhwc_conv,
        signature="X W B? -> Y; auto_pad:string dilations:ints group:int kernel_shape:ints p"
        "ads:ints strides:ints",
    ),
    OnnxOp("NhwcFusedConv", _nhwc_fused_conv, signature=FUSED_CONV.signature),
    OnnxOp(
        "NhwcMaxPool",
        _nhwc_max_pool,
        signature="x -> y; auto_pad:string ceil_mode:int dilations:ints kernel_shape!:ints pads:ints strides:ints",
    ),
)
