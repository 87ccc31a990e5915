"""ONNX Atan: arc tangent, elementwise.

In: the node's operands. Out: core ``atan``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Atan", direct("atan"))
