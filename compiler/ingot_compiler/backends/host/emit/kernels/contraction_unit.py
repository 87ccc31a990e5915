"""What all register tiles of one contraction share.

In: a ``Contraction`` and the emission context of its kernel. Out: ``Unit``, ``Panel``. Not done
here: the panels (``contraction``) and their rows (``contraction_rows``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.accumulators import Axis, Factors, merged_dims
from ingot_compiler.backends.host.llvm_value import LlvmValue
from ingot_compiler.backends.host.tiles import lanes_of
from ingot_compiler.ir.dims import Dim, coefficient, substitute
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.loops import Contraction


@dataclass(frozen=True, slots=True)
class Unit:
    """What all tiles of one contraction share; ``a_index`` and ``b_index`` are those of the first
    tap and depth."""

    context: EmitContext
    statement: Contraction
    lanes: int
    factors: Factors
    axes: tuple[Axis, ...]
    a_index: Dim
    b_index: Dim

    @property
    def width(self) -> int:
        """Columns of a full panel."""
        return self.statement.tile.vectors * self.lanes


@dataclass(frozen=True, slots=True)
class Panel:
    """Columns from ``column``: ``vectors`` vectors, the last one under ``mask`` (None: all lanes);
    ``b`` points to them."""

    column: LlvmValue
    vectors: int
    mask: LlvmValue | None
    b: LlvmValue


def contraction_unit(context: EmitContext, statement: Contraction) -> Unit:
    """Emit the extents and steps of the sum's loops.

    Raises:
        InternalError: an index is not linear, or what should be pairs does not lie so.
    """
    loops = (*statement.taps, (statement.depth, statement.depth_extent))
    factors = _factors(context, statement)
    summed = loops[:-1] if factors.pairs else loops
    axes = tuple(
        Axis(*(part if isinstance(part, int) else emit_index(context, part) for part in axis))
        for axis in merged_dims(summed, statement.a_index, statement.b_index)
    )
    zeros: dict[str, Dim] = {name: 0 for name, _ in loops}
    a_index, b_index = (
        substitute(index, zeros) for index in (statement.a_index, statement.b_index)
    )
    lanes = lanes_of(statement.dtype, context.target)
    return Unit(context, statement, lanes, factors, axes, a_index, b_index)


def _factors(context: EmitContext, statement: Contraction) -> Factors:
    """What A and B hold; pairs are seen by the factor of the column."""
    a, b = context.dtypes[statement.a], context.dtypes[statement.b]
    pairs = coefficient(statement.b_index, statement.column) == 2
    beside = [
        coefficient(index, statement.depth) for index in (statement.a_index, statement.b_index)
    ]
    if pairs and not (
        a == b == "i16"
        and (statement.dtype, statement.depth_extent, beside, statement.b_padded)
        == ("i32", 2, [1, 1], True)
    ):
        raise InternalError(
            "pairs of a contraction do not lie beside each other", why=f"A {a} {beside}, B {b}"
        )
    return Factors(a, b, statement.dtype, pairs)
