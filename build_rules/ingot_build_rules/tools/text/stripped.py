"""Whether a bundle was compiled with ``--strip``.

In: a bundle's description. Out: an answer. Not done here: what is left out (rule ``bundle``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ingot_runtime.option_ref import OptionRef

_WHAT = "nodes have numbers instead of names, kernels have no assembly"
STRIPPED = f"stripped: {_WHAT} ({OptionRef('strip')})"


def is_stripped(described: Mapping[str, Any]) -> bool:
    """Whether the bundle tells neither the names of nodes nor the loops of kernels, as its lock
    says; anybody may have written the lock."""
    options: object = described["lock"].get("options")
    if not isinstance(options, Mapping):
        return False
    return cast("Mapping[str, object]", options).get("strip") is True
