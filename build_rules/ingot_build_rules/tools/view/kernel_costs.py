"""How many operations a kernel computes and how many bytes it touches, counted in its loops.

In: a loop program, the values of its scalars, the sizes of its buffers. Out: ``KernelCosts``. Not
done here: time. Elementwise functions count as one operation each, multiply-adds as two; where a
loop's extent depends on an outer loop, the extent of the first iteration counts for all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from ingot_build_rules.tools.view.evaluate_call import LaunchStep
from ingot_compiler.ir.dims import Dim, evaluate, symbol_set
from ingot_compiler.ir.types import dtype_size_bits
from ingot_compiler.lowering.loops.loop_blocks import PANEL_COLUMNS
from ingot_compiler.lowering.loops.loop_values import Address, Apply, Load, Value
from ingot_compiler.lowering.loops.program import (
    Attention,
    BlockedProduct,
    CallExtern,
    Contraction,
    Depthwise,
    DepthwisePlane,
    Filter,
    For,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Reduce,
    Require,
    Statement,
    Store,
    Transpose,
    Winograd,
)
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KernelCosts:
    """The costs of one launch: operations, and bytes that are read or written at least once."""

    operation_count: int
    touched_bytes: int


def kernel_costs(
    program: LoopProgram, launch: LaunchStep, sizes_bytes: Sequence[int], vector_bits: int
) -> KernelCosts:
    """Count one launch; ``sizes_bytes``: of its buffers, those of the loops first; ``vector_bits``:
    of the target."""
    bindings = dict(zip(program.scalars, launch.scalars, strict=True))
    count = _Count(program, bindings, vector_bits)
    count.statements(program.body, float(launch.extent))
    touched = sum(
        min(size, elements * dtype_size_bits(buffer.dtype) / 8)
        for buffer, elements, size in zip(
            program.buffers, count.elements, sizes_bytes, strict=False
        )
    )
    return KernelCosts(round(count.operations), round(touched))


def _product_share(tile: Contraction, rows: int, columns: int, width: int) -> float:
    """How many of its products a contraction makes: 7 of 8 by Strassen's algorithm, but for the rows
    and columns that fill no tile; ``width``: columns of a tile."""
    if tile.strassen is None:
        return 1.0
    whole = rows // tile.tile.rows * tile.tile.rows * (columns // width * width)
    return 1 - whole / (rows * columns) / 8


def _mean_block(extent: int, block: int) -> float:
    """The mean size of the blocks that cover an extent: the last one may be smaller."""
    return extent / max(1, math.ceil(extent / block))


@dataclass(slots=True)
class _Count:
    """Adds up what statements do; ``trips``: how often each runs."""

    program: LoopProgram
    bindings: Mapping[str, int]
    vector_bits: int
    operations: float = 0.0
    elements: list[float] = field(init=False)  # per buffer: read or written

    def __post_init__(self) -> None:
        self.elements = [0.0] * len(self.program.buffers)

    def size(self, dim: Dim) -> int:
        """Evaluate a dimension; loop variables, and what data decide, count as 0."""
        free = dict.fromkeys(symbol_set(dim) - self.bindings.keys(), 0)
        return max(0, evaluate(dim, {**self.bindings, **free}))

    def statements(self, body: Sequence[Statement], trips: float) -> None:
        """Add statements that run ``trips`` times each."""
        for statement in body:
            self.statement(statement, trips)

    def statement(self, statement: Statement, trips: float) -> None:
        """Add one statement."""
        match statement:
            case Let(value=value) | LetIndex(value=value) | Require(condition=value):
                self.value(value, trips)
            case Store():
                self.elements[statement.buffer] += trips
                self.value(statement.value, trips)
            case For():
                self.statements(statement.body, trips * self.size(statement.extent))
            case If():
                self.value(statement.condition, trips)
                self.statements(statement.body, trips)
            case Reduce():
                inner = trips * self.size(statement.extent)
                self.statements(statement.body, inner)
                self.value(statement.value, inner)
                self.operations += inner
            case Filter():
                inner = trips * self.size(statement.extent)
                self.value(statement.condition, inner)
                self.statements((*statement.body, *statement.stores), inner)
            case Contraction():
                self.contraction(statement, trips)
            case BlockedProduct():
                self.blocked_product(statement, trips)
            case Depthwise() | DepthwisePlane():
                self.depthwise(statement, trips)
            case Winograd():
                self.winograd(statement, trips)
            case Attention():
                self.attention(statement, trips)
            case Transpose():
                self.transpose(statement, trips)
            case CallExtern(arguments=arguments):
                for argument in arguments:
                    if isinstance(argument, Address):  # as far as anybody knows, all of it
                        self.elements[argument.buffer] = math.inf

    def value(self, value: Value, trips: float) -> None:
        """Add a value that is computed ``trips`` times."""
        if isinstance(value, Load):
            self.elements[value.buffer] += trips
        elif isinstance(value, Apply):
            self.operations += trips
            for argument in value.arguments:
                self.value(argument, trips)

    def contraction(self, tile: Contraction, trips: float) -> None:
        """Add a block; blocks at the end are smaller, so each counts as the mean of all."""
        rows, columns = self.size(tile.rows), self.size(tile.columns)
        depth = math.prod(self.size(extent) for _, extent in tile.taps)
        depth *= self.size(tile.depth_extent)
        block_rows = _mean_block(rows, tile.row_block)
        if tile.team is not None:  # some of its units may have no rows
            together = tile.team.units
            block_rows = _mean_block(rows, tile.row_block * together) / together
        lanes = self.vector_bits // dtype_size_bits(tile.dtype)
        width = tile.tile.vectors * lanes
        block_columns = _mean_block(columns, width)
        cells = trips * block_rows * block_columns
        self.operations += 2 * cells * depth * _product_share(tile, rows, columns, width)
        self.elements[tile.a] += trips * block_rows * depth
        self.elements[tile.b] += trips * block_columns * depth
        self.statements(tile.epilogue, cells)

    def blocked_product(self, tile: BlockedProduct, trips: float) -> None:
        """Add a block; its numbers are widened on the way, which is not counted."""
        rows = _mean_block(self.size(tile.rows), tile.row_block)
        columns = _mean_block(self.size(tile.columns), PANEL_COLUMNS)
        depth, cells = tile.blocks * tile.block, trips * rows * columns
        self.operations += 2 * cells * depth
        if tile.digits is None:
            self.elements[tile.a] += trips * rows * depth
        else:
            self.elements[tile.digits.digits] += trips * rows * depth * tile.digits.count
        self.elements[tile.b] += trips * columns * depth * tile.bits / 8
        self.elements[tile.scales] += trips * columns * tile.blocks
        if tile.zeros is not None:
            self.elements[tile.zeros] += trips * columns * tile.blocks
        self.statements(tile.epilogue, cells)

    def depthwise(self, tile: Depthwise | DepthwisePlane, trips: float) -> None:
        """Add a row or a plane of a depthwise convolution."""
        if isinstance(tile, Depthwise):
            cells = trips * self.size(tile.x_extent) * self.size(tile.channels)
        else:
            cells = trips * math.prod(map(self.size, tile.extents))
        taps = math.prod(extent for _, extent in tile.taps)
        self.operations += 2 * cells * taps
        self.elements[tile.a] += cells * taps
        self.elements[tile.w] += cells * taps
        self.statements(tile.epilogue, cells)

    def winograd(self, tile: Winograd, trips: float) -> None:
        """Add a block of tiles: the products of their transforms, which alone count."""
        counts = [
            -(-self.size(size) // own) for size, own in zip(tile.extents, tile.tile, strict=True)
        ]
        tiles = _mean_block(self.size(tile.images) * math.prod(counts), tile.tile_block)
        width = tile.registers.vectors * self.vector_bits // 32
        columns = _mean_block(tile.columns, width)
        patch = [own + taps - 1 for own, taps in zip(tile.tile, tile.kernel, strict=True)]
        weights = math.prod(patch) * columns * tile.channels
        self.operations += 2 * trips * tiles * weights
        self.elements[tile.a] += trips * tiles * math.prod(patch) * tile.channels
        self.elements[tile.transformed] += trips * weights
        self.statements(tile.epilogue, trips * tiles * math.prod(tile.tile) * columns)

    def attention(self, tile: Attention, trips: float) -> None:
        """Add a block of queries: two products, and some five operations per score."""
        queries, keys = self.size(tile.queries), self.size(tile.keys)
        block = _mean_block(queries, tile.query_block)
        scores = trips * block * keys * (0.5 if tile.causal else 1.0)
        width = tile.depth_extent + tile.value_extent
        self.operations += scores * (2 * width + 5)
        self.elements[tile.q] += trips * block * tile.depth_extent
        self.elements[tile.k] += trips * keys * tile.depth_extent
        self.elements[tile.v] += trips * keys * tile.value_extent
        if tile.mask is not None:
            self.value(tile.mask, scores)
        self.statements(tile.epilogue, trips * block * tile.value_extent)

    def transpose(self, tile: Transpose, trips: float) -> None:
        """Add a block of elements that change their order."""
        rows, columns = self.size(tile.rows), self.size(tile.columns)
        cells = trips * _mean_block(rows, tile.row_block) * _mean_block(columns, tile.column_block)
        for _, buffer, _ in tile.values:
            self.elements[buffer] += cells
        self.statements(tile.epilogue, cells)
