"""The kinds of kernel that are plain loops, which any back end may have: one record and one file
each.

In: nothing. Out: ``KINDS`` by name. Not done here: forming groups (``fuse``), kinds of a back end.
"""

from ingot_compiler.lowering.kinds.argument_reduce import ARGUMENT_REDUCE
from ingot_compiler.lowering.kinds.conv_transpose import CONV_TRANSPOSE
from ingot_compiler.lowering.kinds.cumsum import CUMSUM
from ingot_compiler.lowering.kinds.fill_halo import FILL_HALO
from ingot_compiler.lowering.kinds.gather_true import GATHER_TRUE
from ingot_compiler.lowering.kinds.group_norm import GROUP_NORM
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.linear_attention import LINEAR_ATTENTION
from ingot_compiler.lowering.kinds.pointwise import POINTWISE
from ingot_compiler.lowering.kinds.pool import POOL
from ingot_compiler.lowering.kinds.radix_sort import RADIX_SORT
from ingot_compiler.lowering.kinds.rank_rows import RANK_ROWS
from ingot_compiler.lowering.kinds.reduce import REDUCE
from ingot_compiler.lowering.kinds.resize import RESIZE
from ingot_compiler.lowering.kinds.rows import ROWS
from ingot_compiler.lowering.kinds.scatter import SCATTER_ELEMENTS, SCATTER_ND
from ingot_compiler.lowering.kinds.select_candidates import SELECT_CANDIDATES
from ingot_compiler.lowering.kinds.select_least import SELECT_LEAST
from ingot_compiler.lowering.kinds.select_or_sort import SELECT_OR_SORT
from ingot_compiler.lowering.kinds.suppress_overlaps import SUPPRESS_OVERLAPS
from ingot_compiler.lowering.kinds.walk_trees import WALK_TREES
from ingot_compiler.lowering.kinds.write_rows import WRITE_ROWS

_ALL = (
    ARGUMENT_REDUCE,
    CONV_TRANSPOSE,
    CUMSUM,
    FILL_HALO,
    GATHER_TRUE,
    GROUP_NORM,
    LINEAR_ATTENTION,
    POINTWISE,
    POOL,
    RADIX_SORT,
    RANK_ROWS,
    REDUCE,
    RESIZE,
    ROWS,
    SCATTER_ELEMENTS,
    SCATTER_ND,
    SELECT_CANDIDATES,
    SELECT_LEAST,
    SELECT_OR_SORT,
    SUPPRESS_OVERLAPS,
    WALK_TREES,
    WRITE_ROWS,
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
