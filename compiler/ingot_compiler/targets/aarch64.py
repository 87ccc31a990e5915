"""64-bit Arm, Armv8-A with Advanced SIMD as the one level; newer extensions by name (the kernel's
hwcap names).

In: nothing. Out: ``FAMILY``. Not done here: SVE.
"""

from ingot_compiler.targets.family import Feature, TargetFamily

FAMILY = TargetFamily(
    arch="aarch64",
    triple="aarch64-unknown-linux-gnu",
    linker_emulation="aarch64linux",
    levels=(("aarch64", "generic"),),
    features=(
        Feature("asimd", "neon", ("fp",)),
        Feature("asimddp", "dotprod", ("asimd",)),
        Feature("asimdhp", "fullfp16", ("asimd",)),
        Feature("bf16", "bf16", ("asimd",)),
        Feature("fp", "fp-armv8"),
        Feature("i8mm", "i8mm", ("asimd",)),
    ),
    tunings=(
        "apple-m1", "cortex-a53", "cortex-a55", "cortex-a57", "cortex-a72", "cortex-a73", "cortex-a76",
        "cortex-a78", "cortex-x1", "neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2",
    ),
    # Kernels with 64 KiB pages exist, and text and rodata have different protection.
    page_size_bytes=65536,
    always_has_fma=True,
)  # fmt: skip
