"""Where results go: refused early when it cannot work, written whole or not at all.

In: a path, text. Out: a file. Not done here: bundles (``bundle``), the atomic step itself
(``ingot_artifacts.store``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ingot_artifacts.store.atomic import atomic_file
from ingot_compiler.ir.errors import UserError


def check_output(path: str, inputs: Sequence[str] = ()) -> None:
    """Refuse a bad place for a result before the work that would go into it.

    Raises:
        UserError: no such folder, a folder or a device in the file's place, one of ``inputs``
            itself, or no permission.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError(
            "no such output folder", where=path, why=f"{folder} is not a folder", do="make it first"
        )
    if os.path.isdir(path):
        raise UserError(
            "the output is a folder", where=path, why="expected a file name", do="add a file name"
        )
    if os.path.exists(path) and not os.path.isfile(path):
        why = "expected a regular file or a free name; the result is renamed over what is there"
        raise UserError(
            "the output is a device or a pipe", where=path, why=why, do="choose another name"
        )
    if any(
        os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)
        for other in inputs
    ):
        why = "it is also read; writing would destroy it"
        raise UserError(
            "the output is an input of the command", where=path, why=why, do="choose another name"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(
            "no permission to write the output",
            where=path,
            why=f"{folder} is not writable",
            do="choose another folder",
        )


def write_text(path: str, text: str) -> None:
    """Write a text file; on any error, Ctrl-C included, nothing is left.

    Raises:
        UserError: a bad place. OutputError: no space, or the disk failed.
    """
    check_output(path)
    with atomic_file(path) as file:
        file.write(text.encode())
