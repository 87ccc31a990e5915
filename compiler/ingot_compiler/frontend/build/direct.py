"""Translations of ONNX ops that are one core op, or a chain of one.

In: names of core ops. Out: ``Translate`` functions. Not done here: anything with attributes
(``ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import Translate
from ingot_compiler.ir.op_names import OpName


def direct(op: OpName) -> Translate:
    """All operands to the core op ``op`` without attributes."""

    def translate(context: OpContext) -> Sequence[int]:
        return (context.add(op, *context.given()),)

    return translate


def swapped(op: OpName) -> Translate:
    """``a op b`` as ``b op a``: greater as less."""

    def translate(context: OpContext) -> Sequence[int]:
        return (context.add(op, context.operand(1), context.operand(0)),)

    return translate


def chained(op: OpName) -> Translate:
    """Any number of operands, combined from the left."""

    def translate(context: OpContext) -> Sequence[int]:
        return (reduce(lambda left, right: context.add(op, left, right), context.given()),)

    return translate
