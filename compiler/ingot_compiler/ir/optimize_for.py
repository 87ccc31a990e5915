"""What a bundle is optimised for where a faster kernel needs more bytes: what a user may choose.

In: nothing. Out: ``OPTIMIZE_FOR``. Not done here: what follows from it (``docs/command-line.md``
says it).
"""

SPEED, SIZE = OPTIMIZE_FOR = ("speed", "size")
"""Kernels that are faster with weights in a larger form; weights as large as in the model."""
