"""Builds what a project asks for, and no more than has changed.

In: an expanded project, names of bundles and tests, an open build. Out: a ``Report``. Not done
here: reading the project, arguments, printing (``cli.build``), why things ran (``explanations``).

A bundle is up to date when what was asked for, all code and tools, every source and the file itself
are as the last build left them. Otherwise its rules are asked for: most of their results are in the
cache.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from ingot_artifacts.errors import OutputError
from ingot_artifacts.store.atomic import output_error
from ingot_build_rules.engine.actions.action import Action
from ingot_build_rules.engine.actions.content import digest
from ingot_build_rules.engine.actions.errors import BuildStoppedError
from ingot_build_rules.engine.actions.rule import Timestamp
from ingot_build_rules.engine.cache.file_digests import stamp_of, timestamp
from ingot_build_rules.engine.events.trace_file import traced
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.option_rows import files_of
from ingot_build_rules.making.options.plugins import plugin_files
from ingot_build_rules.making.project.compile_requests import CompileRequest
from ingot_build_rules.making.rules.import_model import IMPORT_MODEL
from ingot_build_rules.making.stages.bundle_file import is_other_file, write_bundle_file
from ingot_build_rules.making.stages.describe_placement import describe_placement
from ingot_build_rules.making.stages.kind_of_file import (
    check_model_kind,
    is_program,
    weights_beside,
)
from ingot_build_rules.making.stages.lock_file import lock_path
from ingot_build_rules.making.stages.model_source import open_model
from ingot_build_rules.making.stages.start_compilation import compilation_of
from ingot_build_rules.tools.workspace.state import BundleState, WorkspaceState
from ingot_build_rules.tools.workspace.target_result import TargetResult
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.lazy_dataclass import dataclass

Check = Callable[[CompileRequest, TargetResult], None]
"""Raises what forbids that a bundle of this root and these sources is the project's."""
Notify = Callable[[str, str, str], None]
"""(name of a bundle or test, what became of it, path), as soon as it is known."""


