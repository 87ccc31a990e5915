"""Where fused attention keeps its panels in a thread's scratch, and with which register tiles it
runs.

In: extents and a target. Out: ``AttentionLayout``, bytes of scratch. Not done here: code
(``backends.host.emit.kernels.attention``).

Scratch: keys transposed in panels ``[keys / panel][depth][panel]``, values
``[keys][value_padded]`` (neither where they are read in place), then the scores of one tile of
queries ``[rows][keys_padded]``; all f32, every part a multiple of 64 bytes.
"""

from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_runtime.lazy_dataclass import dataclass

_ALIGN_ELEMENTS = 16  # 64 bytes
_MANY_REGISTERS = 32
_QUERY_BLOCK = 96


@dataclass(frozen=True, slots=True)
class AttentionLayout:
    """Tiles of ``rows`` queries x ``vectors`` vectors, and offsets in scratch, in f32 elements."""

    rows: int
    vectors: int
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


def attention_layout(
    keys: Dim, depth: int, value: int, query_block: int, target: KernelTarget, *, in_place: bool
) -> AttentionLayout:
    """Lay out attention over `keys` keys of `depth` elements and values of `value` elements; there
    are only scores in scratch where both are read in place."""
    rows, vectors = _tile_budget(target)
    tiles = -(-query_block // rows)
    rows, lanes = -(-query_block // tiles), target.f32_lanes
    panel = vectors * lanes
    keys_padded = dim_mul(dim_add(keys, panel - 1) // panel, panel)
    value_padded = _rounded_up(value)
    values_offset = 0 if in_place else _dim_rounded_up(dim_mul(keys_padded, depth))
    scores_offset = 0 if in_place else dim_add(values_offset, dim_mul(keys, value_padded))
    element_count = _dim_rounded_up(dim_add(scores_offset, dim_mul(keys_padded, rows)))
    return AttentionLayout(
        rows, vectors, lanes, keys_padded, value_padded, values_offset, scores_offset, element_count
    )


def attention_scratch_bytes(
    keys: Dim, depth: int, value: int, query_block: int, target: KernelTarget, *, in_place: bool
) -> Dim:
    """Return the bytes of scratch, per thread, that an ``Attention`` statement needs."""
    layout = attention_layout(keys, depth, value, query_block, target, in_place=in_place)
    return dim_mul(layout.element_count, 4)


def attention_query_block(queries: Dim, target: KernelTarget) -> int:
    """Choose the queries of one unit: whole register tiles, about ``_QUERY_BLOCK``, of even
    size."""
    rows = _tile_budget(target)[0]
    if not isinstance(queries, int):
        return _QUERY_BLOCK
    if queries <= rows:
        return max(queries, 1)
    blocks = -(-queries // _QUERY_BLOCK)
    tiles = -(-queries // (blocks * rows))
    return tiles * rows


def _tile_budget(target: KernelTarget) -> tuple[int, int]:
    """Rows x vectors of accumulators that leave room for a row of B and a broadcast."""
    return (6, 4) if target.vector_register_count >= _MANY_REGISTERS else (6, 2)


def _rounded_up(count: int) -> int:
    return -(-count // _ALIGN_ELEMENTS) * _ALIGN_ELEMENTS


def _dim_rounded_up(count: Dim) -> Dim:
    return dim_mul(dim_add(count, _ALIGN_ELEMENTS - 1) // _ALIGN_ELEMENTS, _ALIGN_ELEMENTS)
