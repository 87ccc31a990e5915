"""A bundle made again from its source, and compared byte by byte.

In: a bundle, a folder with its model, an open build. Out: ``Reproduction``. Not done here: finding
the model (``find_model``), who is to blame (``find_blame``), arguments and printing
(``cli.reproduce``).
"""

from __future__ import annotations

import filecmp
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace

from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.options.compile_options import CompileOptions, PluginOption
from ingot_build_rules.making.options.options import ALL_PLANNERS
from ingot_build_rules.making.stages.compile_model import CompiledModel
from ingot_build_rules.making.stages.lock_file import LockFile
from ingot_build_rules.making.stages.own_code import code_digests
from ingot_build_rules.making.stages.start_compilation import start_compilation
from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
from ingot_build_rules.tools.reproduce.blame import Blame, option_blames, shorten
from ingot_build_rules.tools.reproduce.bundle_difference import (
    BundleDifference,
    Side,
    bundle_difference,
)
from ingot_build_rules.tools.reproduce.bundle_record import read_record
from ingot_build_rules.tools.reproduce.changed_code import ChangedCode, changed_code
from ingot_build_rules.tools.reproduce.find_blame import Evidence, Load, find_blames
from ingot_build_rules.tools.reproduce.find_model import FoundModel, Sought, find_model
from ingot_build_rules.tools.ship.original_bundle import original_bundle
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.message import message
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef


