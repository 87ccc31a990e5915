"""What `main` expects of its caller, as a digest that is linked into the image: names left out.

In: dtype codes and dimensions of inputs and outputs, devices, their libraries, CPU features. Out:
32 bytes. A loader compares them before it calls `main`, so a forged plan may rename a tensor, but
not change what `main` relies on. Not done here: linking it (``ingot_compiler.backends.host``).
"""

import struct

from .sha256 import sha256

Signature = tuple[int, tuple[int, ...]]
"""(dtype code, dims); a dim < 0 is -(symbol index + 1), as in the plan."""

DeviceSignature = tuple[int, int]
"""(kind code, index of its library or -1)"""

LibrarySignature = tuple[int, str, tuple[str, ...], int]
"""(kind code, target, features, count of kernels)"""


def interface_digest(
    inputs: "tuple[Signature, ...]",
    outputs: "tuple[Signature, ...]",
    devices: "tuple[DeviceSignature, ...]",
    libraries: "tuple[LibrarySignature, ...]",
    features: "tuple[str, ...]",
) -> bytes:
    """Return sha256 of i64 words and texts. Each list begins with its count; a text is followed by
    a zero byte.

    Words: per device kind and library; per input, then per output dtype, rank, dims; per library
    kind and count of kernels; count of the CPU features that the image needs, then per library that
    of its own. Texts: those features; per library target and features.

    >>> interface_digest(((0, (2, -1)),), (), ((0, -1),), (), ("avx2",)).hex()[:8]
    'aa6fcc47'
    """
    words: list[int] = []
    for rows in (
        devices,
        [(dtype, len(dims), *dims) for dtype, dims in inputs],
        [(dtype, len(dims), *dims) for dtype, dims in outputs],
        [(kind, kernel_count) for kind, _, _, kernel_count in libraries],
    ):
        words += [len(rows), *(word for row in rows for word in row)]
    words += [len(features), *(len(needed) for _, _, needed, _ in libraries)]
    texts = [*features, *(text for _, target, needed, _ in libraries for text in (target, *needed))]
    names = b"".join(text.encode() + b"\0" for text in texts)
    return sha256(struct.pack(f"<{len(words)}q", *words) + names)
