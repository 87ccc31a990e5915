"""ONNX ArgMin: index of the least element along an axis.

In: a tensor. Out: core ``argmin``. Not done here: bool tensors (ONNX has none here).
"""

from __future__ import annotations

from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.reductions import arg_extreme

OP = OnnxOp("ArgMin", arg_extreme("argmin"))
