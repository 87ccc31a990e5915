"""``philox``: 64 random bits for each counter and key (what ONNX's random ops are made of).

In: two u64 tensors. Out: u64, the broadcast shape. Not done here: the generator (``ir/philox``),
lowering.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.philox import philox
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import binary
from ingot_compiler.ir.traits import Trait


def _bits(counter: Array, key: Array) -> Array:
    return np.asarray(philox(counter, key, lambda x, count: x >> np.uint64(count)))


OP = CoreOp(
    "philox", binary(frozenset(("u64",))), directly(_bits), traits=Trait.ELEMENTWISE | Trait.EXACT
)
