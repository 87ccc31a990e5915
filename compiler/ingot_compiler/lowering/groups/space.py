"""Iteration spaces: which loop variables enumerate the axes of a logical tensor.

In: runs of axes, each enumerated by one flat variable. Out: buffer offsets and axis indices as
``Dim``. Not done here: the loops themselves (``kinds``).
"""

from __future__ import annotations

from itertools import chain

from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.sizes.mixed_radix import recombined
from ingot_compiler.lowering.groups.fused import View
from ingot_compiler.lowering.groups.views import (
    Shape,
    broadcast_view,
    flat_index,
    flat_offset,
    stretch_factor,
)
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """``variable`` counts the elements of ``axes`` in row-major order of that list."""

    axes: tuple[int, ...]
    variable: Dim


@dataclass(frozen=True, slots=True)
class Space:
    """A point of a tensor of ``shape``; every axis is in exactly one run (axes of size 1 may be in
    none)."""

    shape: Shape
    runs: tuple[Run, ...]

    def offset(self, view: View) -> Dim:
        """Element offset of the point in a view of ``shape``."""
        total = view.offset
        for run in self.runs:
            extents = tuple(self.shape[axis] for axis in run.axes)
            strides = [view.strides[axis] for axis in run.axes]
            total = dim_add(total, flat_offset(run.variable, extents, strides))
        return recombined(total)

    def index(self, axis: int) -> Dim:
        """The point's index along one axis."""
        for run in self.runs:
            if axis in run.axes:
                extents = tuple(self.shape[member] for member in run.axes)
                return flat_index(run.variable, extents, run.axes.index(axis))
        return 0

    def indices(self) -> tuple[Dim, ...]:
        """The point's index along every axis."""
        return tuple(self.index(axis) for axis in range(len(self.shape)))

    def offset_of(self, view: View, shape: Shape) -> Dim:
        """Offset in a view of a smaller ``shape`` that is broadcast to this one."""
        return self.offset(broadcast_view(view, shape, self.shape))

    def split(self, axis: int, shape: Shape) -> Space:
        """The point in a tensor of ``shape``, which has several axes in the place of one."""
        more = len(shape) - len(self.shape)

        def renumbered(run: Run) -> Run:
            places = (
                range(axis, axis + more + 1) if each == axis else (each + more * (each > axis),)
                for each in run.axes
            )
            return Run(tuple(chain.from_iterable(places)), run.variable)

        return Space(shape, tuple(map(renumbered, self.runs)))

    def narrowed(self, shape: Shape) -> Space:
        """The point of a tensor of ``shape`` that broadcasts to this one."""
        if shape == self.shape:
            return self
        missing = len(self.shape) - len(shape)
        chosen = [
            dim_mul(self.index(axis + missing), stretch_factor(size, self.shape[axis + missing]))
            for axis, size in enumerate(shape)
        ]
        return point(shape, tuple(chosen))


def point(shape: Shape, indices: tuple[Dim, ...]) -> Space:
    """The space with one run per axis."""
    return Space(shape, tuple(Run((axis,), index) for axis, index in enumerate(indices)))


def ceil_div(left: Dim, right: int) -> Dim:
    """Left / right, rounded up."""
    return dim_add(left, right - 1) // right


def round_up(left: Dim, right: int) -> Dim:
    """The least multiple of right that is >= left."""
    return dim_mul(ceil_div(left, right), right)
