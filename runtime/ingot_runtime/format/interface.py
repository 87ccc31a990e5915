"""What `main` expects of its caller, as a digest that is linked into the image: names left out.

In: dtype codes and dimensions of inputs and outputs, the count of devices, CPU features. Out: 32 bytes. A loader compares them
before it calls `main`, so a forged plan may rename a tensor but not change its element type, rank or size, nor hide
a CPU feature.
Not done here: linking it (``ingot_compiler.codegen``).
"""

import struct

from .sha256 import sha256

Signature = tuple[int, tuple[int, ...]]
"""(dtype code, dims); a dim < 0 is -(symbol index + 1), as in the plan."""

Shape = tuple[int | str, ...]
"""Sizes, and names of symbols."""


def symbols_of(shapes: "tuple[Shape, ...]") -> tuple[str, ...]:
    """Return the symbols in the order of first appearance: that is their index everywhere.

    `shapes` are those of the inputs, then those of the outputs.
    """
    return tuple(dict.fromkeys(dim for shape in shapes for dim in shape if isinstance(dim, str)))


def dims_of(shape: Shape, symbols: tuple[str, ...]) -> tuple[int, ...]:
    """Return sizes as they are and symbols as ``-(index + 1)``.

    >>> dims_of((2, "batch"), ("batch",))
    (2, -1)
    """
    return tuple(dim if isinstance(dim, int) else -(symbols.index(dim) + 1) for dim in shape)


def interface_digest(
    inputs: "tuple[Signature, ...]",
    outputs: "tuple[Signature, ...]",
    device_count: int,
    features: "tuple[str, ...]",
) -> bytes:
    """Return sha256 of the i64 words: device count, then per list its length and per tensor dtype, rank, dims; behind
    them the names of the CPU features that the image needs, each followed by a zero byte.

    >>> interface_digest(((0, (2, -1)),), (), 1, ("avx2",)).hex()[:8]
    'cf522acd'
    """
    words = [device_count]
    for tensors in (inputs, outputs):
        words.append(len(tensors))
        for dtype, dims in tensors:
            words += [dtype, len(dims), *dims]
    names = b"".join(name.encode() + b"\0" for name in features)
    return sha256(struct.pack(f"<{len(words)}q", *words) + names)
