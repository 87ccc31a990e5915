"""The list of target families that code generation knows; a new one is one file and one line here.

In: nothing. Out: ``TARGETS``. Not done here: parsing (``targets.target``).
"""

from ingot_compiler.targets import aarch64, riscv64, x86_64
from ingot_compiler.targets.family import TargetFamily

TARGETS: tuple[TargetFamily, ...] = (
    x86_64.FAMILY,
    aarch64.FAMILY,
    riscv64.FAMILY,
)
