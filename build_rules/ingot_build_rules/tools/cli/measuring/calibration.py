"""Inputs to calibrate with, and calls of a model with them.

In: a path, bytes of a model. Out: inputs of each call, what a model gives. Not done here: what is
made of it (``quantize_blocks``, ``quantize_static``).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    Arrays = Mapping[str, npt.NDArray[Any]]
    Call = Callable[[Arrays], Arrays]

_ENDING = ".npz"


def calibration_files(path: str) -> list[str]:
    """The file, or those of a folder in the order of their names: one call of the model each.

    Raises:
        UserError: a folder without any.
    """
    if not os.path.isdir(path):
        return [path]
    found = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    files = [file for file in found if file.endswith(_ENDING)]
    if not files:
        why = f"expected files that end in {_ENDING}, one for each call, got none"
        do = "write each with numpy.savez(path, NAME=array, ...)"
        raise UserError("nothing to calibrate with", path, why, do)
    return files


@contextmanager
def compiled(model: bytes) -> Generator[Call]:
    """A model, compiled for this machine, as a function of inputs."""
    import ingot_runtime
    from ingot_build_rules.making.options.options import make_options
    from ingot_build_rules.making.stages.compile_model import compile_model

    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        path = os.path.join(folder, "m.ingot")
        compile_model(model, make_options(["native"])).save(path)
        with ingot_runtime.load(path) as session:
            yield lambda inputs: session.run(dict(inputs))


def call_with(call: Call, file: str) -> Arrays:
    """Call with the inputs of a file; an error of the loader says which file it was."""
    from ingot_runtime.errors import InputError
    from ingot_runtime.npz import read_npz

    inputs = read_npz(file)
    try:
        return call(inputs)
    except InputError as error:
        where = f"{file}: {error.where}"
        raise UserError(error.what, where, error.why, error.do) from error


@dataclass(slots=True)
class Distance:
    """How far tensors are from those that were expected, over all calls."""

    apart: float = 0.0
    whole: float = 0.0

    def add(self, got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
        """Compare those of one call."""
        import numpy as np

        wanted = expected.astype(np.float64)
        self.apart += float(((got - wanted) ** 2).sum())
        self.whole += float((wanted * wanted).sum())

    @property
    def relative(self) -> float:
        """Rms of the difference by the rms of what was expected."""
        return float((self.apart / self.whole) ** 0.5) if self.whole else float(self.apart**0.5)


def distances(
    names: Sequence[str], files: Sequence[str], expected: Call, got: Call
) -> dict[str, float]:
    """The distances between two models of those named tensors that are floats."""
    found = {name: Distance() for name in names}
    for file in files:
        wanted, given = call_with(expected, file), call_with(got, file)
        for name in names:
            if wanted[name].dtype.kind == "f" and wanted[name].size:
                found[name].add(given[name], wanted[name])
            else:
                found.pop(name, None)
    return {name: distance.relative for name, distance in found.items()}
