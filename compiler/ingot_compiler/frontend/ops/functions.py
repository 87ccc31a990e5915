"""ONNX's elementwise functions of floats that are one core op.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from ingot_compiler.frontend.build.direct import direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp

OPS = (
    OnnxOp("Acos", direct("acos")),
    OnnxOp("Acosh", direct("acosh")),
    OnnxOp("Asin", direct("asin")),
    OnnxOp("Asinh", direct("asinh")),
    OnnxOp("Atan", direct("atan")),
    OnnxOp("Atanh", direct("atanh")),
    OnnxOp("Cos", direct("cos")),
    OnnxOp("Cosh", direct("cosh")),
    OnnxOp("Erf", direct("erf")),
    OnnxOp("Exp", direct("exp")),
    OnnxOp("Log", direct("log")),
    OnnxOp("Sin", direct("sin")),
    OnnxOp("Sinh", direct("sinh")),
    OnnxOp("Tan", direct("tan")),
    OnnxOp("Tanh", direct("tanh")),
)
