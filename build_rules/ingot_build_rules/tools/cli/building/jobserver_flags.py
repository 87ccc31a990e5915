"""Where a make above us says how many jobs it shares out: the one place that reads the environment
for it.

In: nothing. Out: the text of ``MAKEFLAGS``. Not done here: what it means
(``engine.executors.jobserver``).
"""

import os


def makeflags() -> str:
    """Return what make has left in the environment."""
    return os.environ.get("MAKEFLAGS", "")
