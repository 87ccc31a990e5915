"""What an ONNX op is to the frontend: a name and a translation into core ops.

In: nothing. Out: ``OnnxOp``. Not done here: the table of ops (``op_table``), types of core
ops (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_runtime.lazy_dataclass import dataclass

Translate = Callable[[OpContext], Sequence[int]]
"""Builds core ops for one node; returns value ids of its results; ABSENT, or too few, for optional
ones not made."""


def _always(_: OpContext) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class OnnxOp:
    """One ONNX op. ``translate`` covers every opset version of the op from ``since`` on (7 is the
    oldest: nodes of older ones are brought into its form before).

    Where ``applies`` says no, ONNX's own function body is translated in place of the op.

    ``signature``: for an op whose schema the onnx package does not have, its operands, results and
    attributes, as in ``"A B C? more* -> Y; alpha:float heads!:int axes:ints"``: ``?`` marks what is
    optional, ``*`` what repeats, ``!`` an attribute that must be given.
    """

    name: str
    translate: Translate
    since: int = 1
    applies: Callable[[OpContext], bool] = _always
    signature: str = ""
