"""The suffix of a file that holds a program, and where its weights are.

In: a path. Out: ``PROGRAM``, paths. Not done here: reading one (``from_program``); this is imported
by every compilation.
"""

from __future__ import annotations

import os
from typing import cast

PROGRAM = "ingot-text"
"""The suffix without its dot; in the place of a stage, the text form of a program."""


def is_program(model: object) -> bool:
    """Whether what the user gives as a model is the path of a program."""
    if not isinstance(model, str | os.PathLike):
        return False
    return os.fspath(cast("str", model)).endswith(f".{PROGRAM}")


def weights_beside(path: str) -> str | None:
    """The file with the constants of a program, where it is there: ``NAME.npz`` beside
    ``NAME.ingot-text``."""
    beside = f"{path.removesuffix(f'.{PROGRAM}')}.npz"
    return beside if os.path.isfile(beside) else None
