"""ONNX Div: a / b; integers truncate towards 0, elementwise with broadcasting.

In: the node's operands. Out: core ``div``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Div", direct("div"))
