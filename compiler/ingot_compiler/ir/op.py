"""What a core op is: a name, a type rule and a numpy reference; its lowering lives in
``lowering/ops``.

In: nothing. Out: ``CoreOp``. Not done here: the list of ops (``ops/__init__.py``), lowering, code
generation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.attributes import Attributes
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.shape_constraints import ShapeConstraint
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Inferred:
    """What a type rule says of operands that fit: the types of the results, and what it takes for
    granted of sizes."""

    results: tuple[TensorType, ...]
    constraints: tuple[ShapeConstraint, ...] = ()


Array = npt.NDArray[Any]
TypeRule = Callable[[Sequence[TensorType], Attributes], Inferred]
RegionRule = Callable[[Sequence[TensorType], Attributes, Sequence[Graph]], tuple[TensorType, ...]]
Reference = Callable[[Sequence[Array], Attributes], tuple[Array, ...]]


@dataclass(frozen=True, slots=True)
class CoreOp:
    """One core op.

    ``infer(operand types, attributes)`` returns the result types and what they take for granted of
    sizes, or raises ``OpTypeError`` (expected, got).
    ``reference(operands, attributes)`` is the oracle: numpy in, numpy out; symbolic attributes
    arrive as integers. ``infer_regions(operand types, attributes, regions)`` is the rule of an op
    of control flow, which ``interpret`` runs.
    """

    name: OpName
    infer: TypeRule
    reference: Reference
    traits: Trait = Trait.NONE
    infer_regions: RegionRule | None = None


def bf16_to_f32(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Widen bf16 bit patterns (uint16, any shape) exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
