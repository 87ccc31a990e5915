"""Arrays for a session from a file or a fixed seed.

In: a session's inputs, a path or sizes. Out: arrays by name. Not done here: checking them against
the session (it does).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingot_artifacts.store.atomic import atomic_file
from ingot_build_rules.tools.cli.shell.call_shapes import call_shapes
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session, TensorSpec

_SEED = 1


def read_inputs(
    session: Session, path: str | None, shapes: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """Read an ``.npz`` file, or make numbers that are the same every time; ``shapes``: the values
    of ``--shape``, for dimensions whose size the bundle leaves open.

    Raises:
        UserError: a dimension whose size nobody says, a shape that does not fit, or a file and
            shapes. InputError: no such file, or not an ``.npz`` file.
    """
    has_values = session.loaded.plan.values is not None
    if path is None:
        declared = {spec.name: spec.shape for spec in session.inputs}
        return make_inputs(session.inputs, call_shapes(declared, shapes))
    if shapes:
        why, do = "the arrays of the file have their shapes", "leave one of them out"
        raise UserError("inputs and shapes are given", "options --inputs, --shape", why, do)
    from ingot_runtime.npz import read_npz

    found = read_npz(path)
    if not has_values:
        return found
    from ingot_runtime.executor.values import of_arrays

    return of_arrays(session, found)


def make_inputs(
    specs: Sequence[TensorSpec], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """Make standard normal numbers for floats, zeros for all else (they may be indices)."""
    import numpy as np

    generator = np.random.default_rng(_SEED)
    feed: dict[str, Any] = {}
    for spec in specs:
        shape = shapes[spec.name]
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
