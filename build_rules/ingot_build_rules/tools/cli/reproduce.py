"""Verb ``reproduce``: a bundle made again from its source, compared, and what differs and why.

In: a bundle, its source. Out: a sentence, or the error that names the blame; an exit code. Not done
here: the work (``reproduce.reproduce``).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ingot_build_rules.making.stages.kind_of_file import check_bundle_kind
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.failure import FailedCommand
from ingot_build_rules.tools.workspace.cache_folder import (
    cache_folder,
    cache_max_bytes,
    cache_trust,
)
from ingot_compiler.ir.errors import UserError, VerificationError

if TYPE_CHECKING:
    from ingot_artifacts.store.trust import Trust
    from ingot_build_rules.engine.scheduler import Scheduler
    from ingot_build_rules.making.options.compile_options import PluginOption
    from ingot_build_rules.tools.reproduce.bundle_difference import KernelDifference
    from ingot_build_rules.tools.reproduce.find_blame import Load
    from ingot_build_rules.tools.reproduce.reproduce import Reproduction, RequestedOptions

_DO = {
    "option": "build with the recorded option, or accept the other bundle",
    "model": "check out the source that the bundle was made from",
    "weight": "check out the source that the bundle was made from",
    "names": "check out the source that the bundle was made from",
    "toolchain": "install what is recorded",
    "code": "use the Ingot that made the bundle; if it is this one, report it",
}
"""Kind of blame -> advice."""


def run(arguments: argparse.Namespace) -> int:
    """Make the bundle again, compare, report."""
    from ingot_build_rules.making.stages.lock_file import lock_path, read_lock
    from ingot_build_rules.tools.reproduce.reproduce import Request, reproduce

    check_bundle_kind(arguments.bundle)
    started = time.perf_counter()
    named = arguments.lock or lock_path(arguments.bundle)
    lock = read_lock(named) if arguments.lock or os.path.exists(named) else None
    lock_name = os.path.basename(named) if lock else ""
    plugins = _plugins(arguments)
    requested, notes = _requested(arguments.source, arguments.bundle, plugins)
    folder = cache_folder(arguments.cache)
    trust = cache_trust(shared=arguments.cache_shared, writes=arguments.cached)
    with _old_values(folder, trust) as old_value:
        bundle, source = arguments.bundle, arguments.source
        request = Request(bundle, source, lock, lock_name, requested, old_value, plugins)
        found = reproduce(request, lambda: _build(arguments, folder, trust, plugins))
    _report(found, (*notes, *found.notes), arguments, time.perf_counter() - started)
    return 0


def _plugins(arguments: argparse.Namespace) -> tuple[PluginOption, ...]:
    """The plug-ins that the command names; they may lie in the source folder."""
    from ingot_build_rules.making.options.plugins import read_plugins

    source = arguments.source
    return read_plugins(
        arguments.plugin, source if os.path.isdir(source) else os.path.dirname(source)
    )


def _requested(
    folder: str, bundle: str, plugins: tuple[PluginOption, ...]
) -> tuple[RequestedOptions | None, tuple[str, ...]]:
    """What the project asks for today; that it cannot be read is no reason not to make the bundle
    again."""
    from ingot_build_rules.tools.workspace.requested_options import requested_options

    try:
        return requested_options(folder, bundle, {option.where for option in plugins}), ()
    except UserError as error:
        return None, (f"ingot.toml was left out: {error.what}",)


@contextmanager
def _old_values(folder: str, trust: Trust) -> Generator[Load]:
    """Values of the build that made the bundle, if its cache is this one."""
    from ingot_artifacts.errors import ArtifactError
    from ingot_artifacts.store.cache import Cache
    from ingot_build_rules.engine.actions.codec import Codec
    from ingot_build_rules.engine.actions.values import Values
    from ingot_build_rules.making.rules.registry import RULEBOOK

    def load(digest: str) -> object:
        try:
            return values.load(digest, raw=False)
        except (ArtifactError, ValueError):
            return None

    with closing(Cache(folder, read_only=True, trust=trust)) as cache:
        values = Values(cache.blobs, Codec(RULEBOOK.types))
        yield load


@contextmanager
def _build(
    arguments: argparse.Namespace, folder: str, trust: Trust, plugins: tuple[PluginOption, ...]
) -> Generator[Scheduler]:
    """A build in a cache of its own, which is empty, unless the user's may be used."""
    from ingot_build_rules.engine.scheduler import Policy
    from ingot_build_rules.making.stages.open_build import BuildSettings, open_build
    from ingot_build_rules.tools.cli.building.build_progress import build_observer
    from ingot_build_rules.tools.workspace.action_events import ActionEvents

    with ExitStack() as stack:
        if not arguments.cached:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ingot-"))
        observe = stack.enter_context(build_observer({}, quiet=arguments.quiet or arguments.json))
        policy, observers = Policy(keep_going=True), ActionEvents(observe).observers()
        settings = BuildSettings(
            folder,
            trust,
            jobs=arguments.jobs,
            policy=policy,
            observers=observers,
            plugins=plugins,
            max_bytes=cache_max_bytes(),
            tell=console.print_note,
        )
        yield stack.enter_context(open_build(settings))


def _report(
    reproduction: Reproduction,
    notes: tuple[str, ...],
    arguments: argparse.Namespace,
    seconds: float,
) -> None:
    """Print the result; another bundle is an error."""
    values = _plain(reproduction, notes) | {"seconds": round(seconds, 3)}
    if reproduction.difference is not None:
        error = VerificationError(
            "the bundle that was made again is another one",
            f"{arguments.bundle}, {reproduction.difference}",
            "; ".join(map(str, (*reproduction.blames, *notes))),
            _DO[reproduction.blames[0].kind],
        )
        raise FailedCommand(error, values)
    lines = [
        f"reproduced: {reproduction.digest}",
        f"  from {reproduction.model} in {console.format_seconds(seconds)}",
        *(f"  note: {note}" for note in notes),
    ]
    console.print_report(values, lines, as_json=arguments.json)


def _plain(reproduction: Reproduction, notes: tuple[str, ...]) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "equal": reproduction.difference is None,
        "digest": reproduction.digest,
        "model": reproduction.model,
        "notes": list(notes),
    }
    if reproduction.difference is None:
        return plain
    kernel = reproduction.difference.kernel
    return plain | {
        "present_digest": reproduction.present,
        "section": reproduction.difference.section or None,
        "sections": list(reproduction.difference.sections),
        "target": reproduction.difference.target or None,
        "kernel": None if kernel is None else _plain_kernel(kernel),
        "blame": [asdict(item) for item in reproduction.blames],
    }


def _plain_kernel(kernel: KernelDifference) -> dict[str, object]:
    return {
        "target": kernel.target,
        "launch": kernel.launch,
        "recorded": kernel.old,
        "present": kernel.new,
        "nodes": [list(node) for node in kernel.nodes],
    }
