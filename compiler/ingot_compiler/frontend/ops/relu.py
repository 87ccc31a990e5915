"""ONNX Relu: max(x, 0), elementwise.

In: the node's operands. Out: core ``relu``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Relu", direct("relu"))
