"""Verb ``report``: one page that shows what a bundle is and does.

In: a bundle, perhaps another to compare with. Out: an HTML file. Not done here: what is in it
(``view``).
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console, usage
from ingot_compiler.ir.errors import UserError
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_build_rules.tools.view.report_data import Measured
    from ingot_build_rules.tools.view.report_subject import ReportSubject


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    from ingot_build_rules.making.stages.output_file import check_output, write_text
    from ingot_build_rules.tools.view.measure import machine_limits
    from ingot_build_rules.tools.view.report_data import report_data
    from ingot_build_rules.tools.view.report_page import report_page

    check_bundle_kind(arguments.bundle)
    usage.unique(arguments.device, "--device")
    others = [name for name in (arguments.against, arguments.inputs) if name]
    output = arguments.output or os.path.splitext(arguments.bundle)[0] + ".html"
    check_output(output, [arguments.bundle, *others])
    subject, measured, why = _looked_at(arguments, arguments.bundle, arguments.digest)
    data = report_data(subject, measured, machine_limits(arguments.threads) if measured else None)
    if why:
        data["unmeasured"] = why
    if arguments.against:
        data["against"] = _against(arguments, data["launches"])
    page = report_page(data)
    write_text(output, page)
    size_bytes = len(page.encode())
    if arguments.json:
        values = {"bundle": arguments.bundle, "digest": data["digest"], "output": output}
        console.print_json({**values, "size_bytes": size_bytes, "unmeasured": why or None})
    else:
        lines = [f"{output}: {console.format_bytes(size_bytes)}, opens in any browser, offline"]
        console.print_lines(*lines, *([why] if why else []))
    return 0


def _looked_at(
    arguments: argparse.Namespace, bundle: str, digest: str | None
) -> tuple[ReportSubject, Measured | None, str]:
    """Evaluate, and where it is possible measure, one bundle; else the text says why not."""
    from ingot_build_rules.tools.view.report_subject import read_subject

    shapes = _given_shapes(arguments, bundle, digest)
    why, variant = "", arguments.variant
    try:
        if arguments.no_run:
            raise UserError("nothing was run", do="leave out --no-run")
        feed, variant, measured = _measured(arguments, bundle, digest)
        shapes = {name: array.shape for name, array in feed.items()}
    except UserError as error:  # a size that nobody said, or --no-run
        why, measured = f"not measured: {error.what}; {error.do}", None
    return read_subject(bundle, variant, shapes, digest), measured, why


def _given_shapes(
    arguments: argparse.Namespace, bundle: str, digest: str | None
) -> dict[str, tuple[int, ...]]:
    """The shapes that the user wants to see, also where nothing is run."""
    if not arguments.shape:
        return {}
    from ingot_artifacts.inspect.describe import describe_bundle
    from ingot_build_rules.tools.cli.shell.call_shapes import call_shapes

    inputs = describe_bundle(bundle, digest)["inputs"]
    return call_shapes({each["name"]: each["shape"] for each in inputs}, arguments.shape)


def _measured(
    arguments: argparse.Namespace, bundle: str, digest: str | None
) -> tuple[dict[str, Any], str, Measured | None]:
    """Return the inputs, the variant that ran, and its times.

    Raises:
        UserError: the inputs have open sizes, and there is no file of them.
    """
    import ingot_runtime
    from ingot_build_rules.tools.cli.shell import arrays
    from ingot_build_rules.tools.view import measure
    from ingot_build_rules.tools.view.report_data import Measured

    load = partial(
        ingot_runtime.load,
        bundle,
        threads=arguments.threads,
        devices=_devices(arguments, bundle),
        variant=arguments.variant,
        digest=digest,
    )
    try:
        session = load()
    except ingot_runtime.IncompatibleError as error:
        raise UserError(error.what, error.where, error.why, error.do) from None
    feed = arrays.read_inputs(session, arguments.inputs, arguments.shape)
    blocks = measure.measure_blocks(lambda: session.run(feed), arguments.seconds)
    times = [seconds for block in blocks for seconds in block]
    stepped = load(executor="vm", verify="code")
    launches = measure.launch_seconds(stepped, feed)
    measured = Measured(
        arguments.threads, len(times), measure.percentiles(times), launches, session.devices
    )
    return feed, session.loaded.variant.target, measured


def _devices(arguments: argparse.Namespace, bundle: str) -> dict[str, str]:
    """The devices that the user names; of another bundle than the one that is shown, those that it
    has."""
    given = usage.unique(arguments.device, "--device")
    if bundle == arguments.bundle or not given:
        return given
    from ingot_artifacts.inspect.describe import describe_bundle

    names = {device["name"] for device in describe_bundle(bundle)["devices"]}
    return {name: device for name, device in given.items() if name in names}


def _against(arguments: argparse.Namespace, launches: list[dict[str, Any]]) -> dict[str, Any]:
    """What differs from another bundle, and its launches beside ours."""
    from ingot_artifacts.inspect.diff import diff_bundles
    from ingot_build_rules.tools.view.compare_launches import compare_launches
    from ingot_build_rules.tools.view.launch_rows import launch_rows

    check_bundle_kind(arguments.against)
    try:
        subject, measured, _ = _looked_at(arguments, arguments.against, None)
    except IngotError as error:
        if arguments.against in error.where:
            raise
        raise error.at(f"{arguments.against}, {error.where}") from None
    others = launch_rows(subject, None if measured is None else measured.launches)
    return {
        "model": subject.described["model"],
        "digest": subject.described["digest"],
        "lines": diff_bundles(arguments.against, arguments.bundle),
        "launches": compare_launches(others, launches),
    }
