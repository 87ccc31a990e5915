"""Reads the blocks of a loop program: contractions, depthwise convolutions, attention, transposes.

In: a reader behind the word that begins a block; what reads its epilogue. Out: the block. Not done
here: other statements (``parse_loops``), whether the parts fit together (``verify_loops``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.read_terms import read_float
from ingot_compiler.ir.text_reader import Reader
from ingot_compiler.lowering.loop_fields import LoopFields
from ingot_compiler.lowering.loop_parts import (
    Digits,
    PackedPanels,
    SplitFactors,
    StrassenTile,
    Team,
)
from ingot_compiler.lowering.loops import (
    Attention,
    Block,
    BlockedProduct,
    Contraction,
    Depthwise,
    DepthwisePlane,
    Statement,
    Transpose,
    Winograd,
)
from ingot_compiler.lowering.parse_loop_values import read_access, read_range, read_value


def read_block(
    word: str, reader: Reader, read_statements: Callable[[], tuple[Statement, ...]]
) -> Block:
    """The block that ``word``, one of ``BLOCK_WORDS``, begins; ``read_statements`` reads
    ``{ STATEMENT ... }``."""
    return _READERS[word](LoopFields(reader, read_statements))


def _contraction(fields: LoopFields) -> Contraction:
    """Rows, columns, taps and depth, both operands, what is done with each sum."""
    reader = fields.reader
    rectangle, taps = fields.rectangle(), fields.taps()
    reader.expect("depth", "=")
    depth = read_range(reader)
    tile, team = fields.register_tile("tile"), None
    matrix = reader.at("in_matrix_tiles") and fields.python_flag("in_matrix_tiles")
    odd = reader.at("rounds_to_odd") and fields.python_flag("rounds_to_odd")
    if reader.at("team"):
        team = Team(fields.integer("team"), fields.dim("place"))
    strassen = _strassen(fields) if reader.at("strassen") else None
    a, b = fields.access("a"), fields.access("b")
    panels, split = _panels(fields), _split(fields) if reader.at("split") else None
    accumulator, epilogue = fields.accumulator(), fields.epilogue()
    return Contraction(
        *rectangle, taps, *depth, *a, *b, panels, *accumulator, epilogue, tile, team, matrix, odd,
        split, strassen,
    )  # fmt: skip


def _strassen(fields: LoopFields) -> StrassenTile:
    """``strassen=3 block=64``."""
    return StrassenTile(fields.integer("strassen"), fields.integer("block"))


def _split(fields: LoopFields) -> SplitFactors:
    """``split=1 b4[0] b5[0] plain=b0[INDEX] fits=b6[0]``: lower parts of A, then of B."""
    count = fields.integer("split")
    a, b = (tuple(read_access(fields.reader)[0] for _ in range(count)) for _ in range(2))
    return SplitFactors(a, b, *fields.access("plain"), fields.access("fits")[0])


def _panels(fields: LoopFields) -> PackedPanels | None:
    """``panels=16 step=64 together=1``, perhaps ``addends=b3[0]``, or None."""
    fields.reader.expect("panels", "=")
    if fields.reader.accept("None"):
        return None
    columns, step, together = (
        fields.reader.integer(),
        fields.dim("step"),
        fields.integer("together"),
    )
    addends = fields.access("addends")[0] if fields.reader.at("addends") else None
    return PackedPanels(columns, step, together, addends)


def _blocked_product(fields: LoopFields) -> BlockedProduct:
    """A product with integers that are scaled in blocks."""
    reader, rectangle = fields.reader, fields.rectangle()
    blocks, block, bits = map(fields.integer, ("blocks", "block", "bits"))
    signed, a = fields.python_flag("signed"), fields.access("a")
    b, scales = fields.access("b")[0], fields.access("scales")[0]
    reader.expect("zeros", "=")
    zeros = None if reader.accept("None") else read_access(reader)[0]
    digits = None
    if reader.at("digits"):
        count = fields.integer("digits")
        digits = Digits(count, *(read_access(reader)[0] for _ in range(3)))
    _, accumulator = fields.accumulator()
    return BlockedProduct(
        *rectangle, blocks, block, *a, b, scales, zeros, bits, signed, accumulator,
        fields.epilogue(), digits,
    )  # fmt: skip


def _depthwise(fields: LoopFields) -> Depthwise | DepthwisePlane:
    """A row of a depthwise convolution, or a plane of one."""
    if fields.reader.accept("plane"):
        return _depthwise_plane(fields)
    x, channel = fields.sized("x", "x_extent"), fields.sized("channel", "channels")
    pixels, taps = fields.integer("pixels"), fields.fixed_taps()
    a, w, accumulator = fields.access("a"), fields.access("w"), fields.accumulator()
    return Depthwise(*x, *channel, taps, *a, *w, *accumulator, fields.epilogue(), pixels)


def _depthwise_plane(fields: LoopFields) -> DepthwisePlane:
    """The same on images that lie row-major."""
    (y, y_extent), (x, x_extent) = fields.sized("y", "y_extent"), fields.sized("x", "x_extent")
    rows_together, image = fields.integer("rows_together"), fields.dims("image")
    strides, dilations, pads = map(fields.pair, ("strides", "dilations", "pads"))
    taps = _two_taps(fields)
    a, a_index = fields.access("a")
    fields.reader.expect("over")
    row = fields.reader.name()
    fields.reader.expect(",")
    column, w, accumulator = fields.reader.name(), fields.access("w"), fields.accumulator()
    return DepthwisePlane(
        y, x, (y_extent, x_extent), image, strides, dilations, pads, taps, a, row, column, a_index,
        *w, *accumulator, fields.epilogue(), rows_together,
    )  # fmt: skip


def _two_taps(fields: LoopFields) -> tuple[tuple[str, int], tuple[str, int]]:
    start = fields.reader.token
    taps = fields.fixed_taps()
    if len(taps) != 2:
        raise fields.reader.fail(f"expected 2 taps, got {len(taps)}", start)
    return taps[0], taps[1]


def _winograd(fields: LoopFields) -> Winograd:
    """Tiles of a convolution."""
    image = fields.sized("image", "images")
    (y, y_extent), (x, x_extent) = fields.sized("y", "y_extent"), fields.sized("x", "x_extent")
    kernel, tile = fields.pair("kernel"), fields.pair("tile")
    start, block = fields.dim("tile_start"), fields.integer("tile_block")
    channel = fields.name("channel"), fields.integer("channels")
    groups = fields.integer("groups")
    column, columns = fields.name("column"), fields.integer("columns")
    column_start = fields.dim("column_start")
    registers, a = fields.register_tile("registers"), fields.access("a")
    transformed, w = fields.access("transformed")[0], fields.access("w")[0]
    _, accumulator = fields.accumulator()
    return Winograd(
        *image, y, x, (y_extent, x_extent), kernel, tile, start, block, *channel, groups, column,
        columns,
        column_start, registers, *a, transformed, w, accumulator, fields.epilogue(),
    )  # fmt: skip


def _attention(fields: LoopFields) -> Attention:
    """One head for a block of queries."""
    reader = fields.reader
    query, start = fields.sized("query", "queries"), fields.dim("query_start")
    query_block, key = fields.integer("query_block"), fields.sized("key", "keys")
    depth = fields.name("depth"), fields.integer("depth_extent")
    value = fields.name("value"), fields.integer("value_extent")
    group = fields.dim("group")
    q, k, v = fields.access("q"), fields.access("k"), fields.access("v")
    reader.expect("scale", "=")
    scale = read_float(reader)
    reader.expect("mask", "=")
    mask = None if reader.accept("None") else read_value(reader)
    causal = fields.python_flag("causal"), fields.dim("causal_offset")
    nan_to_zero, in_place = fields.python_flag("nan_to_zero"), fields.python_flag("in_place")
    accumulator = reader.name()
    reader.expect(":", "f32")
    return Attention(
        *query, start, query_block, *key, *depth, *value, group, *q, *k, *v, scale, mask, *causal,
        nan_to_zero, in_place, accumulator, fields.epilogue(),
    )  # fmt: skip


def _transpose(fields: LoopFields) -> Transpose:
    """A block whose operands and results are contiguous along different axes."""
    reader, rectangle, block = fields.reader, fields.rectangle(), fields.integer("column_block")
    values: list[tuple[str, int, Dim]] = []
    while not reader.at("->"):
        name = reader.name()
        reader.expect("=")
        values.append((name, *read_access(reader)))
    return Transpose(*rectangle, block, tuple(values), fields.epilogue())


_READERS: Mapping[str, Callable[[LoopFields], Block]] = {
    "contraction": _contraction,
    "blocked": _blocked_product,
    "depthwise": _depthwise,
    "winograd": _winograd,
    "attention": _attention,
    "transpose": _transpose,
}
BLOCK_WORDS = tuple(_READERS)
