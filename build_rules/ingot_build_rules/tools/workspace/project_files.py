"""The project file and the folders around it, on the disk.

In: a folder to start from. Out: the file's path, its text, the entries of folders. Not done here:
what they mean (``parse``, ``expand``).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from ingot_build_rules.making.project.model import FILE_NAME
from ingot_build_rules.making.project.wildcards import FolderEntry, ListFolder
from ingot_compiler.ir.errors import BuildError, UserError
from ingot_runtime.format.file import open_without_waiting

_NAME_IT = "write one for the models here with `ingot init`, or name its folder with -C DIR"


def find_project(start: str = ".") -> str:
    """Return the path of the nearest ``ingot.toml``: in ``start``, else in a folder above it.

    The path is relative to the current folder if ``start`` is.

    Raises:
        UserError: there is none, or no such folder.
    """
    if not os.path.isdir(start):
        why = "expected the folder of a project"
        raise UserError("no such folder", start, why, "check the path")
    first = folder = os.path.abspath(start)
    while not os.path.isfile(os.path.join(folder, FILE_NAME)):
        above = os.path.dirname(folder)
        if above == folder:
            why = f"expected {FILE_NAME} in this folder or in one above it, got none"
            raise UserError("no project file", first, why, _NAME_IT)
        folder = above
    found = os.path.join(folder, FILE_NAME)
    return found if os.path.isabs(start) else os.path.relpath(found)


def read_project_file(path: str) -> str:
    """Return the text of a project file.

    Raises:
        UserError: no such file, not readable, or not UTF-8. BuildError: the disk failed.
    """
    content = _read(path)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        where, do = f"{path}:{line}", "save it as UTF-8"
        why = f"expected UTF-8, got byte 0x{content[error.start]:02x}"
        raise UserError("the project file is no text", where, why, do) from None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", opener=open_without_waiting) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        why = f"expected {FILE_NAME}, got nothing there"
        raise UserError("no such project file", path, why, _NAME_IT) from None
    except IsADirectoryError:
        what, do = "the project file is a folder", "name the file in it"
        raise UserError(what, path, "expected a file", do) from None
    except PermissionError:
        do = "give yourself read permission"
        raise UserError("the project file is not readable", path, "permission denied", do) from None
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno == errno.EINVAL:
            raise UserError("the project file is not a file", path, why, "name a file") from None
        raise BuildError("the project file cannot be read", path, why, "check the disk") from error


def folder_lister(root: str) -> ListFolder:
    """Return the function that lists folders for globs, relative to ``root``."""

    def list_folder(folder: str) -> Sequence[FolderEntry]:
        try:
            with os.scandir(os.path.join(root, folder)) as found:
                return [FolderEntry(item.name, item.is_dir(), item.is_symlink()) for item in found]
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except PermissionError:
            do = "give yourself read permission"
            raise UserError("a folder is not readable", folder, "permission denied", do) from None
        except OSError as error:
            why = error.strerror or str(error)
            raise BuildError("a folder cannot be read", folder, why, "check the disk") from error

    return list_folder
