"""ONNX Mul: a * b, elementwise with broadcasting.

In: the node's operands. Out: core ``mul``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Mul", direct("mul"))
