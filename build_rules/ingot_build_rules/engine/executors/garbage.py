"""How often Python looks for garbage in cycles, in processes that are ours alone.

In: nothing. Out: nothing. Not done here: processes that others own, such as one that calls
``ingot.compile``.
"""

import gc


def collect_rarely() -> None:
    """Values are trees, and freed without it: looking at all of them again and again takes a
    quarter of a build's time; every hundred thousand is still a tenth of a rebuild."""
    gc.set_threshold(1_000_000, 50, 1000)
