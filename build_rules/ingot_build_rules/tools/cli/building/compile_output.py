"""Where ``ingot compile`` writes: the file of ``-o``, one named after the model, or standard output.

In: arguments. Out: a path to write, and what lies there on standard output if that was asked for.
Not done here: whether a place is good (``stages.output_file``), which options go together
(``compile_options``).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from ingot_compiler.ir.errors import UserError

STANDARD_OUTPUT = "-"


def default_output(model: str, suffix: str) -> str:
    """Return the name of the model's file with another suffix, in the current folder."""
    return os.path.splitext(os.path.basename(os.path.normpath(model)))[0] + suffix


@contextmanager
def compile_output(arguments: argparse.Namespace) -> Generator[str | None]:
    """Give the path that the block writes; None for a text on standard output.

    A file for standard output is made in a temporary folder, and copied when the block has ended:
    a compilation that fails writes none of it.

    Raises:
        UserError: the file would go to a terminal.
    """
    if arguments.to is not None:
        yield None if arguments.output == STANDARD_OUTPUT else arguments.output
        return
    suffix = ".o" if arguments.from_ == "loops" else ".ingot"
    name = default_output(arguments.model, suffix)
    if arguments.output != STANDARD_OUTPUT:
        yield arguments.output or name
        return
    if sys.stdout.isatty():
        why = "expected a file or a pipe, got a terminal, which would take the bytes as commands"
        do = f"redirect it (> {name}), or name a file with -o"
        raise UserError("no file is written to a terminal", "option -o -", why, do)
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        path = os.path.join(folder, name)
        yield path
        with open(path, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
