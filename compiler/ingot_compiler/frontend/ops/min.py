"""ONNX Min: the least of all operands, elementwise with broadcasting; NaN propagates.

In: the node's operands. Out: a chain of core ``min``. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import chained
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Min", chained("min"))