@dataclass(frozen=True, slots=True)
class RequestedOptions:
    """What the source asks for today: ``where`` it does, ``options``; ``native``: the targets are
    those of any machine."""

    where: str
    options: CompileOptions
    native: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A bundle and its source ``folder``. ``lock_name``: what messages call the lock file;
    ``old_value``: results of the build that made the bundle, as far as somebody has them;
    ``plugins``: those that the user names, no others are run."""

    bundle: str
    folder: str
    lock: LockFile | None = None
    lock_name: str = ""
    requested: RequestedOptions | None = None
    old_value: Load = field(default=lambda _: None)
    plugins: tuple[PluginOption, ...] = ()


@dataclass(frozen=True, slots=True)
class Reproduction:
    """``digest``: root digest of the bundle without signatures and selftests; ``present``: of what
    was made now; ``model``: path in the source folder.

    ``difference`` is None and ``blames`` is empty where the bytes are equal. ``notes``: what else
    is worth knowing.
    """

    digest: str
    present: str
    model: str
    difference: BundleDifference | None = None
    blames: tuple[Blame, ...] = ()
    notes: tuple[str, ...] = ()


def reproduce(
    request: Request, opened: Callable[[], AbstractContextManager[Scheduler]]
) -> Reproduction:
    """Make a bundle again with the options that it records, and compare; then with those that its
    source asks for today.

    Args:
        request: what to make again.
        opened: opens the build, once the bundle is known to be whole; it goes on after failures:
            another model may fail.

    Raises:
        BundleError: the bundle is damaged. VerificationError: it does not say what it was made
        from. UserError: no model. Every error of every stage.
    """
    verify_whole_bundle(request.bundle)
    with original_bundle(request.bundle) as made:
        described = describe_bundle(made)
        record = read_record(described, request.bundle)
        _check_plugins(record.options.plugins, request)
        with opened() as build:
            side = Side(described, record)
            return _Reproducer(request, described["digest"], side, build, made).result()


def _check_plugins(recorded: Sequence[PluginOption], request: Request) -> None:
    """That the user has named every plug-in that a bundle records: a file alone runs no code."""
    named = {option.where for option in request.plugins}
    for option in recorded:
        if option.where not in named:
            raise UserError(
                f"the bundle was made with plug-in {option.settings.plugin}",
                request.bundle,
                f"its lock names {option.where}, whose code would run",
                message("if you trust it, name it: ", OptionRef("plugin", option.where)),
            )


@dataclass(frozen=True, slots=True)
class _Reproducer:
    """One reproduction: the bundle, and the build that makes it again; ``made``: the path of the
    bundle without what was added to it."""

    request: Request
    digest: str
    old: Side
    build: Scheduler
    made: str

    def result(self) -> Reproduction:
        """Make it as recorded, then as asked."""
        request, record = self.request, self.old.record
        sought = Sought(request.bundle, record, self.old.described["model"], request.lock)
        found = find_model(request.folder, sought, lambda path: self._start(path, record.options))
        notes = _notes(request, found, self.digest)
        result = Reproduction(self.digest, self.digest, found.path, notes=notes)
        present, again = self._make_again(found.compiled)
        if again is None:
            return self._as_requested(found, replace(result, notes=(*notes, *self._lock_notes())))
        difference = bundle_difference(self.old, again)
        blames = find_blames(self._evidence(found, again, difference))
        return replace(result, present=present, difference=difference, blames=tuple(blames))

    def _as_requested(self, model: FoundModel, result: Reproduction) -> Reproduction:
        """What is recorded makes the bundle; what the source says today may not."""
        requested, recorded = self.request.requested, self.old.record.options
        if requested is None:
            return result
        options = requested.options
        if requested.native:
            options = replace(options, targets=recorded.targets)
        if options == recorded:
            return result
        present, again = self._make_again(self._start(self._path(model), options))
        if again is None:
            return result
        detail = f"{requested.where} asks for the latter; the former makes the bundle"
        blames = option_blames(self.old.record.options_text, options.plain(), detail)
        difference = bundle_difference(self.old, again)
        return replace(result, present=present, difference=difference, blames=tuple(blames))

    def _lock_notes(self) -> list[str]:
        """Options that only the lock file has: the bundle is right, and the lock file is not its
        own."""
        lock = self.request.lock
        found = option_blames(lock.options, self.old.record.options_text, "") if lock else []
        return [f"{self.request.lock_name} has another {item}" for item in found]

    def _evidence(self, model: FoundModel, again: Side, difference: BundleDifference) -> Evidence:
        lock = self.request.lock
        return Evidence(
            old=self.old,
            new=again,
            load_old=self.request.old_value,
            load_new=lambda name: self.build.values.load(name, raw=False),
            difference=difference,
            model=model.path,
            names=model.compiled.names,
            planner_of=lambda plans: self._planner_of(model, plans),
            same_source=model.changed == (),
            lock=lock,
            lock_name=self.request.lock_name,
            code=changed_code(lock.code, code_digests(None)) if lock else ChangedCode(),
        )

    def _planner_of(self, model: FoundModel, wanted: Mapping[str, str]) -> str:
        recorded = self.old.record.options
        for planner in ALL_PLANNERS:
            options = replace(recorded, values=recorded.choices._replace(planner=planner))
            other = self._start(self._path(model), options).compilation
            made = {each.target: self.build.run(each.plan()).digest for each in other.targets}
            if planner != recorded.choices.planner and made == wanted:
                return planner
        return ""

    def _make_again(self, compiled: CompiledModel) -> tuple[str, Side | None]:
        """Make a bundle; return its root digest and, if it is not the same bytes, what it is."""
        bundle = self.request.bundle
        with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
            path = os.path.join(folder, "again.ingot")
            digest = compiled.save(path)
            if filecmp.cmp(path, self.made, shallow=False):
                return digest, None
            described = describe_bundle(path)
            return digest, Side(described, read_record(described, bundle))

    def _start(self, path: str, options: CompileOptions) -> CompiledModel:
        return start_compilation(self.build, path, options)

    def _path(self, model: FoundModel) -> str:
        folder = self.request.folder
        return os.path.join(folder, model.path) if os.path.isdir(folder) else folder


def _notes(request: Request, model: FoundModel, digest: str) -> tuple[str, ...]:
    notes = [
        f"source {path}: recorded {shorten(old)}, present {shorten(new)}"
        for path, old, new in model.changed or ()
    ]
    lock = request.lock
    if lock is not None and lock.bundle != digest:
        notes.append(f"{request.lock_name} is of another bundle, {shorten(lock.bundle)}")
    return tuple(notes)
