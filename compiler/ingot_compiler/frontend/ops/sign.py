"""ONNX Sign: -1, 0 or 1, elementwise.

In: the node's operands. Out: core ``sign``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Sign", direct("sign"))
