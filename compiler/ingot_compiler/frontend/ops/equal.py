"""ONNX Equal: a == b, elementwise with broadcasting.

In: the node's operands. Out: core ``equal``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.direct import direct
from ingot_compiler.frontend.onnx_op import OnnxOp

OP = OnnxOp("Equal", direct("equal"))
