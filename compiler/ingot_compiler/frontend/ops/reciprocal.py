"""ONNX Reciprocal: 1 / x, elementwise.

In: the node's operands. Out: core ``reciprocal``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Reciprocal", direct("reciprocal"))
