"""The kinds of kernel: one record and one file each.

In: nothing. Out: ``KINDS`` by name. Not done here: forming groups (``fuse``).
"""

from ingot_compiler.lowering.kinds.argument_reduce import ARGUMENT_REDUCE
from ingot_compiler.lowering.kinds.attention import ATTENTION
from ingot_compiler.lowering.kinds.contraction import CONV, MATMUL
from ingot_compiler.lowering.kinds.conv_transpose import CONV_TRANSPOSE
from ingot_compiler.lowering.kinds.cumsum import CUMSUM
from ingot_compiler.lowering.kinds.depthwise import DEPTHWISE
from ingot_compiler.lowering.kinds.depthwise_plane import DEPTHWISE_PLANE
from ingot_compiler.lowering.kinds.fill_halo import FILL_HALO
from ingot_compiler.lowering.kinds.group_norm import GROUP_NORM
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.matmul_integer import MATMUL_INTEGER
from ingot_compiler.lowering.kinds.pointwise import POINTWISE
from ingot_compiler.lowering.kinds.pool import POOL
from ingot_compiler.lowering.kinds.recurrent import RECURRENT
from ingot_compiler.lowering.kinds.reduce import REDUCE
from ingot_compiler.lowering.kinds.resize import RESIZE
from ingot_compiler.lowering.kinds.rows import ROWS
from ingot_compiler.lowering.kinds.scatter import SCATTER_ELEMENTS, SCATTER_ND
from ingot_compiler.lowering.kinds.suppress_overlaps import SUPPRESS_OVERLAPS

_ALL = (
    ARGUMENT_REDUCE,
    ATTENTION,
    CONV,
    CONV_TRANSPOSE,
    CUMSUM,
    DEPTHWISE,
    DEPTHWISE_PLANE,
    FILL_HALO,
    GROUP_NORM,
    MATMUL,
    MATMUL_INTEGER,
    POINTWISE,
    POOL,
    RECURRENT,
    REDUCE,
    RESIZE,
    ROWS,
    SCATTER_ELEMENTS,
    SCATTER_ND,
    SUPPRESS_OVERLAPS,
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
