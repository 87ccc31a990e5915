"""The kinds of kernel that processors run: those with register tiles, one record and one file each,
beside the plain loops.

In: nothing. Out: ``KINDS`` by name, ``ROUNDED_KINDS``. Not done here: forming groups (``anchors``).
"""

from ingot_compiler.backends.host.kinds.attention import ATTENTION
from ingot_compiler.backends.host.kinds.conv import CONV, CONV_BF16, CONV_PARTS, CONV_STRASSEN
from ingot_compiler.backends.host.kinds.conv_few_channels import CONV_FEW_CHANNELS
from ingot_compiler.backends.host.kinds.conv_rows import CONV_ROWS
from ingot_compiler.backends.host.kinds.depthwise import DEPTHWISE
from ingot_compiler.backends.host.kinds.depthwise_plane import DEPTHWISE_PLANE
from ingot_compiler.backends.host.kinds.grouped_matmul import GROUPED_MATMUL
from ingot_compiler.backends.host.kinds.grouped_matmul_blocks import GROUPED_MATMUL_BLOCKS
from ingot_compiler.backends.host.kinds.matmul import (
    MATMUL,
    MATMUL_BF16,
    MATMUL_PARTS,
    MATMUL_STRASSEN,
)
from ingot_compiler.backends.host.kinds.matmul_blocks import MATMUL_BLOCKS
from ingot_compiler.backends.host.kinds.recurrent import RECURRENT
from ingot_compiler.backends.host.kinds.winograd import WINOGRAD_KINDS
from ingot_compiler.lowering.kinds import KINDS as LOOP_KINDS
from ingot_compiler.lowering.kinds.kind import Kind

_TILED = (
    ATTENTION,
    CONV,
    CONV_BF16,
    CONV_FEW_CHANNELS,
    CONV_ROWS,
    CONV_STRASSEN,
    DEPTHWISE,
    DEPTHWISE_PLANE,
    GROUPED_MATMUL,
    GROUPED_MATMUL_BLOCKS,
    MATMUL,
    MATMUL_BF16,
    MATMUL_BLOCKS,
    MATMUL_STRASSEN,
    RECURRENT,
    *CONV_PARTS.values(),
    *MATMUL_PARTS.values(),
    *WINOGRAD_KINDS.values(),
)
KINDS: dict[str, Kind] = {**LOOP_KINDS, **{kind.name: kind for kind in _TILED}}
ROUNDED_KINDS = frozenset((CONV_BF16.name, MATMUL_BF16.name))
"""Those that multiply factors of bf16, whatever they store."""
