"""ONNX Runtime DynamicQuantizeLSTM: an LSTM with quantized weights, whose input is quantized by its
own range.

In: X, W[D, I, 4H], R[D, H, 4H], the optional operands of LSTM, scale and zero point of W and of R
for each direction or for each column. Out: what ONNX's LSTM gives. Not done here: the layer
(``recurrent_layers``), types.

Both products are ones of integers: X is quantized as a whole, the state in each step, each row by
its own range. Where the zero point of R is not the middle of its integers, or is known at run time
alone, the product of the state is computed in floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    reshape,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.recurrent.recurrent_layers import recurrent_layer
from ingot_compiler.frontend.families.weights.q_linear import floats
from ingot_compiler.frontend.families.weights.quantization import along, centred, one_number
from ingot_compiler.frontend.ops.quantized import DYNAMIC_QUANTIZE_LINEAR
from ingot_compiler.ir.op_type_error import OpTypeError

_OPERANDS = 8  # of LSTM
_R, _R_SCALE, _R_ZERO = 2, 10, 11


def _translate(context: OpContext) -> Sequence[int]:
    node = replace(context, operands=(context.operand(0),))
    x, scale, zero = DYNAMIC_QUANTIZE_LINEAR.translate(node)
    w, r = _weights(context, 1, 8), _signed(context)
    r_scale = None if r is None else _scale(context)
    r = _weights(context, _R, _R_SCALE) if r is None else r
    operands = (floats(context, x, scale, zero), w, r, *context.operands[3:_OPERANDS])
    return recurrent_layer(replace(context, operands=operands), "lstm", r_scale)


def _signed(context: OpContext) -> int | None:
    """R as ONNX has it, in i8 with the zero point 0, if it can be that."""
    r, zero = context.operand(_R), one_number(context, context.operand(_R_ZERO))
    if (context.dtype_of(r), zero) not in (("i8", 0), ("u8", 128)) or context.rank_of(r) != 3:
        return None
    if zero:
        r = cast(context, binary_scalar(context, "sub", cast(context, r, "i32"), zero), "i8")
    return transpose(context, r, (0, 2, 1))


def _scale(context: OpContext) -> int:
    """R's, for each column."""
    directions, _, columns = context.shape_of(context.operand(_R))
    scale = _along(context, context.operand(_R_SCALE), context.operand(_R))
    rows = broadcast_to(context, scale, (directions, 1, columns))
    return reshape(context, rows, (directions, columns))


def _weights(context: OpContext, position: int, parameters: int) -> int:
    """ONNX's [D, 4H, ..] of [D, .., 4H]."""
    w, zero = context.operand(position), context.operand(parameters + 1)
    if context.rank_of(w) != 3:
        raise OpTypeError("weights of rank 3", context.type_of(w))
    difference = centred(context, w, _along(context, zero, w), "f32")
    scale = _along(context, context.operand(parameters), w)
    return transpose(context, context.add("mul", difference, scale), (0, 2, 1))


def _along(context: OpContext, parameter: int, w: int) -> int:
    """[D] or [D, 4H] in a shape that broadcasts to w's."""
    if context.rank_of(parameter) != 2:
        return along(context, parameter, w, 0)
    directions, columns = context.shape_of(parameter)
    return reshape(context, parameter, (directions, 1, columns))


OPS = (
    OnnxOp(
        "DynamicQuantizeLSTM",
        _translate,
        signature="X W R B? sequence_lens? initial_h? initial_c? P? W_scale W_zero_point R_scale "
        "R_zero_point -> Y? Y_h? Y_c?; activation_alpha:floats activation_beta:floats "
        "activations:strings clip:float direction:string hidden_size:int input_forget:int",
    ),
)
