"""ONNX RNN: a recurrent layer, one or two directions.

In: X, W, R and the optional operands. Out: a product and core ``recurrent``. Not done here: all of
it (``recurrent_layers``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.recurrent.recurrent_layers import recurrent_layer


def _translate(context: OpContext) -> Sequence[int]:
    return recurrent_layer(context, "rnn")


OP = OnnxOp("RNN", _translate)
