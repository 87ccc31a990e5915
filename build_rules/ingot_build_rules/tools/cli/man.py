"""Verb ``man``: manual pages of the command and of every verb.

In: a verb, or a folder. Out: one page on standard output, or all pages as files. Not done here: the
text of a page (``manual_page``).
"""

from __future__ import annotations

import argparse
import os

from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.manual_page import all_pages, command_page, verb_page
from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb
from ingot_compiler.ir.errors import UserError
from ingot_runtime import __version__

_WHERE = "command ingot man"


def run(arguments: argparse.Namespace) -> int:
    """Print a page, or write all."""
    if arguments.output is None:
        print(_page(arguments.verb), end="")
        return 0
    if arguments.verb is not None:
        why = f"-o writes all pages, got the verb {arguments.verb!r}"
        raise UserError("a folder for one page", _WHERE, why, "leave -o out, or the verb")
    console.print_lines(*write_pages(arguments.output))
    return 0


def _page(name: str | None) -> str:
    if name is None:
        return command_page(__version__)
    names = [verb for verb, _ in VERBS]
    if name not in names:
        from ingot_build_rules.tools.cli.shell.suggestions import suggest_verb

        what, why = f"no page for {name!r}", f"expected one of {', '.join(names)}"
        raise UserError(what, _WHERE, why, suggest_verb(name))
    return verb_page(read_verb(name), __version__)


def write_pages(folder: str) -> list[str]:
    """Write ``ingot.1`` and ``ingot-VERB.1`` for each verb into a folder, which is made where it is
    not there; return the paths.

    Raises:
        UserError: a bad place.
    """
    from ingot_build_rules.making.stages.output_file import write_text

    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError("the folder cannot be made", folder, why, "choose another one") from None
    texts = all_pages(__version__)
    paths = [os.path.join(folder, name) for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_text(path, text)
    return paths
