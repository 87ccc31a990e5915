"""ONNX Scatter (opset 9 and 10): what is called ScatterElements since opset 11.

In: a tensor, indices and updates of one shape. Out: core ``scatter_elements``. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.ops.scatter_elements import OP as SCATTER_ELEMENTS

OP = OnnxOp("Scatter", SCATTER_ELEMENTS.translate)
