"""A project's test: a bundle, run on given inputs by the loader, gives the expected outputs.

In: a test's declaration, the folder that its paths are relative to. Out: nothing, or the error of
the first difference. Not done here: choosing tests, remembering which passed (``build_project``).
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

import ingot_runtime
from ingot_build_rules.project.model import TestSpec
from ingot_compiler.ir.errors import UserError, VerificationError
from ingot_runtime.npz import read_npz

Array = npt.NDArray[Any]


def run_test(spec: TestSpec, bundle: str, folder: str) -> None:
    """Run a test.

    Raises:
        VerificationError: an output differs. UserError: a file is not there or does not fit. An
        error of the loader.
    """
    inputs = read_npz(os.path.join(folder, spec.inputs))
    expected = read_npz(os.path.join(folder, spec.outputs))
    with ingot_runtime.load(bundle, threads=spec.threads, executor=spec.executor) as session:
        found = session.run(inputs)
    where = f"test {spec.name!r}, bundle {bundle}"
    unknown = sorted(expected.keys() - found.keys())
    if unknown:
        what, do = "a test names outputs that the model has not", f"correct {spec.outputs}"
        why = f"expected outputs {', '.join(unknown)}; the model has {', '.join(found)}"
        raise UserError(what, where, why, do)
    for name, wanted in sorted(expected.items()):
        _compare(spec, name, wanted, found[name], where)


def _compare(spec: TestSpec, name: str, wanted: Array, got: Array, where: str) -> None:
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        why = f"expected {wanted.dtype} {list(wanted.shape)}, got {got.dtype} {list(got.shape)}"
        what = f"output {name!r} of a test has another type"
        raise VerificationError(what, where, why, f"correct {spec.outputs}")
    wrong = ~_close(spec, wanted, got)
    if wrong.any():
        at = tuple(int(index) for index in np.argwhere(wrong)[0])
        count = f"{int(wrong.sum())} of {wrong.size} elements differ"
        why = f"expected {wanted[at]}, got {got[at]} at {list(at)}; {count}"
        do = f"find the fault with `ingot compile --check`, or correct {spec.outputs}"
        raise VerificationError(f"output {name!r} of a test differs", where, why, do)


def _close(spec: TestSpec, wanted: Array, got: Array) -> npt.NDArray[np.bool_]:
    """Floats by a share of the largest finite magnitude; infinities, NaN and everything else
    exactly."""
    is_nan = (wanted != wanted) & (got != got)  # noqa: PLR0124
    equal = np.asarray((wanted == got) | is_nan)
    if wanted.dtype.kind != "f":
        return equal
    finite = np.isfinite(wanted) & np.isfinite(got)
    exact, real = wanted.astype(np.float64), got.astype(np.float64)
    scale = float(np.abs(exact[np.isfinite(exact)]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        near = np.abs(exact - real) <= spec.absolute_tolerance + spec.relative_tolerance * scale
    return np.asarray(equal | (finite & near))
