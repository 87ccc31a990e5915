"""How pure functions read weights: by digest, through a reader that the rules pass in.

In: a digest. Out: the constant's bytes. Not done here: storage, recording of the reads (both in ``build_rules``).
"""

from collections.abc import Callable

ConstantReader = Callable[[str], memoryview]
"""digest (64 hex digits of sha256 over the dense little-endian bytes) -> those bytes, read-only."""

ConstantWriter = Callable[[memoryview], str]
"""bytes of a folded constant -> its digest; the rule stores them as an artifact of their own."""
