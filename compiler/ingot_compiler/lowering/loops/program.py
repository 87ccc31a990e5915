"""Loop programs: what one kernel does, as loops over buffers; target-neutral but for tile sizes.

In: nothing. Out: ``LoopProgram`` (stage 7). Not done here: making them (``lower``), machine code
(``backends``).

Indices are element offsets, over scalars, the parallel index and the loop variables in scope.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_parts import (
    CarriedSums,
    Digits,
    FixedTaps,
    Moved,
    PackedPanels,
    RegisterTile,
    SplitFactors,
    StrassenTile,
    Taps,
    Team,
    TwoTaps,
)
from ingot_compiler.lowering.loops.loop_values import (
    BufferNumber,
    ExternArgument,
    FunctionName,
    Index,
    Value,
    Variable,
    WholeBuffer,
)
from ingot_runtime.lazy_dataclass import dataclass

ForKind = Literal["serial", "vector", "vector_down", "unroll"]


@dataclass(frozen=True, slots=True)
class Let:
    """Name a value (evaluated once, in the loop context it stands in)."""

    TEXT: ClassVar = "$name = $value"
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class LetIndex:
    """Name an integer value so that index expressions can use it as a symbol (gather, scatter).

    ``reach``: where it is not 0, of 16 iterations that follow each other in the vector loop around
    it none has less than the first one, and none more than so much beyond that.
    """

    TEXT: ClassVar = "index $name| within $reach| = $value"
    name: Variable
    value: Value
    reach: int = 0


@dataclass(frozen=True, slots=True)
class Store:
    """Write ``value`` to element ``index`` of ``buffer`` (converted to the buffer's dtype)."""

    TEXT: ClassVar = "$buffer[$index] = $value"
    buffer: BufferNumber
    index: Index
    value: Value


@dataclass(frozen=True, slots=True)
class For:
    """``for variable in range(extent)``. ``vector``: independent iterations run in lanes (at most one
    such loop encloses a statement; a tail is masked), ``vector_down``: from the last to the first;
    ``unroll``: integer extent, copied body."""

    TEXT: ClassVar = "$kind $variable in $extent {\n$body}"
    variable: Variable
    extent: Dim
    kind: ForKind
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """``name = function over variable in range(extent) of value``, each behind its ``body``.

    Starts from the function's identity (sum 0, product 1, max -inf or the least integer, min
    likewise); an empty range gives the identity. ``lanes``: the iterations are spread over vector
    lanes and a fixed number of partial results (only outside a vector loop); otherwise they run in
    order, each lane of an enclosing vector loop for itself. ``unroll``: copy the body (integer
    extent). max and min propagate NaN, ``max_number`` passes over it (floats only)."""

    TEXT: ClassVar = """$name: $dtype = $function| lanes|| unroll| over $variable in $extent {
$body  yield $value
}"""
    name: str
    function: Literal["sum", "product", "max", "min", "max_number"]
    variable: Variable
    extent: Dim
    dtype: DType
    body: tuple[Statement, ...]
    value: Value
    lanes: bool = False
    unroll: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the iterations of ``variable in range(extent)`` where ``condition`` holds behind ``body``,
    from place ``start`` on; ``name`` is the place behind all, which may be written, too. ``stores``,
    whose indices are those of place 0, write below ``limit``."""

    TEXT: ClassVar = """filter $name over $variable in $extent from $start below $limit {
$body  yield $condition
$stores}"""
    name: Variable
    variable: Variable
    extent: Dim
    start: Dim
    limit: Dim
    body: tuple[Statement, ...]
    condition: Value
    stores: tuple[Store, ...]


@dataclass(frozen=True, slots=True)
class Require:
    """Let the kernel return ``RC_REQUIREMENT + number`` unless a bool holds; it goes on."""

    TEXT: ClassVar = "require $number: $condition"
    number: int
    condition: Value


@dataclass(frozen=True, slots=True)
class If:
    """Run ``body`` when ``condition`` (a bool value, the same for all lanes) holds."""

    TEXT: ClassVar = "if $condition {\n$body}"
    condition: Value
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class CallExtern:
    """Call the C function ``symbol``, which a plug-in's library has: a pointer for each
    ``Address``, numbers by their dtypes. It returns an ``int``; let the kernel return
    ``RC_REQUIREMENT + number`` unless that is 0. Not inside a loop in lanes."""

    TEXT: ClassVar = "extern $number: $symbol($arguments)"
    symbol: FunctionName
    number: int
    arguments: tuple[ExternArgument, ...]


@dataclass(frozen=True, slots=True)
class Contraction:
    """A block of ``C[row, column] = sum over taps and depth of A * B``, the products of an element in
    the order taps (outer to inner), then depth. Sums of integers wrap, floats are added in blocks.

    This unit covers rows ``[row_start, min(row_start + row_block, rows))`` and columns
    ``[column_start, min(column_start + tile.vectors * lanes, columns))``. ``a_index`` is
    linear in taps and depth, and may use floordiv and mod of the row. ``b_index`` has factor 1 for
    the column, within a panel where B lies in ``b_panels``, which hold whole vectors and may be read
    to their ends. Else A and B are f32 side by side along the depth: summands are in lanes, or B is
    ``turned``. ``epilogue`` runs for every element, ``Local(accumulator)``, row and column in scope,
    columns in lanes. ``dtype`` is the accumulator's: f32, f64, i32, i64. A and B have those of their
    buffers: the accumulator's, or a narrower one (f16, bf16, in B 8 bits for f32, 8 and 16 bits for
    i32), which is widened where it is read. Where the sums are i32, the depth is a number and has
    factor 1 in A, B may hold two i16 together, or four of 8 bits, for as many of A. Pairs of bf16
    likewise, whose f32 sums are rounded as ``bf16_pairs`` says, to odd if ``rounds_to_odd``.
    ``in_matrix_tiles``: 16 rows by 16 columns at once, over as much of a tap's depth as 64 bytes
    hold; sums of bf16 are rounded tile by tile. ``split``: A and B are parts of f32, and these are
    the others. ``carried``: what the sums begin at. ``strassen``: how, where sums are finite.
    """

    TEXT: ClassVar = """contraction
  row=$row rows=$rows row_start=$row_start row_block=$row_block
  column=$column columns=$columns column_start=$column_start
  taps=$taps depth=$depth in $depth_extent tile=$tile|
  in_matrix_tiles=$in_matrix_tiles||
  rounds_to_odd=$rounds_to_odd||
  team=$team||
  strassen=$strassen|
  a=$a[$a_index]
  b=$b[$b_index] panels=$b_panels| turned||
  split=$split||
  carried=$carried|
  $accumulator: $dtype -> {
$epilogue}"""
    row: Variable
    rows: Dim
    row_start: Dim
    row_block: int
    column: Variable
    columns: Dim
    column_start: Dim
    taps: Taps
    depth: Variable
    depth_extent: Dim
    a: BufferNumber
    a_index: Index
    b: BufferNumber
    b_index: Index
    b_panels: PackedPanels | None
    dtype: DType
    accumulator: str
    epilogue: tuple[Statement, ...]
    tile: RegisterTile
    team: Team | None = None
    in_matrix_tiles: bool = False
    rounds_to_odd: bool = False
    split: SplitFactors | None = None
    carried: CarriedSums | None = None
    strassen: StrassenTile | None = None
    turned: bool = False


@dataclass(frozen=True, slots=True)
class BlockedProduct:
    """A block of ``C[row, column] = sum over blocks of scale * (sum over depth of A * number)``, of
    integers of 4 or 8 ``bits`` that have a scale, and perhaps a zero point, for each of ``blocks``
    blocks of ``block`` numbers.

    This unit covers rows ``[row_start, min(row_start + row_block, rows))`` and one panel of columns
    from ``column_start`` on. A row of A begins at ``a_index`` and is contiguous. B lies as
    ``[panel][word][column]``, words of 32 bits with the first number in the low ones; scales and
    zero points as ``[panel][block][column]``, the latter one in each byte. Numbers and zero points
    are two's complement if ``signed``, else less 2^(bits - 1). Scales are f32, or f16 and bf16
    that are widened. ``digits`` stand for A where they are given. ``epilogue``: see ``Contraction``.
    """

    TEXT: ClassVar = """blocked
  row=$row rows=$rows row_start=$row_start row_block=$row_block
  column=$column columns=$columns column_start=$column_start
  blocks=$blocks block=$block bits=$bits signed=$signed
  a=$a[$a_index]
  b=$b scales=$scales zeros=$zeros|
  digits=$digits|
  $accumulator: f32 -> {
$epilogue}"""
    row: Variable
    rows: Dim
    row_start: Dim
    row_block: int
    column: Variable
    columns: Dim
    column_start: Dim
    blocks: int
    block: int
    a: BufferNumber
    a_index: Index
    b: WholeBuffer
    scales: WholeBuffer
    zeros: WholeBuffer | None
    bits: int
    signed: bool
    accumulator: str
    epilogue: tuple[Statement, ...]
    digits: Digits | None = None


@dataclass(frozen=True, slots=True)
class Depthwise:
    """One row of a depthwise convolution, channels in lanes.

    For every ``x < x_extent`` and ``channel < channels``: sum over the taps (outer to inner) of
    ``A[a_index] * W[w_index]``; both have factor 1 for the channel, ``a_index`` is linear in x and
    the taps, ``w_index`` is independent of x. ``epilogue`` as in ``Contraction``, with x and
    channel in scope; the channel is the vector variable.

    Where A and W are of 8-bit integers and the sums i32, four weights along the first tap lie
    together, with zeros behind the last: ``w_index`` has factor 4 for the channel.
    """

    TEXT: ClassVar = """depthwise
  x=$x x_extent=$x_extent channel=$channel channels=$channels pixels=$pixels
  taps=$taps
  a=$a[$a_index]
  w=$w[$w_index]
  $accumulator: $dtype -> {
$epilogue}"""
    x: Variable
    x_extent: Dim
    channel: Variable
    channels: Dim
    taps: FixedTaps
    a: BufferNumber
    a_index: Index
    w: BufferNumber
    w_index: Index
    dtype: DType
    accumulator: str
    epilogue: tuple[Statement, ...]
    pixels: int  # accumulators: x positions that are computed together


@dataclass(frozen=True, slots=True)
class DepthwisePlane:
    """One plane of a depthwise convolution, row-major, pixels in lanes; around it are zeros.

    Pairs are (rows, pixels of a row). For every y and x below ``extents``: sum over both taps of
    ``A[a_index] * W[w_index]``, where ``a_index`` is over
    ``row = y * stride + tap * dilation - pad`` and ``column`` likewise (factor 1), 0 where these
    lie outside of ``image``; ``w_index`` is over the taps. Strides along the row are 1 or 2.
    ``epilogue`` as in ``Contraction``, with y and x in scope; x is the vector variable.
    """

    TEXT: ClassVar = """depthwise plane
  y=$y y_extent=$extents.0 x=$x x_extent=$extents.1 rows_together=$rows_together
  image=$image
  strides=$strides
  dilations=$dilations
  pads=$pads
  $taps
  a=$a[$a_index] over $row, $column
  w=$w[$w_index]
  $accumulator: $dtype -> {
$epilogue}"""
    y: Variable
    x: Variable
    extents: tuple[Dim, Dim]
    image: tuple[Dim, Dim]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int]
    taps: TwoTaps
    a: BufferNumber
    row: Variable
    column: Variable
    a_index: Index
    w: BufferNumber
    w_index: Index
    dtype: DType
    accumulator: str
    epilogue: tuple[Statement, ...]
    rows_together: int  # accumulators: rows that are computed together


@dataclass(frozen=True, slots=True)
class Winograd:
    """Tiles of a convolution with stride 1, in f32, by Winograd's algorithm.

    Results ``(image, y, x)``, y and x below ``extents``, are covered by tiles of ``tile`` (rows,
    columns), counted row-major: by this unit ``tile_block`` from ``tile_start`` on, and columns as
    by a ``Contraction``, of one of ``groups``. Each is the sum over ``kernel`` and its group's
    channels of ``A[a_index at (y + tap, x + tap)] * W``: by ``transformed``, ``[panel][frequency]
    [block of taps][channel][16]``, or by ``w``, as in a ``Contraction``, if its tile is not finite.
    """

    TEXT: ClassVar = """winograd
  image=$image images=$images
  y=$y y_extent=$extents.0 x=$x x_extent=$extents.1
  kernel=$kernel tile=$tile
  tile_start=$tile_start tile_block=$tile_block
  channel=$channel channels=$channels groups=$groups
  column=$column columns=$columns column_start=$column_start
  registers=$registers
  a=$a[$a_index]
  transformed=$transformed w=$w
  $accumulator: f32 -> {
$epilogue}"""
    image: Variable
    images: Dim
    y: Variable
    x: Variable
    extents: tuple[Dim, Dim]
    kernel: tuple[int, int]
    tile: tuple[int, int]
    tile_start: Dim
    tile_block: int
    channel: Variable
    channels: int
    groups: int
    column: Variable
    columns: int
    column_start: Dim
    registers: RegisterTile
    a: BufferNumber
    a_index: Index
    transformed: WholeBuffer
    w: WholeBuffer
    accumulator: str
    epilogue: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of one head for a block of queries: ``softmax(scale * q.k + mask) . v``.

    Queries ``[query_start, min(query_start + query_block, queries))``; ``group`` is an index
    expression that changes when k and v change (their repacking in scratch is reused while it stays
    the same). Indices: ``q_index`` over query and depth, ``k_index`` over key and depth,
    ``v_index`` over key and value symbols, all linear; depth has factor 1 in q, the value symbol
    factor 1 in v. ``mask`` is a value over query and key symbols that is added after scaling, or
    None; ``causal`` keeps only keys <= query + ``causal_offset``.
    ``nan_to_zero``: a row whose scores are all -inf gives 0 instead of NaN. f32. ``in_place``: k
    and v are read where they lie, with factor 1 for depth and value, not repacked. ``epilogue`` has
    ``Local(accumulator)``, query and value symbols in scope; value is the vector variable.
    """

    TEXT: ClassVar = """attention
  query=$query queries=$queries query_start=$query_start query_block=$query_block
  key=$key keys=$keys depth=$depth depth_extent=$depth_extent
  value=$value value_extent=$value_extent group=$group
  q=$q[$q_index]
  k=$k[$k_index]
  v=$v[$v_index]
  scale=$scale mask=$mask
  causal=$causal causal_offset=$causal_offset nan_to_zero=$nan_to_zero in_place=$in_place
  $accumulator: f32 -> {
$epilogue}"""
    query: Variable
    queries: Dim
    query_start: Dim
    query_block: int
    key: Variable
    keys: Dim
    depth: Variable
    depth_extent: int
    value: Variable
    value_extent: int
    group: Dim
    q: BufferNumber
    q_index: Index
    k: BufferNumber
    k_index: Index
    v: BufferNumber
    v_index: Index
    scale: float
    mask: Value | None
    causal: bool
    causal_offset: Dim
    nan_to_zero: bool
    in_place: bool
    accumulator: str
    epilogue: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Transpose:
    """A block of elements: some operands are contiguous along the row, the results along the column.

    For every row in ``[row_start, min(row_start + row_block, rows))`` and column in
    ``[column_start, min(column_start + column_block, columns))``: ``epilogue`` with both symbols in
    scope and, for each (name, buffer, index) of ``values``, a ``Local`` that is the element
    ``index``, whose factor for the row is 1. The column is the vector variable. The results must
    not lie in the buffers that are read.
    """

    TEXT: ClassVar = """transpose
  row=$row rows=$rows row_start=$row_start row_block=$row_block
  column=$column columns=$columns column_start=$column_start column_block=$column_block
$values  -> {
$epilogue}"""
    row: Variable
    rows: Dim
    row_start: Dim
    row_block: int
    column: Variable
    columns: Dim
    column_start: Dim
    column_block: int
    values: Moved
    epilogue: tuple[Statement, ...]


Block = Contraction | BlockedProduct | Depthwise | DepthwisePlane | Winograd | Attention | Transpose
"""What covers many elements in an order of its own, and runs its ``epilogue`` for each."""
Statement = Let | Store | Reduce | For | Filter | LetIndex | Require | CallExtern | If | Block


@dataclass(frozen=True, slots=True)
class Buffer:
    """One kernel argument: ``dtype`` elements, aligned to one (inputs lie where the user put them)."""

    dtype: DType
    written: bool


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """One kernel: ``body`` for every ``index`` in ``range(extent)``, in one range a thread.

    ``scalars`` name the symbols that the caller passes (i64, in this order). ``grain``: least units
    worth a thread. ``scratch_bytes``: per thread, may use the scalars.
    """

    buffers: tuple[Buffer, ...]
    scalars: tuple[str, ...]
    index: str
    extent: Dim
    grain: int
    body: tuple[Statement, ...]
    scratch_bytes: Dim = 0
