"""Single nodes of ai.onnx.ml with random attributes: scalers, linear models, trees.

In: a ``Drawing``. Out: it, one node longer. Not done here: labels, which jump where rounding
decides.
"""

from __future__ import annotations

import numpy as np
from tests.fuzz.drawing import Drawing
from tests.fuzz.program import ML
from tests.harness.ml_harness import MODES, classic_trees


def _rows(d: Drawing, columns: int = 1) -> str:
    """A matrix of f32 with some columns."""
    return d.pick(
        lambda array: array.dtype == np.float32 and array.ndim == 2 and array.shape[1] >= columns
    )


def _numbers(d: Drawing, count: int) -> list[float]:
    drawn: list[float] = d.numbers((count,), np.float32).tolist()
    return drawn


def scaler(d: Drawing) -> None:
    """One number for all columns, or one for each."""
    x = _rows(d)
    counts = (1, d.shape(x)[1])
    d.add(
        "Scaler", x, domain=ML,
        offset=_numbers(d, d.one_of(counts)), scale=_numbers(d, d.one_of(counts)),
    )  # fmt: skip


def normalizer(d: Drawing) -> None:
    """Every norm."""
    d.add("Normalizer", _rows(d), domain=ML, norm=d.one_of(("MAX", "L1", "L2")))


def linear(d: Drawing) -> None:
    """Some targets."""
    x, targets = _rows(d), d.integer(1, 4)
    count = d.shape(x)[1] * targets
    d.add(
        "LinearRegressor", x, domain=ML, targets=targets, post_transform="NONE",
        coefficients=_numbers(d, count), intercepts=_numbers(d, targets),
    )  # fmt: skip


def columns(d: Drawing) -> None:
    """Picked columns, some twice."""
    x = _rows(d)
    places = d.random.integers(0, d.shape(x)[1], d.integer(1, 5))
    d.add("ArrayFeatureExtractor", x, d.ints(*places.tolist()), domain=ML)


def trees(d: Drawing) -> None:
    """Trees of all modes over four columns."""
    x, targets = _rows(d, 4), d.integer(1, 3)
    attributes = classic_trees(
        d.integer(1, 20), d.integer(1, 5), "target", targets, d.integer(0, 1 << 20),
        MODES if d.chance(0.5) else (d.one_of(MODES),),
    )  # fmt: skip
    function = d.one_of(("SUM", "AVERAGE", "MIN", "MAX"))
    d.add(
        "TreeEnsembleRegressor", x, domain=ML, n_targets=targets, aggregate_function=function,
        **attributes,
    )  # fmt: skip


ML_OPS = (scaler, normalizer, linear, columns, trees, trees)
