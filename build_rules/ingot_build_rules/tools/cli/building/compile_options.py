"""Which options of ``ingot compile`` go together.

In: arguments. Out: nothing, or ``UserError``. Not done here: values of single options (``usage``,
``options.options``).
"""

from __future__ import annotations

import argparse
import os

from ingot_build_rules.making.options.option_rows import (
    GRAPH,
    LOOPS,
    PLACED,
    PROGRAM,
    ROWS,
    spelling,
)
from ingot_build_rules.tools.cli.building.compile_output import STANDARD_OUTPUT
from ingot_build_rules.tools.cli.shell.options import attribute, compile_option
from ingot_build_rules.tools.text.stages import FROM_LOOPS_TO, STAGES
from ingot_compiler.ir.errors import UserError

_WHERE = "command ingot compile"
_OF_A_MODEL = ("weights", "check", "depfile")
"""Options that are about more than kernels, beside those whose rows say so."""


def check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that contradict each other.

    Raises:
        UserError: names them.
    """
    to, output = arguments.to, arguments.output
    piped = output == STANDARD_OUTPUT or (output is None and to is not None)
    if arguments.depfile is not None and piped:
        why = "a depfile says what the output is made from, and standard output has no name"
        raise UserError("a depfile without an output", _WHERE, why, "add -o OUT.ingot")
    if arguments.json and output == STANDARD_OUTPUT:
        why = "-o - writes the result there, --json its one line"
        raise UserError("two results on standard output", _WHERE, why, "give -o a file")
    if to is not None and arguments.check is not None:
        do = "leave --to or --check out"
        raise UserError("nothing to check", _WHERE, "--to writes no bundle", do)
    if arguments.selftest is not None and (to is not None or arguments.from_ == LOOPS):
        why = "no bundle is written that could keep it"
        raise UserError("nothing to test", _WHERE, why, "leave --selftest out")
    if arguments.graph is not None and not os.path.isdir(arguments.model):
        why = "--graph names one of a folder of graphs"
        raise UserError("a graph of a file", _WHERE, why, "leave --graph out")
    has_text = arguments.from_ is not None or to in (GRAPH, PLACED)
    if arguments.weights is not None and not has_text:
        why = "--weights belongs to --from, and to --to graph or placed"
        raise UserError("weights without a text of a stage", _WHERE, why, "leave --weights out")
    if arguments.from_ is not None:
        _check_from(arguments, arguments.from_)


def _check_from(arguments: argparse.Namespace, stage: str) -> None:
    """Refuse what the text of a stage says already, and a stage that comes before it."""
    given = vars(arguments)
    said = [
        spelling(field)
        for field, row in ROWS.items()
        if stage in row.said_by
        and given[attribute(field)] not in ([], False, compile_option(field).default)
    ]
    said += [name for name in _OF_A_MODEL if stage == LOOPS and given[name] is not None]
    for name in said[:1]:
        why = f"the text of a {_named(stage)} says it already, or has no place for it"
        what = f"--{name} with {_given(stage)}"
        raise UserError(what, _WHERE, why, f"leave --{name} out")
    first = GRAPH if stage == PROGRAM else stage
    later = FROM_LOOPS_TO if stage == LOOPS else STAGES[STAGES.index(first) :]
    if arguments.to is not None and arguments.to not in later:
        what = f"--to {arguments.to} with {_given(stage)}"
        why = f"expected one of {', '.join(later)}, got {arguments.to!r}"
        raise UserError(what, _WHERE, why, "choose a later stage")


def _named(stage: str) -> str:
    return "program" if stage == PROGRAM else f"{stage} stage"


def _given(stage: str) -> str:
    return f"an .{PROGRAM} file" if stage == PROGRAM else f"--from {stage}"
