"""How pure functions read weights: by number, through a reader that the rules pass in.

In: a number, as text. Out: the weight's bytes. Not done here: storage, recording of the reads (both
in ``build_rules``).
"""

from collections.abc import Callable

ConstantReader = Callable[[str], memoryview]
"""number of a weight -> its dense little-endian bytes, read-only."""

ConstantWriter = Callable[[memoryview], str]
"""bytes of a weight -> its number, the same for equal bytes; the rule stores them as an artifact of
their own."""
