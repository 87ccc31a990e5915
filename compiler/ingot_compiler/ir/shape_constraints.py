"""What an op's type rule takes for granted of the sizes of its operands, as data.

In: sizes. Out: ``ShapeConstraint``s, and what each asks of a call (``requirements``). Not done
here: making them (``make_shape_constraints``, which refuses those that numbers contradict),
unification of sizes (the frontend), the check in ``main`` (lowering).

The frontend gives sizes that must be equal one spelling, behind a ``reshape`` or ``broadcast_to``
that checks it. What the types still leave open is checked when ``main`` begins, so that no kernel
leaves its buffers.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.dims import Dim, choices
from ingot_compiler.ir.message import Text, joined, message
from ingot_runtime.lazy_dataclass import dataclass

Shape = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Size:
    """The size of one axis of an operand, which the frontend may rewrite to an equal one."""

    dim: Dim
    operand: int
    axis: int


@dataclass(frozen=True, slots=True)
class EqualSizes:
    """All of ``sizes`` are equal. ``what`` they are, in the plural: "batch sizes"."""

    sizes: tuple[Size | Dim, ...]
    what: str

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The sizes without their places."""
        return tuple(size.dim if isinstance(size, Size) else size for size in self.sizes)

    @property
    def common(self) -> Dim:
        """The one size that all have: a number if there is one, else the first."""
        return next((dim for dim in self.dims if isinstance(dim, int)), self.dims[0])


@dataclass(frozen=True, slots=True)
class BroadcastSizes:
    """Each of ``shapes`` broadcasts to ``target``: aligned at the last axis, every size is 1 or the
    target's.

    ``operands``: whose leading axes the shapes are, if ``target`` is what they broadcast to
    together.
    """

    shapes: tuple[Shape, ...]
    target: Shape
    operands: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SizeBound:
    """``excess`` is 0 in every valid call; ``what`` is said when it is not."""

    excess: Dim
    what: Text


ShapeConstraint = EqualSizes | BroadcastSizes | SizeBound


def requirements(constraint: ShapeConstraint) -> Iterator[tuple[Dim, Text]]:
    """(an expression that must be 0 at run time, what is said when it is not) of what the types
    leave open."""
    for excess, what in _excesses(constraint):
        if excess != 0:
            yield excess, what


def _others(target: Dim, size: Dim) -> Text:
    return joined(" and ", (other for other in choices("broadcast", target) if other != size))


def _excesses(constraint: ShapeConstraint) -> Iterator[tuple[Dim, Text]]:
    if isinstance(constraint, SizeBound):
        yield constraint.excess, constraint.what
    elif isinstance(constraint, EqualSizes):
        first, *others = constraint.dims
        for other in others:
            yield first - other, message(constraint.what, " differ: ", first, " and ", other)
    else:
        for shape in constraint.shapes:
            for size, target in zip(
                shape, constraint.target[len(constraint.target) - len(shape) :], strict=True
            ):
                if size not in (1, target):
                    yield (
                        (size - 1) * (size - target),
                        message(size, " does not broadcast to ", _others(target, size)),
                    )
