"""ONNX Or: logical or, elementwise with broadcasting.

In: the node's operands. Out: core ``logical_or``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Or", direct("logical_or"))
