"""Verb ``run``: one call of a bundle, by the loader.

In: a bundle, an ``.npz`` file of inputs. Out: an ``.npz`` file of outputs, or a summary; a trace.
Not done here: the run (``ingot_runtime``; a device has ``python -m ingot_runtime run``), what is in
a trace (``view.run_trace``).
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from ingot_build_rules.cli import arrays, console, usage

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session


def run(arguments: argparse.Namespace) -> int:
    """Load, run, write or print."""
    from ingot_build_rules.compilation.output_file import check_output

    given = [arguments.bundle, *([arguments.inputs] if arguments.inputs else [])]
    for path in (arguments.outputs, arguments.trace):
        if path is not None:
            check_output(path, given)
    outputs, load_seconds, run_seconds = (_traced if arguments.trace else _run)(arguments)
    if arguments.outputs is not None:
        arrays.write_arrays(arguments.outputs, outputs)
    report = {
        "bundle": arguments.bundle,
        "load_seconds": load_seconds,
        "run_seconds": run_seconds,
        "outputs": {name: _describe(array) for name, array in outputs.items()},
    }
    console.print_report(report, _lines(report, arguments), as_json=arguments.json)
    return 0


def _run(arguments: argparse.Namespace) -> tuple[dict[str, Any], float, float]:
    """Load and call once; return the outputs, and the seconds of both."""
    started = time.perf_counter()
    session = _load(arguments)()
    loaded = time.perf_counter()
    feed = arrays.read_inputs(session, arguments.inputs)
    called = time.perf_counter()
    outputs = session.run(feed, arguments.timeout)
    return outputs, loaded - started, time.perf_counter() - called


def _traced(arguments: argparse.Namespace) -> tuple[dict[str, Any], float, float]:
    """The same, with a trace."""
    from ingot_build_rules.compilation.output_file import write_text
    from ingot_build_rules.engine.events.trace_entries import TraceProcess
    from ingot_build_rules.view.record_run import record_run
    from ingot_build_rules.view.report_subject import read_subject
    from ingot_build_rules.view.run_trace import run_trace

    bundle, stepped = arguments.bundle, arguments.executor == "vm"
    read = partial(arrays.read_inputs, path=arguments.inputs)
    record = record_run(_load(arguments), read, arguments.timeout, stepped=stepped)
    shapes = {name: array.shape for name, array in record.feed.items()}
    subject = read_subject(bundle, record.variant, shapes, arguments.digest)
    process = TraceProcess(f"ingot run {os.path.basename(bundle)}", os.getpid())
    write_text(arguments.trace, run_trace(record, subject, process))
    return record.outputs, record.load_seconds, record.calls[0].phase.seconds


def _load(arguments: argparse.Namespace) -> partial[Session]:
    import ingot_runtime

    return partial(
        ingot_runtime.load,
        arguments.bundle,
        threads=arguments.threads,
        devices=usage.unique(arguments.device, "--device"),
        verify=arguments.verify,
        variant=arguments.variant,
        executor=arguments.executor,
        digest=arguments.digest,
        max_bytes=arguments.max_bytes,
    )


def _describe(array: Any) -> dict[str, Any]:
    """Tell type and shape, and for numbers their range."""
    facts: dict[str, Any] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    if array.size and array.dtype.kind in "fiu":
        facts |= {"least": float(array.min()), "greatest": float(array.max())}
    return facts


def _lines(report: dict[str, Any], arguments: argparse.Namespace) -> list[str]:
    load, run = (console.format_seconds(report[name]) for name in ("load_seconds", "run_seconds"))
    lines = [f"load {load}, run {run}"]
    for name, facts in report["outputs"].items():
        span = f", {facts['least']:.6g} to {facts['greatest']:.6g}" if "least" in facts else ""
        lines.append(f"{name}: {facts['dtype']}{facts['shape']}{span}")
    if arguments.outputs is not None:
        lines.append(f"outputs in {arguments.outputs}")
    if arguments.trace is not None:
        lines.append(f"trace in {arguments.trace}, for https://ui.perfetto.dev")
    return lines
