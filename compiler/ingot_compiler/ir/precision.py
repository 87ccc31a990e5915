"""What a user may choose of the results: how near they are to the true sums of products, and what a
bundle is optimised for where a faster kernel needs more bytes.

In: nothing. Out: ``PRECISIONS``, ``LOOSE``, ``OPTIMIZE_FOR``. Not done here: what follows from them
(``docs/precision.md``, ``docs/command-line.md``).
"""

F32, FAST, STRICT, BF16X3, BF16 = PRECISIONS = ("f32", "fast", "strict", "bf16x3", "bf16")
"""At most the error of a chain of multiply-adds; at most 2.5 times that; each product and each sum
rounded, in one order on every processor; factors rounded to two bf16; to one bf16."""
LOOSE = (FAST, BF16X3, BF16)
"""The precisions that let errors be larger than a chain's."""


SPEED, SIZE = OPTIMIZE_FOR = ("speed", "size")
"""Kernels that are faster with weights in a larger form; weights as large as in the model."""
