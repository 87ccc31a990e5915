"""ONNX BitwiseOr: bitwise or, elementwise with broadcasting.

In: the node's operands. Out: core ``bitwise_or``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("BitwiseOr", direct("bitwise_or"))
