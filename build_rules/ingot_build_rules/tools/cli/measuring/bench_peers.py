"""``ingot bench --against``: a model on other engines beside its bundle.

In: the verb's arguments, a bundle. Out: a report and its lines. Not done here: the processes and
the ratios (``view.peer``, ``view.compare_peers``).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from typing import Any

from ingot_build_rules.making.stages.kind_of_file import check_model_kind
from ingot_build_rules.tools.cli.shell import arrays, console, usage
from ingot_build_rules.tools.cli.shell.plain_median import plain_median, too_noisy
from ingot_build_rules.tools.cli.shell.temporary_bundle import GivenBundle
from ingot_build_rules.tools.view.compare_peers import Compared, compare_peers
from ingot_build_rules.tools.view.peer import INGOT, PEERS, Peer
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.suggest import suggest


def check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    Raises:
        UserError: an unknown engine or interpreter, or options that belong to others.
    """
    if not arguments.against:
        _refuse_without_engines(arguments)
        return
    for name in _names(arguments):
        if name not in PEERS:
            why, where = f"known are: {', '.join(PEERS)}", "option --against"
            raise UserError(f"unknown engine {name!r}", where, why, suggest(name, PEERS))
    if arguments.decode:
        why, do = "other engines have no caches in place", "leave one of them out"
        raise UserError("lengths and engines are given", "options --decode, --against", why, do)
    if arguments.roofline:
        why, do = "launches of other engines are unknown", "leave one of them out"
        raise UserError("launches and engines", "options --roofline, --against", why, do)
    if shutil.which(_python(arguments)) is None:
        why, do = "there is no such program", "name the interpreter that has the engines"
        where = f"option --peer-python {arguments.peer_python}"
        raise UserError("the interpreter cannot be run", where, why, do)
    if not os.path.isfile(_model(arguments)):
        why = "expected an .onnx file, got nothing there"
        raise UserError("no such model file", _model(arguments), why, "check the path")
    check_model_kind(_model(arguments))


def _refuse_without_engines(arguments: argparse.Namespace) -> None:
    for option, value in (("--model", arguments.model), ("--peer-python", arguments.peer_python)):
        if value is not None:
            why, do = (
                "it is about other engines",
                f"leave {option} out, or add --against {next(iter(PEERS))}",
            )
            raise UserError(f"{option} without --against", f"option {option}", why, do)


def peers_report(arguments: argparse.Namespace, given: GivenBundle) -> dict[str, Any]:
    """Measure all in turns; refuse a ratio that is none."""
    import ingot_runtime
    from ingot_runtime.npz import write_npz

    devices = usage.unique(arguments.device, "--device")
    session = ingot_runtime.load(
        given.path, threads=arguments.threads, devices=devices, variant=arguments.variant
    )
    with session:
        feed = arrays.read_inputs(session, arguments.inputs, arguments.shape)
        target = session.loaded.variant.target
    if session.loaded.plan.values is not None:
        why, do = "inputs or outputs are no tensors", "leave --against out"
        raise UserError("engines cannot be compared", _model(arguments), why, do)
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
        inputs = os.path.join(folder, "inputs.npz")
        with open(inputs, "wb") as file:
            write_npz(file, feed)
        loading = {"variant": target, "devices": devices}
        ours = partial(Peer, INGOT, sys.executable, given.path, inputs, arguments.threads, loading)
        rows, rounds = _compared(arguments, {INGOT: ours, **_starts(arguments, inputs)})
    return {
        "bundle": arguments.bundle,
        "model": _model(arguments),
        "compiled": given.how_made or None,
        "digest": session.digest,
        "target": target,
        "threads": arguments.threads,
        "round_count": rounds,
        "engines": [_plain(row) for row in rows],
    }


def _starts(arguments: argparse.Namespace, inputs: str) -> Mapping[str, partial[Peer]]:
    python, model = _python(arguments), _model(arguments)
    return {
        name: partial(Peer, name, python, model, inputs, arguments.threads)
        for name in _names(arguments)
    }


def _compared(
    arguments: argparse.Namespace, starts: Mapping[str, partial[Peer]]
) -> tuple[tuple[Compared, ...], int]:
    rows, rounds = compare_peers(starts, arguments.seconds)
    for row in rows:
        if row.ratio is not None and row.ratio.is_noisy and not arguments.anyway:
            raise too_noisy(row.ratio, rounds, f"{arguments.bundle} against {row.name}", unit="")
    return rows, rounds


def _plain(row: Compared) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.version,
        "call_seconds": None if row.seconds is None else plain_median(row.seconds),
        "ratio": None if row.ratio is None else plain_median(row.ratio),
        "failure": row.failure,
    }


def peers_lines(report: dict[str, Any]) -> list[str]:
    """A table of the engines that were measured, then a line for each that was not."""
    head = ("engine", "version", "call", "between", "and", "ratio", "between", "and")
    rows = [head, *(_row(row) for row in report["engines"] if row["failure"] is None)]
    threads, rounds = console.counted(report["threads"], "thread"), report["round_count"]
    return [
        *([report["compiled"]] if report["compiled"] else []),
        f"{report['model']}, {threads}: {rounds} rounds of calls in turns, one process each",
        *console.format_table(rows, right=(2, 3, 4, 5, 6)),
        *(f"{row['name']}: {row['failure']}" for row in report["engines"] if row["failure"]),
        "ratio: the time of ingot divided by the engine's, the median over pairs of turns",
    ]


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    call, ratio = row["call_seconds"], row["ratio"]
    times = [console.format_seconds(call[name]) for name in ("median", "low", "high")]
    ratios = ["", "", ""]
    if ratio is not None:
        ratios = [f"{ratio[name]:.3f}" for name in ("median", "low", "high")]
        ratios[-1] += "; too noisy for a number" if ratio["is_noisy"] else ""
    return (row["name"], row["version"].partition("-")[0], *times, *ratios)


def _names(arguments: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(arguments.against.split(",")))


def _python(arguments: argparse.Namespace) -> str:
    return str(arguments.peer_python or sys.executable)


def _model(arguments: argparse.Namespace) -> str:
    """The model for the engines: the one that is benched, or the one that is named.

    Raises:
        UserError: a bundle alone, or two models.
    """
    is_model = arguments.bundle.endswith(".onnx")
    if is_model and arguments.model is not None:
        why, do = "the engines run the model that is compiled", "leave --model out"
        raise UserError("two models are given", "option --model", why, do)
    if not is_model and arguments.model is None:
        why = "a bundle holds no model that other engines read"
        raise UserError("the model is missing", arguments.bundle, why, "name it: --model FILE.onnx")
    return str(arguments.bundle if is_model else arguments.model)
