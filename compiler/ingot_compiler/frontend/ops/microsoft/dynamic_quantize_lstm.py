"""ONNX Runtime DynamicQuantizeLSTM: an LSTM with quantised weights, whose input is quantised by its
own range.

In: X, W[D, I, 4H], R[D, H, 4H], the optional operands of LSTM, scale and zero point of W and of R
for each direction or for each column. Out: what ONNX's LSTM gives. Not done here: the layer
(``recurrent_layers``), types.

The product of X is one of integers. That of the state, which ONNX Runtime quantises in each step
too, is computed in floats: nearer to the model that was quantised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.compose import reshape, transpose
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.dynamic_quantize_linear import OP as DYNAMIC_QUANTIZE_LINEAR
from ingot_compiler.frontend.ops.lstm import OP as LSTM
from ingot_compiler.frontend.q_linear import floats
from ingot_compiler.frontend.quantization import along, centred
from ingot_compiler.ir.op_type_error import OpTypeError

_OPERANDS = 8  # of LSTM


def _translate(context: OpContext) -> Sequence[int]:
    node = replace(context, operands=(context.operand(0),))
    x, scale, zero = DYNAMIC_QUANTIZE_LINEAR.translate(node)
    w, r = _weights(context, 1, 8), _weights(context, 2, 10)
    operands = (floats(context, x, scale, zero), w, r, *context.operands[3:_OPERANDS])
    return LSTM.translate(replace(context, operands=operands))


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


OP = OnnxOp(
    "DynamicQuantizeLSTM",
    _translate,
    signature="X W R B? sequence_lens? initial_h? initial_c? P? W_scale W_zero_point R_scale "
    "R_zero_point -> Y? Y_h? Y_c?; activation_alpha:floats activation_beta:floats "
    "activations:strings clip:float direction:string hidden_size:int input_forget:int",
)
