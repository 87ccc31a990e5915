"""ONNX BitwiseNot: all bits inverted, elementwise.

In: the node's operands. Out: core ``bitwise_not``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("BitwiseNot", direct("bitwise_not"))
