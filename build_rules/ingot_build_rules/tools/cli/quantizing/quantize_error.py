"""Whether a quantized model is near enough to the float one, and which node costs most, for the
verb ``quantize``.

In: the errors of outputs and layers. Out: warnings, proposals, a refusal. Not done here: measuring
(``calibration``).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any

from ingot_build_rules.tools.cli.shell.failure import FailedCommand
from ingot_compiler.ir.errors import UserError

CALLS_WANTED = 32
"""Calls from which ranges hardly grow any more, where they differ as the model's inputs will."""
_WARNED_ABOVE = 0.05
_TRIED = 3


def max_error(text: str | None) -> float | None:
    """The option: a part of 1, or a percentage.

    Raises:
        UserError: it is neither.
    """
    if text is None:
        return None
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        why = f"expected a number above 0 or a percentage, got {text!r}"
        where, do = "command ingot quantize", "try --max-error 2%"
        raise UserError("wrong value of --max-error", where, why, do)
    return number


def judged(
    report: dict[str, Any], arguments: argparse.Namespace, without: Callable[[str], float | None]
) -> dict[str, Any]:
    """``told`` with warnings and proposals. ``without``: the largest error of an output while a
    node stays in floats, None where that cannot be said.

    Raises:
        FailedCommand: an output is further away than ``--max-error``.
    """
    limit = max_error(arguments.max_error)
    worst = max((output["error"] for output in report["outputs"]), default=0.0)
    allowed = _WARNED_ABOVE if limit is None else limit
    if worst <= allowed:
        return {**report, "warnings": [], "proposals": []}
    proposals = _proposals(report["layers"], worst, without)
    found = {**report, "proposals": proposals, "warnings": [_text(worst, allowed, report)]}
    if limit is not None:
        reached = {"outputs": report["outputs"], "proposals": proposals}
        raise FailedCommand(_refusal(worst, limit, found), reached)
    return found


def _text(worst: float, allowed: float, report: dict[str, Any]) -> str:
    few = report["calls"] < CALLS_WANTED and "ranges" in report
    more = f"; {report['calls']} of some {CALLS_WANTED} calls were given" if few else ""
    return f"an output is {worst:.1%} off, more than {allowed:.1%}{more}"


def _refusal(worst: float, limit: float, report: dict[str, Any]) -> UserError:
    do = "; ".join(proposal_line(each) for each in report["proposals"])
    if "ranges" in report and report["calls"] < CALLS_WANTED:
        do += f"{'; or ' if do else ''}give some {CALLS_WANTED} calls, or --dynamic"
    return UserError(
        "the quantized model is too far from the float one",
        "option --max-error",
        f"expected outputs at most {limit:.2%} off, got {worst:.2%}; no model was written",
        do or "allow more, or use --weights int8",
    )


def proposal_line(proposal: dict[str, Any]) -> str:
    """What leaving a node in floats would give."""
    return f"--keep '{proposal['node']}' gives {proposal['error']:.2%}"


def _proposals(
    layers: Sequence[dict[str, Any]], worst: float, without: Callable[[str], float | None]
) -> list[dict[str, Any]]:
    """The nodes whose own rounding adds most, tried out, the best first."""
    before = [0.0, *(layer["error"] for layer in layers)]
    added = sorted(zip(layers, before, strict=False), key=lambda pair: pair[1] - pair[0]["error"])
    tried = [(layer["node"], without(layer["node"])) for layer, _ in added[:_TRIED]]
    better = [(error, node) for node, error in tried if error is not None and error < worst]
    return [{"node": node, "error": error} for error, node in sorted(better)]
