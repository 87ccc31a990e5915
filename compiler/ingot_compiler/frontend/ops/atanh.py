"""ONNX Atanh: inverse hyperbolic tangent, elementwise.

In: the node's operands. Out: core ``atanh``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Atanh", direct("atanh"))
