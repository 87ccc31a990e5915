"""ONNX Greater: a > b, elementwise with broadcasting.

In: the node's operands. Out: core ``less`` with swapped operands. Not done here: types
(``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import swapped
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Greater", swapped("less"))
