"""A processor's target attribute by attribute: what may be given, what follows.

In: nothing. Out: ``ATTRIBUTES``, ``DERIVED``. Not done here: reading a target (``targets.target``).
"""

from ingot_compiler.backends.backend import TargetAttribute

ATTRIBUTES = (
    TargetAttribute("level", "", "x86-64-v4"),
    TargetAttribute("cpu", ":", "znver4"),
    TargetAttribute("features", "+", "avx512vnni", is_list=True),
)
DERIVED = (
    "arch",
    "f32_lanes",
    "has_fma",
    "multiplies_bf16",
    "multiplies_bytes",
    "multiplies_tiles",
    "page_bytes",
    "processors",
    "rank",
    "rounds_pairs_to_odd",
    "shuffles_bytes",
    "triple",
    "vector_bits",
    "vector_register_count",
    "widens_f16",
)
"""What the parser finds out from the attributes; code generation reads it, and nobody gives it."""
