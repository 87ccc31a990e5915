"""How near to the true sums of products a bundle's results are: what a user may choose.

In: nothing. Out: ``PRECISIONS``, ``LOOSE``. Not done here: what follows from it (``docs/precision.md`` says it).
"""

F32, FAST, STRICT, BF16X3, BF16 = PRECISIONS = ("f32", "fast", "strict", "bf16x3", "bf16")
"""At most the error of a chain of multiply-adds; at most 2.5 times that; each product and each sum
rounded, in one order on every processor; factors rounded to two bf16; to one bf16."""
LOOSE = (FAST, BF16X3, BF16)
"""The precisions that let errors be larger than a chain's."""
