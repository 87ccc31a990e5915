"""ONNX Cosh: hyperbolic cosine, elementwise.

In: the node's operands. Out: core ``cosh``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Cosh", direct("cosh"))
