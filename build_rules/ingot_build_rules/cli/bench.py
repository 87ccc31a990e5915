"""Verb ``bench``: measure a bundle on this machine, as a whole and kernel by kernel.

In: a bundle, threads, seconds. Out: median and percentiles per call, a table of kernels. Not done
here: comparison with others (``tests/benchmarks``).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from ingot_build_rules.cli import arrays, console, usage
from ingot_build_rules.cli.options import CALL_SHAPE, JSON, VARIANT, Option, add_options
from ingot_build_rules.view.measure import launch_seconds, measure, percentiles

_NAMES_MAX = 60  # letters of a row

_OPTIONS = (
    Option("--inputs", "inputs (default: numbers from a fixed seed)", "F.npz"),
    CALL_SHAPE,
    Option("--threads", "", "N", usage.positive, default=1),
    Option("--seconds", "at least so long (default 2)", "S", usage.seconds, default=2.0),
    VARIANT,
    Option("--top", "kernels to list (default 15)", "N", usage.positive, default=15),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("bundle", metavar="BUNDLE")
    add_options(parser, *_OPTIONS, JSON)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    import ingot_runtime

    bundle, threads, variant = arguments.bundle, arguments.threads, arguments.variant
    started = time.perf_counter()
    session = ingot_runtime.load(bundle, threads=threads, variant=variant)
    load_seconds = time.perf_counter() - started
    feed = arrays.read_inputs(session, arguments.inputs, arguments.shape)
    times = measure(lambda: session.run(feed), arguments.seconds)
    report: dict[str, Any] = {
        "bundle": bundle,
        "threads": threads,
        "load_seconds": load_seconds,
        "calls": len(times),
        "seconds": percentiles(times),
        "kernels": kernel_times(arguments, feed),
    }
    console.print_report(report, _lines(report, arguments.top), as_json=arguments.json)
    return 0


def kernel_times(arguments: argparse.Namespace, feed: dict[str, Any]) -> list[dict[str, Any]]:
    """Step the same program by the vm and time each launch; the slowest first."""
    import ingot_runtime
    from ingot_artifacts.inspect.describe import describe_bundle

    bundle, threads, variant = arguments.bundle, arguments.threads, arguments.variant
    session = ingot_runtime.load(
        bundle, threads=threads, variant=variant, executor="vm", verify="code"
    )
    times = launch_seconds(session, feed)
    recorded = describe_bundle(bundle)["debug"].get("launches", {})
    rows = [
        _timed_launch(ordinal, launch, times[ordinal])
        for ordinal, launch in enumerate(recorded.get(session.loaded.variant.target, []))
        if ordinal in times
    ]
    return sorted(rows, key=lambda row: (-row["seconds"], row["launch"]))


def _timed_launch(ordinal: int, launch: dict[str, Any], seconds: float) -> dict[str, Any]:
    return {
        "launch": ordinal,
        "seconds": seconds,
        "kernel": launch["kernel"],
        "kind": launch["kind"],
        "nodes": [name for name, _ in launch["nodes"]],
        "writes": launch["writes"],
    }


def _lines(report: dict[str, Any], top: int) -> list[str]:
    spread, kernels = report["seconds"], report["kernels"]
    total = sum(row["seconds"] for row in kernels) or 1.0
    head = ("time", "share", "kernel", "kind", "writes", "nodes")
    rows = [head, *(_kernel_row(row, total) for row in kernels[:top])]
    calls = f"({report['calls']} calls, {report['threads']} threads)"
    median, low, high = (console.format_seconds(spread[name]) for name in ("median", "p10", "p90"))
    return [
        f"load    {console.format_seconds(report['load_seconds'])}, everything verified",
        f"call    median {median}, p10 {low}, p90 {high} {calls}",
        f"kernels {console.format_seconds(total)}, stepped one by one",
        *console.format_table(rows, right=(0, 1)),
    ]


def _kernel_row(row: dict[str, Any], total_seconds: float) -> tuple[str, ...]:
    names = ", ".join(row["nodes"])
    return (
        console.format_seconds(row["seconds"]),
        f"{100 * row['seconds'] / total_seconds:.1f} %",
        row["kernel"][:14],
        row["kind"],
        " ".join(row["writes"]),
        names if len(names) <= _NAMES_MAX else names[: _NAMES_MAX - 3] + "...",
    )
