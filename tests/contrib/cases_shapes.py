"""Ops of com.microsoft that move and pick elements.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

import numpy as np
from tests.contrib.contrib_case import ContribCase, drawn

_X = drawn(3, 4)
_IMAGE, _GRID = drawn(1, 2, 4, 5), np.zeros((1, 1, 2, 2), np.float32)
_GRID[0, 0] = [[-1, -1], [1, 1]]
_NUMBERS = np.array([2, 1, 1, 3, 4, 3], np.float32)
_NEAREST = {"mode": "nearest", "align_corners": 1}
CASES = [
    ContribCase("Trilu", "Trilu", [_X], [np.triu(_X)]),
    ContribCase("Trilu lower", "Trilu", [_X, np.array(-1)], [np.tril(_X, -1)], {"upper": 0}),
    ContribCase(
        "Pad",
        "Pad",
        [_X, np.array([1, 0, 0, 2]), np.array([7], np.float32)],
        [np.pad(_X, ((1, 0), (0, 2)), constant_values=7)],
        constant=(1,),
    ),
    ContribCase(
        "Pad reflect",
        "Pad",
        [_X, np.array([[0, 1, 0, 2]])],
        [np.pad(_X, ((0, 0), (1, 2)), "reflect")],
        {"mode": "reflect"},
        constant=(1,),
    ),
    ContribCase(
        "GridSample",
        "GridSample",
        [_IMAGE, _GRID],
        [_IMAGE[:, :, [0, 3], [0, 4]][:, :, None]],
        _NEAREST,
        needs_sizes=True,
    ),
    ContribCase("GatherND", "GatherND", [_X, np.array([[0], [2]])], [_X[[0, 2]]], constant=(1,)),
    ContribCase(
        "ExpandDims",
        "ExpandDims",
        [_X, np.array(1, np.int32)],
        [_X[:, None]],
        constant=(1,),
    ),
    ContribCase(
        "ExpandDims from the back",
        "ExpandDims",
        [_X, np.array(-1, np.int32)],
        [_X[..., None]],
        constant=(1,),
    ),
    ContribCase("Range", "Range", [np.array(2), np.array([9])], [np.arange(2, 9)], constant=(0, 1)),
    ContribCase(
        "Range with a step",
        "Range",
        [np.array(9.0), np.array(2.0), np.array(-2.0)],
        [np.array([9.0, 7, 5, 3])],
        constant=(0, 1, 2),
    ),
    ContribCase(
        "Unique",
        "Unique",
        [_NUMBERS],
        [np.array([2, 1, 3, 4], np.float32), np.array([0, 1, 1, 2, 3, 2]), np.array([1, 2, 2, 1])],
    ),
]
