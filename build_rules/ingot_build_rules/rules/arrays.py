"""Arrays for a session from a file or a fixed seed.

In: a session's inputs, a path. Out: arrays by name. Not done here: checking them against the session (it does).
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
        UserError: no such file, not an ``.npz`` file, or a symbolic dimension and no file.
    """
    return make_inputs(session.inputs) if path is None else read_npz(path)


def read_npz(path: str) -> dict[str, Any]:
    """Read all arrays of an ``.npz`` file; pickled objects are refused."""
    import zipfile
    import zlib

    import numpy as np

    try:
        # Opened here: numpy leaves the file open when it is no archive.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise UserError(
            "no such inputs file", where=path, why="expected an .npz file, got nothing there", do="check the path"
        ) from None
    except TypeError:
        # What numpy gives for an .npy file is no context manager.
        raise UserError(
            "not an .npz file",
            where=path,
            why="one array, not an archive of arrays by name",
            do="write it with numpy.savez",
        ) from None
    except (
        OSError,
        ValueError,
        AttributeError,
        EOFError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError("not an .npz file", where=path, why=why, do="write it with numpy.savez") from None


def make_inputs(specs: tuple[TensorSpec, ...]) -> dict[str, Any]:
    """Make standard normal numbers for floats, zeros for all else (they may be indices)."""
    import numpy as np

    generator = np.random.default_rng(_SEED)
    feed: dict[str, Any] = {}
    for spec in specs:
        shape = [size for size in spec.shape if isinstance(size, int)]
        if len(shape) < len(spec.shape):
            raise UserError(
                f"input {spec.name!r} has no fixed shape",
                where=f"input {spec.name!r}",
                why=f"expected sizes, got {list(spec.shape)}",
                do="give the inputs with --inputs F.npz",
            )
        if spec.dtype.startswith("float"):
            feed[spec.name] = generator.standard_normal(shape).astype(spec.dtype)
        else:
            feed[spec.name] = np.zeros(shape, spec.dtype)
    return feed


def write_npz(path: str, arrays: dict[str, Any]) -> None:
    """Write arrays to an ``.npz`` file, whole or not at all.

    Not by ``numpy.savez``: there a tensor must not be called ``file``.
    """
    import zipfile

    import numpy as np

    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
