"""Where the parts of a cache lie in its folder.

In: the folder that the user names. Out: the folders inside. Not done here: making them (``cache``).

Everything lies in ``v1/``; a program that needs another layout makes another folder beside it.
"""

from __future__ import annotations

import os

_VERSION = "v1"
# Each before those inside it: `makedirs` gives its mode to the last one alone.
_FOLDERS = ("", "cas", "cas/sha256", "tmp", "quarantine", "index", "roots")


def versioned(path: str) -> str:
    """Return the folder in a cache's folder that this layout uses."""
    return os.path.join(path, _VERSION)


def inner_folders(folder: str) -> list[str]:
    """Return all folders of this layout, from the versioned one on."""
    return [os.path.join(folder, name) if name else folder for name in _FOLDERS]
