"""The kinds of kernel, and how each becomes loops.

In: a group. Out: a loop program, by the group's kind. Not done here: forming groups (``fuse``).
"""

from collections.abc import Callable

from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kinds.argument_reduce import lower_argument_reduce
from ingot_compiler.lowering.kinds.attention import lower_attention
from ingot_compiler.lowering.kinds.contraction import lower_conv, lower_matmul
from ingot_compiler.lowering.kinds.conv_transpose import lower_conv_transpose
from ingot_compiler.lowering.kinds.cumsum import lower_cumsum
from ingot_compiler.lowering.kinds.depthwise import lower_depthwise
from ingot_compiler.lowering.kinds.depthwise_plane import lower_depthwise_plane
from ingot_compiler.lowering.kinds.fill_halo import lower_fill_halo
from ingot_compiler.lowering.kinds.group_norm import lower_group_norm
from ingot_compiler.lowering.kinds.matmul_integer import lower_matmul_integer
from ingot_compiler.lowering.kinds.pointwise import lower_pointwise
from ingot_compiler.lowering.kinds.pool import lower_pool
from ingot_compiler.lowering.kinds.recurrent import lower_recurrent
from ingot_compiler.lowering.kinds.reduce import lower_reduce
from ingot_compiler.lowering.kinds.resize import lower_resize
from ingot_compiler.lowering.kinds.rows import lower_rows
from ingot_compiler.lowering.kinds.scatter import lower_scatter_elements, lower_scatter_nd
from ingot_compiler.lowering.kinds.suppress_overlaps import lower_suppress_overlaps
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.targets.target import Target

KINDS: dict[str, Callable[[Group, Target], LoopProgram]] = {
    "argument_reduce": lower_argument_reduce,
    "attention": lower_attention,
    "conv": lower_conv,
    "conv_transpose": lower_conv_transpose,
    "cumsum": lower_cumsum,
    "depthwise": lower_depthwise,
    "depthwise_plane": lower_depthwise_plane,
    "fill_halo": lower_fill_halo,
    "group_norm": lower_group_norm,
    "matmul": lower_matmul,
    "matmul_integer": lower_matmul_integer,
    "pointwise": lower_pointwise,
    "pool": lower_pool,
    "recurrent": lower_recurrent,
    "reduce": lower_reduce,
    "resize": lower_resize,
    "rows": lower_rows,
    "scatter_elements": lower_scatter_elements,
    "scatter_nd": lower_scatter_nd,
    "suppress_overlaps": lower_suppress_overlaps,
}
