"""ONNX Softplus: log(1 + e^x), elementwise.

In: the node's operands. Out: core ``softplus``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Softplus", direct("softplus"))
