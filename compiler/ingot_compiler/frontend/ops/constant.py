"""ONNX Constant: a tensor that is written in the node.

In: an attribute. Out: core ``literal`` or ``constant``, or strings. Not done here: sparse tensors
(``sparse_tensors``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.known_values import as_known_values
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.sequences import add_value
from ingot_compiler.frontend.families.strings.pool import written_strings
from ingot_compiler.ir.graph import ConstantSource


def _translate(context: OpContext) -> Sequence[int]:
    name, value = next(iter(sorted(context.attributes.items())), ("", None))
    if isinstance(value, ConstantSource):
        return (context.written(value),)
    if isinstance(value, float):
        return (context.scalar("f32", value),)
    if isinstance(value, int):
        return (context.known("i64", as_known_values([value], ())),)
    if name == "value_ints":
        return (context.integers(context.ints_attribute(name) or ()),)
    if name == "value_floats" and isinstance(value, tuple):
        return (context.float_vector("f32", [float(item) for item in value]),)
    if isinstance(value, str):
        return (add_value(context, written_strings(context, [value], ())),)
    if isinstance(value, tuple):
        texts = [str(text) for text in value]
        return (add_value(context, written_strings(context, texts, (len(texts),))),)
    raise Unsupported("a constant without a value")


OP = OnnxOp("Constant", _translate)
