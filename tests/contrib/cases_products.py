"""Products of com.microsoft: FusedMatMul.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

import numpy as np
from tests.contrib.contrib_case import Array, ContribCase, drawn


def _fused_mat_mul(
    name: str, a: Array, b: Array, expected: Array, **attributes: int | float
) -> ContribCase:
    return ContribCase(f"FusedMatMul {name}", "FusedMatMul", [a, b], [expected], attributes)


_A, _B = drawn(3, 4, 5), drawn(3, 5, 2, seed=1)
_FIRST = np.moveaxis(_A, -2, 0)  # the rows before the batch
CASES = [
    _fused_mat_mul("plain", _A, _B, _A @ _B),
    _fused_mat_mul("alpha", _A, _B, np.float32(0.125) * (_A @ _B), alpha=0.125),
    _fused_mat_mul("transA", _A.swapaxes(1, 2), _B, _A @ _B, transA=1),
    _fused_mat_mul("transB", _A, _B.swapaxes(1, 2), _A @ _B, transB=1),
    _fused_mat_mul("transBatchA", _FIRST, _B, _A @ _B, transBatchA=1),
    _fused_mat_mul("both of A", _FIRST.transpose(2, 1, 0), _B, _A @ _B, transBatchA=1, transA=1),
    _fused_mat_mul("transBatchB", _A, np.moveaxis(_B, -2, 0), _A @ _B, transBatchB=1),
    _fused_mat_mul("vector", _A, _B[0, :, 0], _A @ _B[0, :, 0], transB=1),
]
