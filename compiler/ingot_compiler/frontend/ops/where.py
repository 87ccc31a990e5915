"""ONNX Where: x where the condition holds, else y.

In: a bool tensor and two tensors. Out: core ``select``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OP = OnnxOp("Where", direct("select"))
