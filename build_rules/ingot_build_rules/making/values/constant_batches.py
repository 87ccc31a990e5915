"""Which constants are packed together: an action, a file and a record for each of the many small
ones would take longer than packing them.

In: names of constants and the bytes of the largest value on the way to each. Out: groups of
indices. Not done here: packing (``pack_constant``), where constants lie (``weight_layout``).

A group ends behind a constant whose name says so, so that a constant more or less changes one group
and not all behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

_BATCHED_WORK_BYTES_MAX = 32 << 10
_COUNT_MAX = 64
_ENDING_DIGIT = "0"  # a name's first one, of 16: a group has 16 constants on average


def batches(constants: Sequence[tuple[str, int]]) -> list[list[int]]:
    """Return groups of indices of (name, bytes) pairs, in order; of equal names the first alone.

    ``name``: hexadecimal digits of a digest; bytes: of the largest value while it is packed.
    """
    found: list[list[int]] = []
    small: list[int] = []
    first = {name: index for index, (name, _) in reversed(list(enumerate(constants)))}
    for index in sorted(first.values()):
        name, work_bytes = constants[index]
        if work_bytes > _BATCHED_WORK_BYTES_MAX:
            found.append([index])
            continue
        small.append(index)
        if name[0] == _ENDING_DIGIT or len(small) == _COUNT_MAX:
            found.append(small)
            small = []
    return [*found, small] if small else found
