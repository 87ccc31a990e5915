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

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import arrays, console, usage
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session


def run(arguments: argparse.Namespace) -> int:
    """Load, run, write or print."""
    from ingot_build_rules.making.stages.output_file import check_output
    from ingot_runtime.command import run_values

    check_bundle_kind(arguments.bundle)
    given = [arguments.bundle, *([arguments.inputs] if arguments.inputs else [])]
    for path in (arguments.outputs, arguments.trace):
        if path is not None:
            check_output(path, given)
    call = (_traced if arguments.trace else _run)(arguments)
    if arguments.outputs is not None:
        arrays.write_arrays(arguments.outputs, call.outputs)
    seconds = {"load_seconds": call.load_seconds, "run_seconds": call.run_seconds}
    header = arguments.bundle, call.digest, call.devices
    values = run_values(*header, seconds, call.dtypes, call.outputs)
    console.print_report(values, _lines(values, arguments), as_json=arguments.json)
    return 0


@dataclass(frozen=True, slots=True)
class _Call:
    """The ``digest`` of a bundle, the devices that it ran on; what it gave, the element types of
    that, and how long it took."""

    digest: str
    devices: dict[str, str]
    outputs: dict[str, Any]
    dtypes: dict[str, str]
    load_seconds: float
    run_seconds: float


def _run(arguments: argparse.Namespace) -> _Call:
    """Load and call once."""
    started = time.perf_counter()
    session = _load(arguments)()
    loaded = time.perf_counter()
    feed = arrays.read_inputs(session, arguments.inputs, arguments.shape)
    called = time.perf_counter()
    outputs = _called(session, feed, arguments)
    ended = time.perf_counter()
    dtypes = {spec.name: spec.element for spec in session.outputs}
    if session.loaded.plan.values is not None:
        from ingot_runtime.executor.values import as_arrays

        outputs, dtypes = as_arrays(session, outputs)
    seconds = loaded - started, ended - called
    return _Call(session.digest, session.devices, outputs, dtypes, *seconds)


def _called(session: Session, feed: dict[str, Any], arguments: argparse.Namespace) -> Any:
    """Call once; an error about numbers that nobody gave says so."""
    from ingot_runtime import InputError

    try:
        return session.run(feed, arguments.timeout)
    except InputError as error:
        if arguments.inputs is not None:
            raise
        do = f"{error.do}: --inputs F.npz gives real ones, and without it they are made up"
        raise InputError(error.what, error.where, error.why, do) from error


def _traced(arguments: argparse.Namespace) -> _Call:
    """Call the bundle once and write a trace of the call."""
    from ingot_build_rules.engine.events.trace_entries import TraceProcess
    from ingot_build_rules.making.stages.output_file import write_text
    from ingot_build_rules.tools.view.record_run import record_run
    from ingot_build_rules.tools.view.report_subject import read_subject
    from ingot_build_rules.tools.view.run_trace import run_trace

    bundle, stepped = arguments.bundle, arguments.executor == "vm"
    read = partial(arrays.read_inputs, path=arguments.inputs, shapes=arguments.shape)
    record = record_run(_load(arguments), read, arguments.timeout, stepped=stepped)
    shapes = {name: array.shape for name, array in record.feed.items()}
    subject = read_subject(bundle, record.variant, shapes, arguments.digest)
    process = TraceProcess(f"ingot run {os.path.basename(bundle)}", os.getpid())
    write_text(arguments.trace, run_trace(record, subject, process))
    described = subject.described
    dtypes = {output["name"]: output["dtype"] for output in described["outputs"]}
    seconds = record.load_seconds, record.calls[0].phase.seconds
    return _Call(described["digest"], record.devices, record.outputs, dtypes, *seconds)


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


def _lines(report: dict[str, Any], arguments: argparse.Namespace) -> list[str]:
    load, run = (console.format_seconds(report[name]) for name in ("load_seconds", "run_seconds"))
    lines = [f"load {load}, run {run}"]
    lines += [f"{name} on {bound}" for name, bound in report["devices"].items() if name != "host"]
    for name, facts in report["outputs"].items():
        least, greatest = (float(facts.get(end, 0)) for end in ("least", "greatest"))
        empty = ", no elements" if 0 in facts["shape"] else ""
        span = f", {least:.6g} to {greatest:.6g}" if "least" in facts else ""
        lines.append(f"{name}: {facts['numpy_dtype']}{facts['shape']}{span}{empty}")
    if arguments.outputs is not None:
        lines.append(f"outputs in {arguments.outputs}")
    if arguments.trace is not None:
        lines.append(f"trace in {arguments.trace}, for https://ui.perfetto.dev")
    return lines
