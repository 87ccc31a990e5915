"""The hook ``compile_support`` where a library needs nothing beside its kernels.

In: a target. Out: no bytes. Not done here: kernels (``compile_kernel``).
"""


def compile_support(target: str) -> bytes:
    """Return nothing."""
    del target
    return b""
