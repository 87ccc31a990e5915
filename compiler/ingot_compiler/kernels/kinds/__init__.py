"""The kinds of kernel that processors run: those with register tiles beside the plain loops.

In: nothing. Out: ``KINDS`` by name, ``ROUNDED_KINDS``. Not done here: forming groups (``anchors``).
"""

from ingot_compiler.kernels.kinds.attention import ATTENTION
from ingot_compiler.kernels.kinds.recurrent import RECURRENT
from ingot_compiler.kernels.products.choose import PRODUCT_KINDS
from ingot_compiler.kernels.products.rounded import BF16_OF_CONV, BF16_OF_MATRIX
from ingot_compiler.lowering.kinds import KINDS as LOOP_KINDS
from ingot_compiler.lowering.kinds.kind import Kind

KINDS: dict[str, Kind] = {
    **LOOP_KINDS,
    **PRODUCT_KINDS,
    **{kind.name: kind for kind in (ATTENTION, RECURRENT)},
}
ROUNDED_KINDS = frozenset((BF16_OF_CONV, BF16_OF_MATRIX))
"""The kinds that multiply factors of bf16, whatever they store."""
