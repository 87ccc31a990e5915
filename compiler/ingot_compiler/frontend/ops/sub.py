"""ONNX Sub: a - b, elementwise with broadcasting.

In: the node's operands. Out: core ``sub``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Sub", direct("sub"))
