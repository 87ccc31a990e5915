"""Named CPU features: the vocabulary that compiler, bundle and loader share.

In: nothing. Out: ``LEVELS`` (level -> the features that it needs). Not done here: probing the
machine (``loader``), LLVM's spelling of the names (``ingot_compiler.targets``).
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
