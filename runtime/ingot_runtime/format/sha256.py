"""sha256 without the 3 ms that importing hashlib costs, where that pays.

In: bytes. Out: 32 bytes. Not done here: hashing of weights (BLAKE3, by compiled code).
"""

try:
    from _sha2 import sha256 as _sha256  # type: ignore[import-not-found]  # CPython 3.12 and later
except ImportError:
    try:
        from _sha256 import sha256 as _sha256  # type: ignore[import-not-found]  # not in the stubs
    except ImportError:
        from hashlib import sha256 as _sha256

# The built-in module is there at once but slow (0.17 GB/s); hashlib loads OpenSSL (1.3 GB/s).
_SMALL_SIZE_BYTES = 400_000
# The module of CPython 3.12 and 3.13 writes to memory without a look whether it got any. To take
# and give back more than it needs, and more than any cache of small pieces keeps, is to know that
# there is some.
_BUFFER_BYTES = 8192


def sha256(data: "bytes | bytearray | memoryview") -> bytes:
    """Return the digest of `data`: 32 bytes.

    Raises:
        MemoryError: there is no memory to hash in.
    """
    bytes(_BUFFER_BYTES)
    if len(data) <= _SMALL_SIZE_BYTES:
        # The stubs do not know the built-in modules.
        return bytes(_sha256(data).digest())  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    import hashlib

    return hashlib.sha256(data).digest()
