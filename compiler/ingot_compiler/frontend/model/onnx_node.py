"""What one ONNX node says: its operands by position, its attributes by name and kind.

In: an imported node, value ids of its operands. Out: ``OnnxNode``, ``OPSET_MIN``. Not done here: the graph that it
becomes part of (``context``), what an attribute means (``ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ingot_compiler.frontend.model.imported import ImportedAttribute
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import DType
from ingot_runtime.lazy_dataclass import dataclass

OPSET_MIN = 7
"""The oldest opset in whose form a node can be translated; ``old_forms`` brings older nodes there."""


@dataclass(frozen=True, slots=True)
class RegionBody:
    """A graph that is an attribute: ``translate`` puts its nodes into the builder, over value ids
    of its inputs."""

    input_count: int
    output_count: int
    translate: Callable[[Sequence[int]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """One ONNX node. Operand value ids are None where an optional operand is absent.

    ``wanted``: which results somebody may read; ``source``: the node's number; ``mark``: the device
    that the user asks for, or ""; ``declared``: the sizes that the file gives of its first result,
    where it says them.
    """

    op: str
    domain: str
    opset: int
    attributes: dict[str, ImportedAttribute | RegionBody]
    operands: tuple[int | None, ...]
    wanted: tuple[bool, ...]
    source: tuple[int, ...]
    mark: str
    declared: tuple[int | None, ...]

    def optional(self, position: int) -> int | None:
        """Operand ``position``, None when absent."""
        return self.operands[position] if position < len(self.operands) else None

    def operand(self, position: int) -> int:
        """Operand ``position``; OpTypeError when absent."""
        value = self.optional(position)
        if value is None:
            raise OpTypeError(f"operand {position}", "none")
        return value

    def given(self) -> tuple[int, ...]:
        """All operands that are present."""
        return tuple(value for value in self.operands if value is not None)

    def wants(self, position: int) -> bool:
        """Whether result ``position`` has a name."""
        return position < len(self.wanted) and self.wanted[position]

    def int_attribute(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.attributes.get(name, default)
        if isinstance(value, int):
            return value
        raise OpTypeError(f"attribute {name} to be an integer", repr(value))

    def bool_attribute(self, name: str, *, default: bool = False) -> bool:
        """An integer attribute that stands for a truth: whether it is not 0."""
        return bool(self.int_attribute(name, int(default)))

    def axis_attribute(self, default: int, rank: int) -> int:
        """The attribute ``axis``, counted from the front; OpTypeError outside of [-rank, rank)."""
        return counted_axis(self.int_attribute("axis", default), rank)

    def float_attribute(self, name: str, default: float) -> float:
        """A float attribute; a default is the f32 of the operator schemas, as an attribute of the
        file is."""
        value = self.attributes.get(name, rounded_to(default, "f32"))
        if isinstance(value, float):
            return value
        raise OpTypeError(f"attribute {name} to be a float", repr(value))

    def string_attribute(self, name: str, default: str, allowed: Sequence[str] = ()) -> str:
        """A string attribute, one of ``allowed`` when given."""
        value = self.attributes.get(name, default)
        if isinstance(value, str) and (not allowed or value in allowed):
            return value
        raise OpTypeError(
            f"attribute {name} to be {' or '.join(allowed) or 'a string'}", repr(value)
        )

    def ints_attribute(self, name: str) -> tuple[int, ...] | None:
        """A list of integers; None when absent."""
        value = self.attributes.get(name)
        if value is None:
            return None
        ints = [item for item in value if isinstance(item, int)] if isinstance(value, tuple) else []
        if not isinstance(value, tuple) or len(ints) != len(value):
            raise OpTypeError(f"attribute {name} to be a list of integers", repr(value))
        return tuple(ints)

    def ints_or(self, name: str, default: Sequence[int]) -> tuple[int, ...]:
        """A list of integers; ``default`` when absent."""
        given = self.ints_attribute(name)
        return tuple(default) if given is None else given

    def floats_or(self, name: str, default: Sequence[float]) -> tuple[float, ...]:
        """A list of floats; ``default`` when absent."""
        value = self.attributes.get(name, tuple(default))
        floats = (
            [item for item in value if isinstance(item, float)] if isinstance(value, tuple) else []
        )
        if not isinstance(value, tuple) or len(floats) != len(value):
            raise OpTypeError(f"attribute {name} to be a list of floats", repr(value))
        return tuple(floats)

    def body(self, name: str) -> RegionBody:
        """A graph attribute."""
        value = self.attributes.get(name)
        if isinstance(value, RegionBody):
            return value
        raise OpTypeError(f"attribute {name} to be a graph", repr(value))


def counted_axis(axis: int, rank: int) -> int:
    """An axis counted from the front; OpTypeError outside of [-rank, rank)."""
    if not -rank <= axis < rank:
        raise OpTypeError(f"axis in [{-rank}, {rank})", axis)
    return axis + rank if axis < 0 else axis


def counted_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, each named once, ascending."""
    counted = sorted(counted_axis(axis, rank) for axis in axes)
    if len(set(counted)) < len(counted):
        raise OpTypeError("every axis at most once", list(axes))
    return tuple(counted)


def rounded_to(value: float, dtype: DType) -> float:
    """``value`` as f32, unless ``dtype`` is wider."""
    if dtype == "f64":
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))
