"""Verb ``bench``: measure a bundle on this machine, as a whole and kernel by kernel.

In: a bundle, threads, seconds. Out: median and percentiles per call, a table of kernels. Not done
here: comparison with others (``tests/benchmarks``).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from ingot_build_rules.cli import arrays, console, usage
from ingot_build_rules.view.measure import launch_seconds, measure, percentiles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("bundle", metavar="BUNDLE")
    parser.add_argument(
        "--inputs", metavar="F.npz", help="inputs (default: numbers from a fixed seed)"
    )
    parser.add_argument("--threads", type=usage.positive, default=1, metavar="N")
    parser.add_argument(
        "--seconds",
        type=usage.seconds,
        default=2.0,
        metavar="S",
        help="at least so long (default 2)",
    )
    parser.add_argument(
        "--variant", metavar="TARGET", help="the variant to run (default: the best that can)"
    )
    parser.add_argument(
        "--top", type=usage.positive, default=15, metavar="N", help="kernels to list (default 15)"
    )
    usage.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    import ingot_runtime

    started = time.perf_counter()
    session = ingot_runtime.load(
        arguments.bundle, threads=arguments.threads, variant=arguments.variant
    )
    load_seconds = time.perf_counter() - started
    feed = arrays.read_inputs(session, arguments.inputs)
    times = measure(lambda: session.run(feed), arguments.seconds)
    report: dict[str, Any] = {
        "bundle": arguments.bundle,
        "threads": arguments.threads,
        "load_seconds": load_seconds,
        "calls": len(times),
        "seconds": percentiles(times),
        "kernels": kernel_times(arguments, feed),
    }
    if arguments.json:
        console.print_json(report)
    else:
        console.print_lines(*_lines(report, arguments.top))
    return 0


def kernel_times(arguments: argparse.Namespace, feed: dict[str, Any]) -> list[dict[str, Any]]:
    """Step the same program by the vm and time each launch; the slowest first."""
    import ingot_runtime
    from ingot_artifacts.inspect.describe import describe_bundle

    session = ingot_runtime.load(
        arguments.bundle,
        threads=arguments.threads,
        variant=arguments.variant,
        executor="vm",
        verify="code",
    )
    times = launch_seconds(session, feed)
    recorded = describe_bundle(arguments.bundle)["debug"].get("launches", {})
    launches = recorded.get(session.loaded.variant.target, [])
    rows = [
        {
            "launch": ordinal,
            "seconds": times[ordinal],
            "kernel": launch["kernel"],
            "kind": launch["kind"],
            "nodes": [name for name, _ in launch["nodes"]],
            "writes": launch["writes"],
        }
        for ordinal, launch in enumerate(launches)
        if ordinal in times
    ]
    return sorted(rows, key=lambda row: (-row["seconds"], row["launch"]))


def _lines(report: dict[str, Any], top: int) -> list[str]:
    spread = report["seconds"]
    rows = [("time", "share", "kernel", "kind", "writes", "nodes")]
    total = sum(row["seconds"] for row in report["kernels"]) or 1.0
    for row in report["kernels"][:top]:
        names = ", ".join(row["nodes"])
        rows.append(
            (
                console.format_seconds(row["seconds"]),
                f"{100 * row['seconds'] / total:.1f} %",
                row["kernel"][:14],
                row["kind"],
                " ".join(row["writes"]),
                names if len(names) <= 60 else names[:57] + "...",
            )
        )
    calls = f"({report['calls']} calls, {report['threads']} threads)"
    median, low, high = (console.format_seconds(spread[name]) for name in ("median", "p10", "p90"))
    return [
        f"load    {console.format_seconds(report['load_seconds'])}, everything verified",
        f"call    median {median}, p10 {low}, p90 {high} {calls}",
        f"kernels {console.format_seconds(total)}, stepped one by one",
        *console.format_table(rows, right=(0, 1)),
    ]
