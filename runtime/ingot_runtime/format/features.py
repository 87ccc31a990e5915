"""Named CPU features: the vocabulary that compiler, bundle and loader share.

In: nothing. Out: ``LEVELS`` (level -> the features that it needs), ``EXTRA_FEATURES`` (names that a variant may need on
top). Not done here: probing the machine (``loader``), LLVM's spelling of the names (``ingot_compiler.backends.host.targets``).
"""

_V2 = ("sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "lahf")
_V3 = (*_V2, "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

# Later levels of one architecture contain the earlier ones.
LEVELS = {
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V4,
    "aarch64": ("asimd", "fp"),
    "riscv64": ("a", "c", "d", "f", "m"),
}

EXTRA_FEATURES = {
    "x86-64": ("amx-bf16", "amx-int8", "amx-tile", "avx512bf16", "avx512fp16", "avx512vbmi", "avx512vnni", "avxvnni"),
    "aarch64": ("asimddp", "asimdhp", "bf16", "i8mm"),
    "riscv64": ("v",),
}
