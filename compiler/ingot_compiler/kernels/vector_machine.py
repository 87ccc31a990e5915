"""The processor that kernels are cut for: how many lanes and registers tiles count on.

In: nothing. Out: ``VECTOR_MACHINE``. Not done here: instructions; C has only operators.

Eight lanes of f32: PoCL's compiler splits longer vectors badly, and devices without vectors take
lanes apart anyway. None of the features stands for an instruction that C could not say.
"""

from ingot_compiler.targets.target import Target

VECTOR_MACHINE = Target("x86-64", "x86-64-v3", "", ("avx2", "fma"))
