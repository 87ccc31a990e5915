"""ONNX ReduceMin: least element along axes (an operand since opset 18).

In: a tensor, perhaps axes. Out: core ``reduce``. Not done here: axes that come at run time
(``reductions``).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.reductions import reduction

OP = OnnxOp("ReduceMin", reduction("min", 18))
