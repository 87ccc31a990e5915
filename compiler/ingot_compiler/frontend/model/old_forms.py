"""Nodes of opsets 1 to 6 in the form of opset 7, the oldest that translations know.

In: the context of a node, whose operands have types. Out: the same node as opset 7 would say it,
perhaps with other operands. Not done here: newer opsets (each op's translation knows its versions).

What opset 7 took away: a broadcast that an attribute asks for, along inner axes, too; the slopes of
a PRelu along axis 1; attributes that became operands or changed their kind; hints for memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onnx import TensorProto

from ingot_compiler.frontend.build.compose import cast, reshape
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.model.imported import ImportedAttribute
from ingot_compiler.frontend.model.onnx_node import OPSET_MIN, RegionBody
from ingot_compiler.ir.op_type_error import OpTypeError, require

_GONE = frozenset(("consumed_inputs", "broadcast", "is_test", "output_sequence"))
"""Attributes without a meaning for a single call of a model that is trained."""


def in_form_of_opset_7(context: OpContext) -> OpContext:
    """Return the node as opset 7 says it; a node of a later opset, or of another domain, as it is."""
    if context.domain or context.opset >= OPSET_MIN:
        return context
    changed = _FORMS.get(context.op, _same)(context)
    left = {name: value for name, value in changed.attributes.items() if name not in _GONE}
    return replace(changed, attributes=left, opset=OPSET_MIN)


def _same(context: OpContext) -> OpContext:
    return context


def _with(
    context: OpContext, *operands: int, **attributes: ImportedAttribute | RegionBody | None
) -> OpContext:
    """The node with other operands, if any are given, and other attributes; None takes one away."""
    merged = {**context.attributes, **attributes}
    kept = {name: value for name, value in merged.items() if value is not None}
    return replace(context, operands=operands or context.operands, attributes=kept)


def _binary(context: OpContext) -> OpContext:
    """``axis`` says with which axis of the first operand the second one begins."""
    left, right = context.operand(0), context.operand(1)
    if "axis" not in context.attributes or not context.bool_attribute("broadcast"):
        return _with(context, axis=None)
    axis = context.axis_attribute(0, context.rank_of(left))
    behind = context.rank_of(left) - axis - context.rank_of(right)
    require(behind >= 0, f"a second operand that begins at axis {axis}", context.type_of(right))
    spread = reshape(context, right, (*context.shape_of(right), *[1] * behind))
    return _with(context, left, spread, axis=None)


def _p_relu(context: OpContext) -> OpContext:
    """One slope for all, or one for each channel."""
    x, slopes = context.operand(0), context.operand(1)
    if context.rank_of(slopes) != 1 or context.shape_of(slopes) == (1,):
        return context
    behind = max(context.rank_of(x) - 2, 0)
    return _with(context, x, reshape(context, slopes, (*context.shape_of(slopes), *[1] * behind)))


def _batch_normalization(context: OpContext) -> OpContext:
    """Without ``is_test``, the statistics are those of the batch where they are results."""
    if not context.bool_attribute("is_test") and any(context.wanted[1:]):
        raise Unsupported("training mode")
    return context


def _cast(context: OpContext) -> OpContext:
    to = context.attributes.get("to")
    if not isinstance(to, str):
        return context
    numbers = dict(TensorProto.DataType.items())
    if to.upper() not in numbers:
        raise OpTypeError("attribute to to be the name of an element type", repr(to))
    return _with(context, to=numbers[to.upper()])


def _concat(context: OpContext) -> OpContext:
    return _with(context, axis=context.int_attribute("axis", 1))


def _reshape(context: OpContext) -> OpContext:
    shape = context.ints_attribute("shape")
    if shape is None:
        return context
    return _with(context, context.operand(0), context.integers(shape), shape=None)


def _split(context: OpContext) -> OpContext:
    sizes = context.optional(1)
    if sizes is None:
        return context
    return _with(context, context.operand(0), split=_known(context, sizes))


def _pad(context: OpContext) -> OpContext:
    old = context.ints_attribute("paddings")
    return context if old is None else _with(context, pads=old, paddings=None)


def _tile(context: OpContext) -> OpContext:
    """How often, and along which axis."""
    if context.optional(2) is None:
        return context
    x, (tiles,), (axis,) = (
        context.operand(0),
        *(_known(context, context.operand(position)) for position in (1, 2)),
    )
    repeats = [1] * context.rank_of(x)
    require(0 <= axis < len(repeats), f"an axis below {len(repeats)}", axis)
    repeats[axis] = tiles
    return _with(context, x, context.integers(repeats))


def _upsample(context: OpContext) -> OpContext:
    if "scales" in context.attributes:
        return context
    names = ("height_scale", "width_scale")
    scales = (1.0, 1.0, *(context.float_attribute(name, 1.0) for name in names))
    return _with(context, scales=scales, height_scale=None, width_scale=None)


def _lp_pool(context: OpContext) -> OpContext:
    power = context.attributes.get("p", 2)
    if not isinstance(power, float):
        return context
    if not power.is_integer():
        raise Unsupported(f"a norm of order {power}")
    return _with(context, p=int(power))


def _known(context: OpContext, operand: int) -> tuple[int, ...]:
    """The elements of an operand that later became an attribute."""
    ints = context.known_ints(cast(context, operand, "i64"))
    if ints is None:
        raise Unsupported("sizes that are known at run time only")
    return ints


_BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Greater", "Less", "Equal")
_FORMS: dict[str, Callable[[OpContext], OpContext]] = {
    **dict.fromkeys(_BINARY, _binary), "PRelu": _p_relu, "Cast": _cast, "Concat": _concat,
    "BatchNormalization": _batch_normalization, "Reshape": _reshape, "Split": _split, "Pad": _pad,
    "Tile": _tile, "Upsample": _upsample, "LpPool": _lp_pool, "GlobalLpPool": _lp_pool,
}  # fmt: skip
