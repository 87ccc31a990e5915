"""ONNX BitwiseXor: bitwise exclusive or, elementwise with broadcasting.

In: the node's operands. Out: core ``bitwise_xor``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("BitwiseXor", direct("bitwise_xor"))
