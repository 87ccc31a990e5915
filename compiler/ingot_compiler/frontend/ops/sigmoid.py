"""ONNX Sigmoid: 1 / (1 + e^-x), elementwise.

In: the node's operands. Out: core ``sigmoid``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Sigmoid", direct("sigmoid"))
