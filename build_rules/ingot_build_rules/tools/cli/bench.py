"""Verb ``bench``: measure a bundle or a model on this machine, as a whole and kernel by kernel.

In: a bundle or a model, threads, seconds. Out: time and rate of calls, memory, a table of kernels;
a refusal where the machine is too noisy. Not done here: what a number is (``view.block_medians``),
comparison with other engines (``bench_peers``).
"""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any

from ingot_build_rules.making.options.compile_options import HOST
from ingot_build_rules.tools.cli.measuring import bench_peers, bench_roofline
from ingot_build_rules.tools.cli.shell import arrays, console, usage
from ingot_build_rules.tools.cli.shell.plain_median import plain_median, too_noisy
from ingot_build_rules.tools.cli.shell.temporary_bundle import GivenBundle, given_bundle
from ingot_build_rules.tools.view.block_medians import (
    CONFIDENCE,
    call_seconds,
    calls_per_second,
)
from ingot_build_rules.tools.view.measure import launch_seconds, measure_blocks, percentiles
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_runtime.executor.session import Session

_NAMES_MAX = 60  # letters of a row


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    bench_peers.check_options(arguments)
    with given_bundle(arguments) as given:
        if arguments.against:
            report = bench_peers.peers_report(arguments, given)
            lines = bench_peers.peers_lines(report)
        elif arguments.decode:
            report = _decode_report(arguments, given)
            lines = _decode_lines(report)
        else:
            report = _report(arguments, given)
            lines = _lines(report, arguments.top)
    console.print_report(report, lines, as_json=arguments.json)
    return 0


def _decode_report(arguments: argparse.Namespace, given: GivenBundle) -> dict[str, Any]:
    """Measure one token behind each length."""
    import ingot_runtime
    from ingot_build_rules.tools.view.decode_times import decode_times

    if arguments.roofline:
        why, do = "launches of whole calls are measured", "leave one of them out"
        raise UserError("lengths and launches", "options --decode, --roofline", why, do)
    if arguments.inputs or arguments.shape:
        why, do = "the tokens are made for each length", "leave --inputs and --shape out"
        raise UserError("inputs and lengths are given", "options --decode", why, do)
    session = ingot_runtime.load(given.path, threads=arguments.threads, variant=arguments.variant)
    rows: list[dict[str, Any]] = []
    for length, blocks in decode_times(session, arguments.decode, arguments.seconds):
        found = call_seconds(blocks)
        if found.is_noisy and not arguments.anyway:
            raise too_noisy(found, len(blocks), arguments.bundle)
        rate = plain_median(calls_per_second(blocks))
        rows.append(
            {"length": length, "token_seconds": plain_median(found), "tokens_per_second": rate}
        )
    return {
        "bundle": arguments.bundle,
        "compiled": given.how_made or None,
        "digest": session.digest,
        "target": session.loaded.variant.target,
        "threads": arguments.threads,
        "decode": rows,
    }


def _decode_lines(report: dict[str, Any]) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("tokens before", "median", "between", "and", "tokens per second")
    ]
    for row in report["decode"]:
        token = row["token_seconds"]
        times = [console.format_seconds(token[name]) for name in ("median", "low", "high")]
        noise = "; too noisy for a number" if token["is_noisy"] else ""
        rate = _rate(row["tokens_per_second"]["median"])
        rows.append((f"{row['length']:,}", *times, f"{rate}{noise}"))
    head = [report["compiled"]] if report["compiled"] else []
    return [*head, *console.format_table(rows, right=(0, 1, 2, 3))]


def _report(arguments: argparse.Namespace, given: GivenBundle) -> dict[str, Any]:
    """Measure all; refuse as early as it is known that there is no number."""
    import ingot_runtime

    threads, devices = arguments.threads, usage.unique(arguments.device, "--device")
    started = time.perf_counter()
    session = ingot_runtime.load(
        given.path, threads=threads, devices=devices, variant=arguments.variant
    )
    load_seconds = time.perf_counter() - started
    feed = arrays.read_inputs(session, arguments.inputs, arguments.shape)
    blocks = measure_blocks(lambda: session.run(feed), arguments.seconds)
    found = call_seconds(blocks)
    if found.is_noisy and not arguments.anyway:
        raise too_noisy(found, len(blocks), arguments.bundle)
    times = [seconds for block in blocks for seconds in block]
    launches = kernel_times(session, given.path, threads, feed)
    return {
        "bundle": arguments.bundle,
        "compiled": given.how_made or None,
        "digest": session.digest,
        "size_bytes": os.path.getsize(given.path),
        "target": session.loaded.variant.target,
        "devices": session.devices,
        "threads": threads,
        "load_seconds": load_seconds,
        "call_count": len(times),
        "block_count": len(blocks),
        "call_seconds": plain_median(found),
        "call_seconds_percentiles": percentiles(times),
        "calls_per_second": plain_median(calls_per_second(blocks)),
        "memory": _memory(session, given.path, feed, threads),
        "launches": launches,
        "roofline": _roofline(arguments, session, given, feed, launches),
    }


def _roofline(
    arguments: argparse.Namespace,
    session: Session,
    given: GivenBundle,
    feed: dict[str, Any],
    launches: list[dict[str, Any]],
) -> dict[str, Any] | None:
    if not arguments.roofline:
        return None
    seconds = {row["launch"]: row["seconds"] for row in launches}
    variant = session.loaded.variant.target
    return bench_roofline.roofline_report(given.path, variant, feed, seconds, arguments.threads)


