"""ONNX Round: rounds to the nearest, half to even, elementwise.

In: the node's operands. Out: core ``round``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Round", direct("round"))
