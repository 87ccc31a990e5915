"""Writes results to files: an impossible path is refused early, and a file is written wholly or not
at all.

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
    fault = _fault(path, os.path.dirname(os.path.abspath(path)), inputs)
    if fault is not None:
        what, why, do = fault
        raise UserError(what, path, why, do)


def check_output_folder(path: str) -> None:
    """Refuse a folder that does not take files.

    Raises:
        UserError: no such folder, or no permission.
    """
    if not os.path.isdir(path):
        raise UserError("no such output folder", path, f"{path} is not a folder", "make it first")
    if not os.access(path, os.W_OK | os.X_OK):
        why = f"{path} is not writable"
        raise UserError("no permission to write there", path, why, "choose another folder")


def _fault(path: str, folder: str, inputs: Sequence[str]) -> tuple[str, str, str] | None:
    """What is wrong with a place, why, and what to do; None if nothing is."""
    if not os.path.isdir(folder):
        return "no such output folder", f"{folder} is not a folder", "make it first"
    if os.path.isdir(path):
        return "the output is a folder", "expected a file name", "add a file name"
    if os.path.exists(path) and not os.path.isfile(path):
        why = "expected a regular file or a free name; the result is renamed over what is there"
        return "the output is a device or a pipe", why, "choose another name"
    if os.path.exists(path) and any(_is_same_file(path, other) for other in inputs):
        why = "it is also read; writing would destroy it"
        return "the output is an input of the command", why, "choose another name"
    if not os.access(folder, os.W_OK | os.X_OK):
        why = f"{folder} is not writable"
        return "no permission to write the output", why, "choose another folder"
    return None


def _is_same_file(path: str, other: str) -> bool:
    return os.path.exists(other) and os.path.samefile(path, other)


def write_text(path: str, text: str) -> None:
    """Write a text file, paths in it with the bytes that they have; on any error, Ctrl-C included,
    nothing is left.

    Raises:
        UserError: a bad place. OutputError: no space, or the disk failed.
    """
    check_output(path)
    with atomic_file(path) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
