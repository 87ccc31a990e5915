"""Verb ``run``: one call of a bundle, by the loader.

In: a bundle, an ``.npz`` file of inputs. Out: an ``.npz`` file of outputs, or a summary. Not done
here: the run (``ingot_runtime``; a device has ``python -m ingot_runtime run``).
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from ingot_build_rules.cli import arrays, console, usage
from ingot_build_rules.cli.options import CALL_SHAPE, DIGEST, JSON, VARIANT, Option, add_options

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session

_VERIFY = ("full", "fast", "code")
_OPTIONS = (
    Option("--inputs", "arrays by input name (default: numbers from a fixed seed)", "F.npz"),
    CALL_SHAPE,
    Option("--outputs", "write the outputs here (default: print a summary)", "F.npz"),
    Option("--threads", "threads (default 1)", "N", usage.positive, default=1),
    Option("--device", "bind a virtual device", "NAME=KIND:ID", usage.device, repeats=True),
    Option(
        "--executor", "native main, or step its instructions", default="aot", choices=("aot", "vm")
    ),
    Option("--verify", "how much of the file to check", default="full", choices=_VERIFY),
    VARIANT,
    Option("--timeout", "end the call, without results, after that time", "SECONDS", float),
    Option(
        "--max-bytes",
        "most memory for workspace and outputs, e.g. 2GiB",
        "SIZE",
        usage.size_bytes,
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("bundle", metavar="BUNDLE")
    add_options(parser, *_OPTIONS, DIGEST, JSON)


def run(arguments: argparse.Namespace) -> int:
    """Load, run, write or print."""
    from ingot_build_rules.compilation.output_file import check_output

    if arguments.outputs is not None:
        given = [arguments.inputs] if arguments.inputs else []
        check_output(arguments.outputs, [arguments.bundle, *given])
    started = time.perf_counter()
    session = _loaded(arguments)
    loaded = time.perf_counter()
    feed = arrays.read_inputs(session, arguments.inputs, arguments.shape)
    called = time.perf_counter()
    outputs = session.run(feed, arguments.timeout)
    ended = time.perf_counter()
    if arguments.outputs is not None:
        arrays.write_arrays(arguments.outputs, outputs)
    report = {
        "bundle": arguments.bundle,
        "load_seconds": loaded - started,
        "run_seconds": ended - called,
        "outputs": {name: _describe(array) for name, array in outputs.items()},
    }
    console.print_report(report, _lines(report, arguments.outputs), as_json=arguments.json)
    return 0


def _loaded(arguments: argparse.Namespace) -> Session:
    import ingot_runtime

    return ingot_runtime.load(
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


def _lines(report: dict[str, Any], written: str | None) -> list[str]:
    load, run = (console.format_seconds(report[name]) for name in ("load_seconds", "run_seconds"))
    lines = [f"load {load}, run {run}"]
    for name, facts in report["outputs"].items():
        span = f", {facts['least']:.6g} to {facts['greatest']:.6g}" if "least" in facts else ""
        empty = ", no elements" if 0 in facts["shape"] else ""
        lines.append(f"{name}: {facts['dtype']}{facts['shape']}{span}{empty}")
    if written is not None:
        lines.append(f"outputs in {written}")
    return lines