@dataclass(slots=True)
class Workspace:
    """One build of one project: ``folder`` holds it; ``code`` is the digest of all code and tools;
    ``dry``: nothing is written; ``check`` looks at every bundle before it is written; ``thorough``:
    bundles that are up to date are asked for, too."""

    folder: str
    build: Scheduler
    state: WorkspaceState
    code: str
    toolchain: tuple[tuple[str, str], ...]
    dry: bool = False
    thorough: bool = False
    check: Check = lambda _request, _result: None
    notify: Notify = lambda _name, _how, _path: None
    results: dict[str, TargetResult] = field(default_factory=dict[str, TargetResult])

    def build_bundles(self, requests: Sequence[CompileRequest]) -> list[TargetResult]:
        """Bring bundles up to date; each has a result, failures too."""
        stale = [request for request in requests if not self._is_left_alone(request)]
        started = timestamp()
        tasks = self.build.run_all([self._bundle(request) for request in stale])
        for request, task in zip(stale, tasks, strict=True):
            result = self.results[request.bundle.name]
            result.actions = traced(task.trace)
            result.sources += _beside(result.sources, [action for _, action in task.trace])
            if task.error is not None:
                self._failed(result, task.error)
            elif not self.dry:
                self._remember(request, result, started)
        return [self.results[request.bundle.name] for request in requests]

    def locked(self, result: TargetResult) -> None:
        """Note what the lock file of a bundle looks like, now that it is written."""
        known = self.state.bundles.get(result.name)
        if known is not None:
            self.state.bundles[result.name] = replace(known, lock=stamp_of(lock_path(result.path)))

    # -- one bundle --------------------------------------------------------------------------------

    def _path(self, request: CompileRequest) -> str:
        return os.path.normpath(os.path.join(self.folder, request.bundle.output))

    def _model_path(self, request: CompileRequest) -> str:
        return os.path.normpath(os.path.join(self.folder, request.source))

    def _is_left_alone(self, request: CompileRequest) -> bool:
        """Whether a bundle is up to date; one that may not be what it is has failed."""
        if not self._is_current(request):
            return False
        result = self.results[request.bundle.name]
        try:
            self.check(request, result)
        except IngotError as error:
            self._failed(result, error)
        else:
            self.notify(result.name, result.status, result.path)
        return True

    def _is_current(self, request: CompileRequest) -> bool:
        name = request.bundle.name
        result = self.results[name] = TargetResult(name, "skipped", self._path(request))
        result.toolchain = self.toolchain
        known = self.state.bundles.get(name)
        if known is None or self.thorough or not self._is_as_left(known, request, result.path):
            return False
        result.status, result.size_bytes = "unchanged", known.stamp[1]
        result.root, result.sources, result.stamp = known.root, known.sources, known.stamp
        return True

    def _is_as_left(self, known: BundleState, request: CompileRequest, path: str) -> bool:
        """Whether the request, our code, the file, its lock and its sources are what they were."""
        return (
            known.request == request_digest(request)
            and known.code == self.code
            and known.output == path
            and known.stamp == stamp_of(path)
            and known.lock is not None
            and known.lock == stamp_of(lock_path(path))
            and all(self.build.files.digest(source) == content for source, content in known.sources)
        )

    def _option_files(self, request: CompileRequest) -> list[tuple[str, str]]:
        """Path and digest of the files of the bundle's options: ops of the user, measurements."""
        paths = [os.path.join(self.folder, path) for path in files_of(request.bundle.options)]
        return [(path, self.build.files.digest(path)) for path in paths]

    async def _bundle(self, request: CompileRequest) -> None:
        result = self.results[request.bundle.name]
        path = self._model_path(request)
        if not is_program(path):
            check_model_kind(path)
        own = self._sources(path, request.options)
        result.sources = (*own, *self._option_files(request))
        compilation = compilation_of(self.build, path, request.options, self.toolchain)
        result.compilation = compilation
        parts = await compilation.bundle_parts()
        result.root, result.size_bytes = parts.root, parts.size_bytes
        result.placement = await describe_placement(compilation)
        known = dict(result.sources)
        paths = [each for each in await compilation.source_paths() if each not in known]
        beside = [(path, self.build.files.digest(path)) for path in paths]
        self.check(request, replace(result, sources=(*result.sources, *beside)))
        if self.dry:
            result.status = "unchanged" if self._is_there(result) else "would-build"
        else:
            self._refuse_strangers(result)
            _make_folder(result.path)
            is_new = await write_bundle_file(compilation, result.path)
            result.status = "built" if is_new else "unchanged"
        self.notify(result.name, result.status, result.path)

    def _sources(self, path: str, options: CompileOptions) -> tuple[tuple[str, str], ...]:
        """The files that a bundle is made from, as far as they are known before they are read."""
        files = [path] if not is_program(path) else list(filter(None, (path, weights_beside(path))))
        read = [(file, open_model(file, self.build.files.digest).digest) for file in files]
        return (*read, *plugin_files(options.plugins))

    def _is_there(self, result: TargetResult) -> bool:
        """Whether a bundle that would be built has the bytes that the last build left."""
        known = self.state.bundles.get(result.name)
        return known is not None and (known.root, known.output, known.stamp) == (
            result.root,
            result.path,
            stamp_of(result.path),
        )

    def _refuse_strangers(self, result: TargetResult) -> None:
        """Never write over a file that is neither a bundle nor what an earlier build left."""
        known = self.state.bundles.get(result.name)
        if (known is None or known.output != result.path) and is_other_file(result.path):
            what, do = (
                "the output is a file that is no bundle",
                "choose another output, or remove it",
            )
            raise OutputError(what, result.path, "writing would destroy it", do)

    def _remember(self, request: CompileRequest, result: TargetResult, started: Timestamp) -> None:
        """Note what a bundle was made from; of a source that may have changed since it was read,
        that it is none of today's."""
        steady = all(self.build.files.is_steady(path, started) for path, _ in result.sources)
        sources = tuple((path, content if steady else "") for path, content in result.sources)
        result.stamp = stamp_of(result.path)
        known = self.state.bundles.get(result.name)
        if result.stamp is not None:
            self.state.bundles[result.name] = BundleState(
                request_digest(request), self.code, sources, result.path, result.stamp, result.root,
                options=options_text(request.options),
                earlier=known.outputs_beside(result.path) if known else (),
            )  # fmt: skip

    def _failed(self, result: TargetResult, error: BaseException) -> None:
        result.error = error
        result.status = "skipped" if isinstance(error, BuildStoppedError) else "failed"
        if self.dry and result.status == "skipped":
            result.status = "would-build"
        self.notify(result.name, result.status, result.path)


def _make_folder(path: str) -> None:
    """Make the folder that a file goes to.

    Raises:
        OutputError: something else is in its place, no permission, no space.
    """
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as error:
        raise output_error(path, os.path.dirname(path), error) from error


def _beside(
    sources: tuple[tuple[str, str], ...], actions: Sequence[Action]
) -> tuple[tuple[str, str], ...]:
    """The files beside the model that import has read, as it found them."""
    reads = {pair for action in actions if action.rule is IMPORT_MODEL for pair in action.reads}
    folder = os.path.dirname(sources[0][0]) if reads else ""
    return tuple(sorted((os.path.join(folder, name), content) for name, content in reads))


def request_digest(request: CompileRequest) -> str:
    """Return what names everything that the project says of a bundle."""
    return digest((request.source, _options_digest(request.options)))


@functools.cache
def options_text(options: CompileOptions) -> str:
    """Return the options as a lock has them, one line of JSON."""
    return json.dumps(options.plain(), sort_keys=True)


@functools.cache
def _options_digest(options: CompileOptions) -> str:
    """Bundles of a large project share few sets of options."""
    return digest(options)


def exit_code_of(error: BaseException) -> int:
    """The exit code that an error asks for."""
    return error.exit_code if isinstance(error, IngotError) else IngotError.exit_code
