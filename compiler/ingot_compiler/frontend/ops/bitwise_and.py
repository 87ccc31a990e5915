"""ONNX BitwiseAnd: bitwise and, elementwise with broadcasting.

In: the node's operands. Out: core ``bitwise_and``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("BitwiseAnd", direct("bitwise_and"))
