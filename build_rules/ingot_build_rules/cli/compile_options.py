"""Which options of ``ingot compile`` go together.

In: arguments. Out: nothing, or ``UserError``. Not done here: values of single options (``usage``,
``compilation.options``).
"""

from __future__ import annotations

import argparse

from ingot_build_rules.text.stages import FROM_LOOPS_TO, STAGES
from ingot_compiler.ir.errors import UserError

_WHERE = "command ingot compile"


def check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that contradict each other.

    Raises:
        UserError: names them.
    """
    if arguments.to is None and arguments.output is None:
        raise UserError("no output named", _WHERE, "expected -o OUT.ingot", "add -o OUT.ingot")
    if arguments.depfile is not None and arguments.output is None:
        why = "a depfile says what the output is made from"
        raise UserError("a depfile without an output", _WHERE, why, "add -o OUT.ingot")
    if arguments.to is not None and arguments.check is not None:
        raise UserError(
            "nothing to check", _WHERE, "--to writes no bundle", "leave --to or --check out"
        )
    if (
        arguments.weights is not None
        and arguments.from_ is None
        and arguments.to not in ("graph", "placed")
    ):
        why = "--weights belongs to --from, and to --to graph or placed"
        raise UserError("weights without a text of a stage", _WHERE, why, "leave --weights out")
    if arguments.from_ is not None:
        _check_from(arguments, arguments.from_)


def _check_from(arguments: argparse.Namespace, stage: str) -> None:
    given = {
        "--shape": arguments.shape,
        "--place": arguments.place,
        "--device": arguments.device if stage != "graph" else [],
        "--weights": [arguments.weights]
        if stage == "loops" and arguments.weights is not None
        else [],
        "--check": [arguments.check] if stage == "loops" and arguments.check is not None else [],
        "--depfile": [arguments.depfile]
        if stage == "loops" and arguments.depfile is not None
        else [],
    }
    for option, values in given.items():
        if values:
            why = f"the text of a {stage} stage says it already, or has no place for it"
            raise UserError(f"{option} with --from {stage}", _WHERE, why, f"leave {option} out")
    later = FROM_LOOPS_TO if stage == "loops" else STAGES[STAGES.index(stage) :]
    if arguments.to is not None and arguments.to not in later:
        why = f"expected one of {', '.join(later)}, got {arguments.to!r}"
        raise UserError(
            f"--to {arguments.to} with --from {stage}", _WHERE, why, "choose a later stage"
        )
