"""ONNX Ceil: rounds up, elementwise.

In: the node's operands. Out: core ``ceil``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Ceil", direct("ceil"))
