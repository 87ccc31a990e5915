"""The suffix of a file that holds a program, and where its weights are.

In: a path. Out: whether it has the suffix, paths. Not done here: reading one (``from_program``); this is imported
by every compilation.
"""

from __future__ import annotations

import os
from typing import cast

from ingot_build_rules.rules.option_rows import PROGRAM


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
