"""``frontend/perfect_hash``: every key has a slot of its own, and no other number is taken for one.

In: keys of many forms. Out: pass or fail; the oracle is a set. Not done here: lookups in models
(``test_ops_ml``, ``test_strings``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ingot_compiler.frontend.families.strings.perfect_hash import PerfectHash, perfect_hash

_WORD = (1 << 64) - 1
_COUNTS = (1, 2, 3, 10, 64, 65, 1000, 5000)
FORMS: dict[str, Callable[[int], npt.NDArray[Any]]] = {
    "from 0 on": np.arange,
    "around 0": lambda count: np.arange(count) - count // 2,
    "multiples": lambda count: np.arange(count) * 4096,
    "high bits alone": lambda count: np.arange(count) << 48,
    "any": lambda count: np.random.default_rng(count).integers(0, 1 << 62, count),
    "f32": lambda count: np.arange(count, dtype=np.float32).view(np.uint32),
    "f64": lambda count: np.arange(count, dtype=np.float64).view(np.uint64),
}


def _slot(hashed: PerfectHash, key: int) -> int:
    """As the module's text says it."""
    mixed = (key ^ key >> 32) * hashed.factor & _WORD
    if not hashed.turn_bits:
        return mixed >> 64 - hashed.slot_bits
    rest = mixed >> 64 - hashed.turn_bits - hashed.slot_bits & (1 << hashed.slot_bits) - 1
    return rest ^ hashed.turns[mixed >> 64 - hashed.turn_bits]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("count", _COUNTS)
@pytest.mark.parametrize("form", FORMS)
def test_each_key_is_found_and_no_other_number(form: str, count: int) -> None:
    """Also numbers beside keys, and the key that fills empty slots."""
    keys: npt.NDArray[np.uint64] = np.unique(FORMS[form](count).astype(np.uint64))
    hashed, listed = perfect_hash(keys), keys.tolist()
    known = set(listed)
    others = [(key + 1) & _WORD for key in listed]
    for number in [*listed, *others, *range(0, 1 << 64, 0x00F1E2D3C4B5A697)]:
        slot = _slot(hashed, number)
        assert (listed[hashed.order[slot]] == number) == (number in known)
