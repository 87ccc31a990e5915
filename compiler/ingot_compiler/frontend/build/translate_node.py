"""One node, by its translation, or by the function body that ONNX gives for it.

In: a context. Out: value ids of its results. Not done here: the loop over nodes (``infer_types``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.expand_function import expand_function
from ingot_compiler.frontend.build.inline_op import inline
from ingot_compiler.frontend.build.values import Strings
from ingot_compiler.frontend.families.strings.moves import OWN, moved
from ingot_compiler.frontend.model.old_forms import in_form_of_opset_7
from ingot_compiler.frontend.model.op_schemas import newest_opset
from ingot_compiler.frontend.op_table import OPS


def translate_node(context: OpContext) -> Sequence[int]:
    """Translate a node; what ``Translate`` functions raise, and Unsupported when ONNX gives no body
    either."""
    context = in_form_of_opset_7(context)
    key = context.domain, context.op
    custom_op = context.translation.custom_ops.get(key)
    if custom_op is not None:
        return inline(context, custom_op)
    op = OPS.get(key)
    if op is None and not newest_opset(context.domain):
        raise Unsupported("no translation for an op of this domain")
    if op is None or not op.applies(context):
        return expand_function(context, translate_node)
    if context.op not in OWN and _has_strings(context):
        return moved(context, op.translate)
    return op.translate(context)


def _has_strings(context: OpContext) -> bool:
    values = context.translation.values
    return any(isinstance(values.get(operand), Strings) for operand in context.given())
