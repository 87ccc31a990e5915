"""Where results go: refused early when it cannot work, written whole or not at all.

In: a path, text. Out: a file. Not done here: bundles (``bundle``), the atomic step itself (``ingot_artifacts.store``).
"""

from __future__ import annotations

import os

from ingot_artifacts.store.atomic import atomic_file
from ingot_compiler.ir.errors import UserError


def check_output(path: str) -> None:
    """Refuse a bad place for a result before the work that would go into it.

    Raises:
        UserError: no such folder, a folder in the file's place, or no permission.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UserError("no such output folder", where=path, why=f"{folder} is not a folder", do="make it first")
    if os.path.isdir(path):
        raise UserError("the output is a folder", where=path, why="expected a file name", do="add a file name")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(
            "no permission to write the output", where=path, why=f"{folder} is not writable", do="choose another folder"
        )


def write_text(path: str, text: str) -> None:
    """Write a text file; on any error, Ctrl-C included, nothing is left.

    Raises:
        UserError: a bad place. OutputError: no space, or the disk failed.
    """
    check_output(path)
    with atomic_file(path) as file:
        file.write(text.encode())
