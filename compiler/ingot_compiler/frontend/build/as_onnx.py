"""Ops of other domains by way of ONNX's own ops.

In: the context of a node of any domain, operands, attributes. Out: value ids of what ONNX's op of a
name gives. Not done here: which of them (``ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.translate_node import translate_node
from ingot_compiler.frontend.model.imported import ImportedAttribute
from ingot_compiler.frontend.model.onnx_node import RegionBody

OPSET = 23
"""The opset of the nodes that are made, unless one is in an older form."""


def results_of(
    context: OpContext,
    op: str,
    operands: Sequence[int | None],
    attributes: dict[str, ImportedAttribute | RegionBody] | None = None,
    *,
    opset: int = OPSET,
    wanted: Sequence[bool] = (True,),
) -> Sequence[int]:
    """All results of ONNX's op, those that are ``wanted``."""
    node = replace(
        context,
        op=op,
        domain="",
        opset=opset,
        operands=tuple(operands),
        attributes=attributes or {},
        wanted=tuple(wanted),
    )
    return translate_node(node)


def as_onnx(
    context: OpContext,
    op: str,
    *operands: int | None,
    opset: int = OPSET,
    **attributes: ImportedAttribute,
) -> int:
    """The one result of ONNX's op."""
    return results_of(context, op, operands, {**attributes}, opset=opset)[0]
