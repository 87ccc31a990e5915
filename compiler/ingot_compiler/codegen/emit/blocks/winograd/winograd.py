"""Convolutions by Winograd's algorithm: a block of tiles, transformed, multiplied, transformed back.

In: a ``Winograd`` and the emission context of its kernel. Out: code in the kernel's function.
Not done here: choosing blocks (``winograd_tiles``), the three parts (``winograd_input``,
``winograd_products``, ``winograd_output``).

Each number of a tile is computed alike whatever block, unit or thread it is in.
"""

from ingot_compiler.codegen.emit.blocks.winograd.winograd_input import emit_new_input
from ingot_compiler.codegen.emit.blocks.winograd.winograd_output import emit_results
from ingot_compiler.codegen.emit.blocks.winograd.winograd_products import emit_products
from ingot_compiler.codegen.emit.blocks.winograd.winograd_unit import winograd_unit
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.lowering.loops.program import Winograd


def emit_winograd(context: EmitContext, statement: Winograd) -> None:
    """Emit one unit: its block, if it is new, and its columns."""
    unit = winograd_unit(context, statement)
    emit_new_input(unit)
    emit_products(unit)
    emit_results(unit)
