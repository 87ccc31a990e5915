"""What all parts of one unit of a convolution by Winograd's algorithm share.

In: a ``Winograd`` and the emission context of its kernel. Out: ``WinogradUnit``. Not done here: the
parts (``winograd_input``, ``winograd_products``, ``winograd_output``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_min,
    dim_mod,
    dim_mul,
    dim_product,
    symbol,
)
from ingot_compiler.kernels.winograd_tiles import (
    WinogradScratch,
    WinogradShape,
    holds_sums,
    scratch_of,
    shape_of,
    tile_count,
    tile_counts,
)
from ingot_compiler.lowering.loops.program import Winograd
from ingot_runtime.lazy_dataclass import dataclass

_TILE = "tile number"  # no other name has a space


@dataclass(frozen=True, slots=True)
class WinogradUnit:
    """``start`` is its first tile, ``count`` how many there are; ``values`` and ``products`` are
    their places in scratch."""

    context: EmitContext
    statement: Winograd
    shape: WinogradShape
    scratch: WinogradScratch
    start: LlvmValue
    count: LlvmValue
    values: LlvmValue
    products: LlvmValue

    @property
    def writer(self) -> Writer:
        """The function under construction."""
        return self.context.writer

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.context.target.f32_lanes

    @property
    def width(self) -> int:
        """Columns of the unit."""
        return self.statement.registers.vectors * self.lanes

    @property
    def depth(self) -> int:
        """How many products are summed for a frequency."""
        return self.shape.depth(self.statement.channels)

    @property
    def holds_sums(self) -> bool:
        """Whether a register tile goes through the whole depth at once."""
        return holds_sums(self.depth, self.group_columns, self.shape, self.context.target)

    @property
    def group_columns(self) -> int:
        """Columns of a group."""
        return self.statement.columns // self.statement.groups

    def each_tile(self, body: Callable[[LlvmValue], None]) -> None:
        """Run ``body`` with each tile's number in the block, its image and first result bound."""

        def turn(number: LlvmValue) -> None:
            with self.at_tile(number):
                body(number)

        for_each(self.writer, ZERO, self.count, 1, turn)

    @contextmanager
    def at_tile(self, number: LlvmValue) -> Generator[None]:
        """Bind the image and the first result of the tile that is so many behind the unit's first."""
        with self.context.scope():
            self.context.bind({_TILE: self.writer.add(self.start, number)})
            self._bind_place()
            yield

    def _bind_place(self) -> None:
        """Bind the image of a tile, and its first row and column."""
        s = self.statement
        down, across = tile_counts(s.extents, self.shape)
        number, per_image = symbol(_TILE), dim_product((down, across))
        is_one = s.images == 1
        image: Dim = 0 if is_one else dim_floordiv(number, per_image)
        within = number if is_one else dim_mod(number, per_image)
        y = dim_mul(dim_floordiv(within, across), self.shape.tile[0])
        x = dim_mul(dim_mod(within, across), self.shape.tile[1])
        places = {s.image: image, s.y: y, s.x: x}
        found = {name: emit_index(self.context, place) for name, place in places.items()}
        self.context.bind(found)

    def is_whole(self, axis: int) -> bool:
        """Whether all tiles lie wholly in the image along an axis."""
        size = self.statement.extents[axis]
        return isinstance(size, int) and size % self.shape.tile[axis] == 0

    def row(self, axis: int, number: int, beyond: int = 0) -> Dim:
        """The position ``number`` behind a tile's first one, at most the last of the axis or
        ``beyond`` further."""
        name = (self.statement.y, self.statement.x)[axis]
        here = dim_add(symbol(name), number)
        is_inside = self.is_whole(axis) and number < self.shape.tile[axis] + beyond
        if number == 0 or is_inside:
            return here
        return dim_min(here, dim_add(self.statement.extents[axis], beyond - 1))


def winograd_unit(context: EmitContext, statement: Winograd) -> WinogradUnit:
    """Emit where the unit begins and where its parts of scratch are."""
    w, shape = context.writer, shape_of(statement)
    width = statement.registers.vectors * context.target.f32_lanes
    scratch = scratch_of(statement.tile_block, shape.depth(statement.channels), width, shape)
    tiles = tile_count(statement.images, statement.extents, shape)
    left = dim_min(statement.tile_block, tiles - statement.tile_start)
    return WinogradUnit(
        context,
        statement,
        shape,
        scratch,
        emit_index(context, statement.tile_start),
        emit_index(context, left),
        context.scratch,
        w.offset(context.scratch, i64(scratch.products_offset), "float"),
    )
