"""x86-64, levels v2 to v4 of the psABI, plus AMX and newer AVX-512 extensions by name.

In: nothing. Out: ``FAMILY``. Not done here: deciding which features a machine has.
"""

from ingot_compiler.targets.family import SCALAR, Feature, TargetFamily

_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl")

FAMILY = TargetFamily(
    arch="x86-64",
    triple="x86_64-unknown-linux-gnu",
    linker_emulation="elf_x86_64",
    levels=(("x86-64-v2", "x86-64-v2"), ("x86-64-v3", "x86-64-v3"), ("x86-64-v4", "x86-64-v4")),
    features=(
        Feature("amx-bf16", "amx-bf16", ("amx-tile",)),
        Feature("amx-int8", "amx-int8", ("amx-tile",)),
        Feature("amx-tile", "amx-tile"),
        Feature("avx", "avx", ("sse4.2",)),
        Feature("avx2", "avx2", ("avx",)),
        Feature("avx512bf16", "avx512bf16", _AVX512),
        Feature("avx512bw", "avx512bw", ("avx512f",)),
        Feature("avx512cd", "avx512cd", ("avx512f",)),
        Feature("avx512dq", "avx512dq", ("avx512f",)),
        Feature("avx512f", "avx512f", ("avx2", "f16c", "fma")),
        Feature("avx512fp16", "avx512fp16", _AVX512),
        Feature("avx512vbmi", "avx512vbmi", ("avx512bw",)),
        Feature("avx512vl", "avx512vl", ("avx512f",)),
        Feature("avx512vnni", "avx512vnni", ("avx512f",)),
        Feature("avxvnni", "avxvnni", ("avx2",)),
        Feature("bmi1", "bmi"),
        Feature("bmi2", "bmi2"),
        Feature("cx16", "cx16"),
        Feature("f16c", "f16c", ("avx",)),
        Feature("fma", "fma", ("avx",)),
        Feature("lahf", "sahf"),
        Feature("lzcnt", "lzcnt"),
        Feature("movbe", "movbe"),
        Feature("popcnt", "popcnt"),
        Feature("sse3", "sse3"),
        Feature("sse4.1", "sse4.1", ("ssse3",)),
        Feature("sse4.2", "sse4.2", ("sse4.1",)),
        Feature("ssse3", "ssse3", ("sse3",)),
    ),
    tunings=(
        "alderlake", "broadwell", "cascadelake", "emeraldrapids", "graniterapids", "haswell", "icelake-server",
        "sapphirerapids", SCALAR, "skylake", "skylake-avx512",
        "znver1", "znver2", "znver3", "znver4", "znver5",
    ),
    page_size_bytes=4096,
    always_has_fma=False,
)  # fmt: skip
