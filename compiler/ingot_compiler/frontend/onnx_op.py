"""What an ONNX op is to the frontend: a name and a translation into core ops.

In: nothing. Out: ``OnnxOp``. Not done here: the list of ops (``ops/__init__.py``), types of core
ops (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ingot_compiler.frontend.context import OpContext

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
    """

    name: str
    translate: Translate
    since: int = 1
    applies: Callable[[OpContext], bool] = _always
