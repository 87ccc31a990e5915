"""Where fused attention keeps its panels in a thread's scratch, and with which register tiles it
runs.

In: extents and a target. Out: ``AttentionLayout``, bytes of scratch. Not done here: code
(``codegen.emit.blocks.attention.attention``).

Scratch: keys transposed in panels ``[keys / panel][depth][panel]``, values
``[keys][value_padded]`` (either only where it is packed), then the scores of one or two tiles
of queries ``[tiles][rows][keys_padded]``; all f32, every part a multiple of 64 bytes.
"""

from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.kernels.tiles import lanes_of_rest
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_runtime.lazy_dataclass import dataclass

_ALIGN_ELEMENTS = 16  # 64 bytes
_MANY_REGISTERS = 32
_QUERY_BLOCK = 96
_SCORES_MAX = 1 << 13  # elements of two tiles: 32 KiB
# Rows of a tile, and the vectors that leave room for a row of B and a broadcast. Where several
# heights waste little enough, the first is best: 256 queries in 43 tiles of 6 rows take 1 % less
# time than in 32 of 8.
_QUERIES_PER_WASTED = 64
_HEIGHTS_MANY, _HEIGHTS_FEW = {6: 4, 8: 3, 7: 3, 5: 4}, {6: 2, 5: 2}
_HEIGHTS_BY_ELEMENT = {5: 4, 6: 3, 7: 3}
_OVERLAPPED_MAX = 20  # accumulators that leave room for an exponential


@dataclass(frozen=True, slots=True)
class AttentionLayout:
    """Tiles of ``rows`` queries x ``vectors`` vectors of keys, or ``value_vectors`` of values, and
    offsets in scratch, in f32 elements. ``tiles``: whose scores are in scratch at a time.
    ``has_half_beside``: there are registers for half a vector of keys more. ``overlaps``: results
    leave registers for exponentials of the next tile, which stand beside them."""

    rows: int
    tiles: int
    overlaps: bool
    vectors: int
    has_half_beside: bool
    value_vectors: int
    lanes: int
    keys_padded: Dim
    value_padded: int
    values_offset: Dim
    scores_offset: Dim
    element_count: Dim

    @property
    def panel(self) -> int:
        """Keys in one panel."""
        return self.vectors * self.lanes

    @property
    def value_panel(self) -> int:
        """Columns of values that one tile takes."""
        return self.value_vectors * self.lanes


def attention_layout(
    keys: Dim,
    depth: int,
    value: int,
    query_block: int,
    target: KernelTarget,
    *,
    in_place: bool,
    packs_values: bool,
) -> AttentionLayout:
    """Lay out attention over `keys` keys of `depth` elements and values of `value` elements; there
    are only scores in scratch where both are read in place."""
    lanes, rows = target.f32_lanes, _height(query_block, query_block, target)
    most = _vectors_max(rows, target)
    vectors = _even_share(key_vectors(keys, target), most) if isinstance(keys, int) else most
    panel = vectors * lanes
    keys_padded = dim_mul(dim_add(keys, panel - 1) // panel, panel)
    value_padded = _rounded_up(value)
    values_offset = 0 if in_place else _dim_rounded_up(dim_mul(keys_padded, depth))
    value_elements = dim_mul(keys, value_padded) if packs_values else 0
    scores_offset = dim_add(values_offset, value_elements)
    tiles = 1 if in_place else _tiles(query_block, rows, keys_padded)
    element_count = _dim_rounded_up(dim_add(scores_offset, dim_mul(keys_padded, rows * tiles)))
    overlaps = tiles > 1 and _has_registers_to_overlap(target)
    side_by_side = max(_accumulators_max(target) // rows, 1) if in_place else most
    if overlaps:
        side_by_side = min(side_by_side, _OVERLAPPED_MAX // rows)
    return AttentionLayout(
        rows, tiles, overlaps, vectors, vectors < most, _even_share(-(-value // lanes), side_by_side), lanes,
        keys_padded, value_padded, values_offset, scores_offset, element_count,
    )  # fmt: skip


def attention_scratch_bytes(
    keys: Dim,
    depth: int,
    value: int,
    query_block: int,
    target: KernelTarget,
    *,
    in_place: bool,
    packs_values: bool,
) -> Dim:
    """Return the bytes of scratch, per thread, that an ``Attention`` statement needs."""
    layout = attention_layout(
        keys, depth, value, query_block, target, in_place=in_place, packs_values=packs_values
    )
    return dim_mul(layout.element_count, 4)


def _tiles(query_block: int, rows: int, keys_padded: Dim) -> int:
    """How many tiles' scores lie in scratch: those of the next one beside those of this one, if
    there are several, and all stay in the first cache."""
    is_small = isinstance(keys_padded, int) and 2 * rows * keys_padded <= _SCORES_MAX
    return 2 if is_small and query_block > rows else 1


def attention_query_block(queries: Dim, target: KernelTarget) -> int:
    """Choose the queries of one unit: whole register tiles, about ``_QUERY_BLOCK``, of even
    size."""
    if not isinstance(queries, int):
        return _QUERY_BLOCK
    queries = max(queries, 1)
    rows = _height(queries, queries + queries // _QUERIES_PER_WASTED, target)
    blocks = -(-queries // _QUERY_BLOCK)
    tiles = -(-queries // (blocks * rows))
    return tiles * rows


def key_vectors(keys: int, target: KernelTarget) -> int:
    """Return the whole vectors of keys; behind them there may be some that half a vector holds."""
    lanes = target.f32_lanes
    whole, rest = divmod(keys, lanes)
    return whole + bool(rest and lanes_of_rest(keys, "f32", 1, target) == lanes)


def _has_registers_to_overlap(target: KernelTarget) -> bool:
    """Whether an exponential has registers beside accumulators, a row of B and a broadcast."""
    return target.vector_register_count >= _MANY_REGISTERS and not target.multiplies_by_element


def _height(queries: int, enough: int, target: KernelTarget) -> int:
    """The rows of tiles that compute the fewest queries that there are not; none count of tiles that
    compute up to ``enough``."""
    tallest = min(_heights(target), key=lambda rows: max(-(-queries // rows) * rows, enough))
    return _even_share(queries, tallest)


def _vectors_max(rows: int, target: KernelTarget) -> int:
    """The most vectors of accumulators in each of so many rows."""
    heights = _heights(target)
    return heights[min(height for height in heights if height >= rows)]


def _accumulators_max(target: KernelTarget) -> int:
    """The most vectors of accumulators that any tile has."""
    return max(rows * vectors for rows, vectors in _heights(target).items())


def _heights(target: KernelTarget) -> dict[int, int]:
    if target.multiplies_by_element:
        return _HEIGHTS_BY_ELEMENT
    return _HEIGHTS_MANY if target.vector_register_count >= _MANY_REGISTERS else _HEIGHTS_FEW


def _even_share(count: int, most: int) -> int:
    """What each of as few tiles as there can be takes of ``count`` rows or vectors, at least 1."""
    count = max(count, 1)
    return -(-count // -(-count // most))


def _rounded_up(count: int) -> int:
    return -(-count // _ALIGN_ELEMENTS) * _ALIGN_ELEMENTS


def _dim_rounded_up(count: Dim) -> Dim:
    return dim_mul(dim_add(count, _ALIGN_ELEMENTS - 1) // _ALIGN_ELEMENTS, _ALIGN_ELEMENTS)
