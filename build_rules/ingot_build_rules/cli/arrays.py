"""Arrays for a session from a file or a fixed seed.

In: a session's inputs, a path. Out: arrays by name. Not done here: checking them against the
session (it does).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ingot_artifacts.store.atomic import atomic_file
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session, TensorSpec

_SEED = 1


def read_inputs(session: Session, path: str | None) -> dict[str, Any]:
    """Read an ``.npz`` file, or make numbers that are the same every time.

    Raises:
        UserError: a symbolic dimension and no file. InputError: no such file, or not an ``.npz``
            file.
    """
    if path is None:
        return make_inputs(session.inputs)
    from ingot_runtime.npz import read_npz

    return read_npz(path)


def make_inputs(specs: tuple[TensorSpec, ...]) -> dict[str, Any]:
    """Make standard normal numbers for floats, zeros for all else (they may be indices)."""
    import numpy as np

    generator = np.random.default_rng(_SEED)
    feed: dict[str, Any] = {}
    for spec in specs:
        shape = [size for size in spec.shape if isinstance(size, int)]
        if len(shape) < len(spec.shape):
            where, why = f"input {spec.name!r}", f"expected sizes, got {list(spec.shape)}"
            do = "give the inputs with --inputs F.npz"
            raise UserError(f"{where} has no fixed shape", where, why, do)
        if spec.dtype.startswith("float"):
            feed[spec.name] = generator.standard_normal(shape).astype(spec.dtype)
        else:
            feed[spec.name] = np.zeros(shape, spec.dtype)
    return feed


def write_arrays(path: str, arrays: dict[str, Any]) -> None:
    """Write arrays to an ``.npz`` file, whole or not at all."""
    from ingot_runtime.npz import write_npz

    with atomic_file(path) as file:
        write_npz(file, arrays)
