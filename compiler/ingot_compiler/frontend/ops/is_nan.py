"""ONNX IsNaN: whether x is NaN, elementwise.

In: the node's operands. Out: core ``isnan``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("IsNaN", direct("isnan"))
