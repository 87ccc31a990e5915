"""ONNX Sqrt: square root, elementwise.

In: the node's operands. Out: core ``sqrt``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Sqrt", direct("sqrt"))
