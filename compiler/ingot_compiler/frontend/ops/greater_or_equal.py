"""ONNX GreaterOrEqual: a >= b, elementwise with broadcasting.

In: the node's operands. Out: core ``less_equal`` with swapped operands. Not done here: types
(``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import swapped
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("GreaterOrEqual", swapped("less_equal"))
