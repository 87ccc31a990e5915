"""The order of the passes: from what the frontend wrote to the graph that gets places and kernels.

In: a graph. Out: ``OptimizedGraph`` with the same meaning. Not done here: devices, layouts,
operator fusion.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.graph import Graph, OptimizedGraph
from ingot_compiler.passes import (
    fuse_attention,
    fuse_gelu,
    fuse_layer_norm,
    fuse_rms_norm,
    fuse_silu,
)
from ingot_compiler.passes.before_pixel_blocks import before_pixel_blocks
from ingot_compiler.passes.canonicalise import canonicalise
from ingot_compiler.passes.eliminate_common_subexpressions import eliminate_common_subexpressions
from ingot_compiler.passes.eliminate_dead_code import eliminate_dead_code
from ingot_compiler.passes.expand_conv_transpose import expand_conv_transpose
from ingot_compiler.passes.expand_quantized_transpose import expand_quantized_transpose
from ingot_compiler.passes.fold_batch_norm import fold_batch_norm
from ingot_compiler.passes.fold_literals import fold_literals
from ingot_compiler.passes.group_products import group_products
from ingot_compiler.passes.integer_products import integer_products
from ingot_compiler.passes.move_quantized import move_quantized
from ingot_compiler.passes.order_pixel_blocks import order_pixel_blocks
from ingot_compiler.passes.products_in_floats import products_in_floats
from ingot_compiler.passes.repeat_channels import repeat_channels
from ingot_compiler.passes.rewrite import RewriteRule, RootOps, refusals_of
from ingot_compiler.passes.scale_behind_products import scale_behind_products
from ingot_compiler.passes.scale_once import scale_once
from ingot_compiler.passes.tabulate_bytes import tabulate_bytes
from ingot_compiler.passes.unsigned_values import unsigned_values

Pass = Callable[[Graph], Graph]

# They look for what the frontend composes, which the others respell.
INTEGER_PASSES: tuple[Pass, ...] = (
    eliminate_dead_code,
    expand_quantized_transpose,
    unsigned_values,
    eliminate_common_subexpressions,
    move_quantized,
    integer_products,
    scale_once,
    tabulate_bytes,
)
PASSES: tuple[Pass, ...] = (
    eliminate_dead_code,
    scale_behind_products,  # before others respell what it looks for
    canonicalise,
    fold_literals,
    eliminate_common_subexpressions,
    fuse_layer_norm.fuse_layer_norm,
    fuse_rms_norm.fuse_rms_norm,
    fuse_gelu.fuse_gelu,
    fuse_silu.fuse_silu,
    fuse_attention.fuse_attention,
    fold_batch_norm,
    group_products,
    expand_conv_transpose,
    repeat_channels,
    before_pixel_blocks,
    order_pixel_blocks,
)
PATTERNS: tuple[tuple[str, RewriteRule, RootOps], ...] = (
    ("layer normalisation", fuse_layer_norm.rule, fuse_layer_norm.ROOTS),
    ("RMS normalisation", fuse_rms_norm.rule, fuse_rms_norm.ROOTS),
    ("GELU", fuse_gelu.rule, fuse_gelu.ROOTS),
    ("SiLU", fuse_silu.rule, fuse_silu.ROOTS),
    ("attention", fuse_attention.rule, fuse_attention.ROOTS),
)
# A round makes room for the next: a folded literal shows a pattern, a pattern leaves dead code.
_ROUNDS_MAX = 6


def optimize(graph: Graph) -> OptimizedGraph:
    """Run all passes in order, again and again, until each has changed nothing since any did."""
    for run in INTEGER_PASSES:
        graph = run(graph)
    floats = products_in_floats(graph)
    idle = 0
    for run in PASSES * _ROUNDS_MAX:
        before, graph = graph, run(graph)
        idle = idle + 1 if graph is before or graph == before else 0
        if idle == len(PASSES):
            break
    refusals = [item for pattern in PATTERNS for item in refusals_of(graph, *pattern)]
    return OptimizedGraph(graph, (*floats, *refusals))
