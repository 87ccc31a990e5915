"""Which convolutions have so few channels in their results that those of the image fill more lanes.

In: a node, the fuser. Out: a bool. Not done here: the loops (``kinds/conv_few_channels``), the sums
(``emit/kernels/along_depth``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.tiles import lanes_of_rest, panel_columns
from ingot_compiler.ir.dims import dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.precision import F32, FAST
from ingot_compiler.lowering.fusion.fuser import Fuser

_SUMMANDS_MIN = 128  # behind fewer, adding lanes takes as long as the products
_LANES_SHARE_MAX = 0.75  # of the lanes that a result's channels fill


def has_few_channels(fuser: Fuser, node: Node) -> bool:
    """Whether a convolution of f32 is summed along the image's channels."""
    values, (x, w), (result,) = fuser.values, node.operands[:2], node.results
    target = fuser.targets[values.device_of(result)]
    own, channels, *kernel = values.type_of(w).shape
    if not isinstance(own, int) or not isinstance(channels, int) or own >= target.f32_lanes:
        return False
    lanes, summands = lanes_of_rest(own, "f32", 1, target), dim_product((channels, *kernel))
    return (
        {values.type_of(value).dtype for value in (x, w, result)} == {"f32"}
        and fuser.precision in (F32, FAST)
        and target.team_units == 1
        and values.is_constant(w)
        and node.integer("groups") == 1
        and channels % panel_columns("f32") == 0
        and isinstance(summands, int)
        and summands >= _SUMMANDS_MIN
        and own <= _LANES_SHARE_MAX * lanes
    )
