"""64-bit RISC-V, RV64GC as the one level.

In: nothing. Out: ``FAMILY``. Not done here: fixed-width use of the vector extension.
"""

from ingot_compiler.targets.family import Feature, TargetFamily

FAMILY = TargetFamily(
    arch="riscv64",
    triple="riscv64-unknown-linux-gnu",
    linker_emulation="elf64lriscv",
    levels=(("riscv64", "generic-rv64"),),
    features=(
        Feature("a", "a"),
        Feature("c", "c"),
        Feature("d", "d", ("f",)),
        Feature("f", "f"),
        Feature("m", "m"),
        Feature("v", "v", ("d",)),
    ),
    tunings=("sifive-u74", "rocket-rv64"),
    page_size_bytes=4096,
    always_has_fma=True,
)