def _memory(
    session: Session, bundle: str, feed: dict[str, Any], threads: int
) -> dict[str, int | None]:
    """What calls need: as planned for the sizes of these inputs, and as measured."""
    from ingot_build_rules.tools.view.report_subject import read_subject
    from ingot_build_rules.tools.view.resident_memory import resident_memory

    variant = session.loaded.variant.target
    resident = resident_memory(bundle, feed, threads, variant, bound_devices(session))
    shapes = {name: array.shape for name, array in feed.items()}
    call = read_subject(bundle, variant, shapes).call
    return {
        "load_bytes": resident.load_bytes,
        "peak_beyond_load_bytes": resident.peak_beyond_load_bytes,
        "workspace_bytes": sum(call.workspace_bytes),
        "scratch_bytes": call.scratch_bytes * threads,
    }


def bound_devices(session: Session) -> dict[str, str]:
    """The devices beside the host, for another session that runs on the same."""
    return {name: bound for name, bound in session.devices.items() if name != HOST}


def kernel_times(
    session: Session, bundle: str, threads: int, feed: dict[str, Any]
) -> list[dict[str, Any]]:
    """Run the program stepwise by the vm and time each launch; the slowest first."""
    import ingot_runtime
    from ingot_artifacts.inspect.describe import describe_bundle

    variant = session.loaded.variant.target
    stepped = ingot_runtime.load(
        bundle,
        threads=threads,
        devices=bound_devices(session),
        variant=variant,
        executor="vm",
        verify="code",
    )
    times = launch_seconds(stepped, feed)
    recorded = describe_bundle(bundle)["debug"].get("launches", {})
    rows = [
        _timed_launch(ordinal, launch, times[ordinal])
        for ordinal, launch in enumerate(recorded.get(variant, []))
        if ordinal in times
    ]
    return sorted(rows, key=lambda row: (-row["seconds"], row["launch"]))


def _timed_launch(ordinal: int, launch: dict[str, Any], seconds: float) -> dict[str, Any]:
    return {
        "launch": ordinal,
        "seconds": seconds,
        "kernel": launch["kernel"],
        "kind": launch["kind"],
        "nodes": launch["nodes"],
        "writes": launch["writes"],
    }


def _lines(report: dict[str, Any], top: int) -> list[str]:
    kernels, roofline = report["launches"], report["roofline"]
    total = sum(row["seconds"] for row in kernels) or 1.0
    head = ("time", "share", "kernel", "kind", "writes", "nodes")
    rows = [head, *(_kernel_row(row, total) for row in kernels[:top])]
    table = console.format_table(rows, right=(0, 1))
    load = console.format_seconds(report["load_seconds"])
    return [
        *([report["compiled"]] if report["compiled"] else []),
        f"load    {load}, everything verified",
        *_device_lines(report["devices"]),
        *_call_lines(report),
        _memory_line(report["memory"], report["size_bytes"]),
        f"kernels {console.format_seconds(total)}, stepped one by one",
        *(bench_roofline.roofline_lines(roofline, top) if roofline else table),
    ]


def _device_lines(devices: dict[str, str]) -> list[str]:
    """What each virtual device was, where there is one beside the host."""
    others = [f"{name} on {bound}" for name, bound in devices.items() if name != HOST]
    return [f"devices {', '.join(others)}"] if others else []


def _call_lines(report: dict[str, Any]) -> list[str]:
    call, rate, threads = report["call_seconds"], report["calls_per_second"], report["threads"]
    median, low, high = (console.format_seconds(call[name]) for name in ("median", "low", "high"))
    percents = report["call_seconds_percentiles"]
    parts = (f"{name} {console.format_seconds(seconds)}" for name, seconds in percents.items())
    workers = f"{threads} thread{'s' if threads > 1 else ''}"
    median_rate, *ends = (_rate(rate[name]) for name in ("median", "low", "high"))
    between = f"between {' and '.join(ends)} calls per second, {workers}"
    return [
        f"call    median {median}, between {low} and {high} with {CONFIDENCE:.0%} confidence"
        + _spread(call),
        f"calls   {', '.join(parts)} ({report['call_count']} calls in {report['block_count']} blocks)",
        f"rate    median {median_rate}, {between}" + _spread(rate),
    ]


def _rate(per_second: float) -> str:
    """A rate without an exponent: ``99,812``, ``4.125``."""
    return f"{per_second:,.0f}" if per_second >= 1000 else f"{per_second:.4g}"


def _spread(report: dict[str, Any]) -> str:
    noisy = "; too noisy for a number" if report["is_noisy"] else ""
    return f" (spread {report['spread']:.1%}){noisy}"


def _memory_line(memory: dict[str, int | None], file_bytes: int) -> str:
    def shown(name: str) -> str:
        size = memory[f"{name}_bytes"]
        return "unknown" if size is None else console.format_bytes(size)

    return (
        f"memory  {shown('load')} resident after the load, at most {shown('peak_beyond_load')} more "
        f"in calls; workspace {shown('workspace')}, scratch {shown('scratch')}; "
        f"file {console.format_bytes(file_bytes)}"
    )


def _kernel_row(row: dict[str, Any], total_seconds: float) -> tuple[str, ...]:
    names = ", ".join(name for name, _ in row["nodes"])
    return (
        console.format_seconds(row["seconds"]),
        f"{100 * row['seconds'] / total_seconds:.1f} %",
        row["kernel"][:14],
        row["kind"],
        " ".join(row["writes"]),
        console.shortened(names, _NAMES_MAX),
    )
