"""ONNX Not: logical not, elementwise.

In: the node's operands. Out: core ``logical_not``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Not", direct("logical_not"))
