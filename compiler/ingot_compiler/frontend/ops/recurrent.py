"""ONNX's recurrent layers.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.recurrent.recurrent_layers import recurrent_layer


def _gru(context: OpContext) -> Sequence[int]:
    """A recurrent layer, one or two directions.

    In: X, W, R and the optional operands. Out: a product and core ``recurrent``.
    """
    return recurrent_layer(context, "gru")


def _lstm(context: OpContext) -> Sequence[int]:
    """A recurrent layer, one or two directions.

    In: X, W, R and the optional operands. Out: a product and core ``recurrent``.
    """
    return recurrent_layer(context, "lstm")


def _rnn(context: OpContext) -> Sequence[int]:
    """A recurrent layer, one or two directions.

    In: X, W, R and the optional operands. Out: a product and core ``recurrent``.
    """
    return recurrent_layer(context, "rnn")


OPS = (
    OnnxOp("GRU", _gru),
    OnnxOp("LSTM", _lstm),
    OnnxOp("RNN", _rnn),
)
