"""A build over a cache and processes, opened and closed: where the generic engine meets our rules
and our code.

In: where the cache is, whose records in it count, how many processes, what to do with failures and
hits. Out: a ``Scheduler``. Not done here: scheduling.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import ingot_artifacts
import ingot_build_rules
import ingot_compiler
import ingot_runtime
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.folder_layer import open_layer
from ingot_artifacts.store.layout import versioned
from ingot_artifacts.store.trust import Trust
from ingot_build_rules.compilation.compilation import Compilation
from ingot_build_rules.compilation.model_source import Model, open_model
from ingot_build_rules.compilation.toolchain import toolchain
from ingot_build_rules.engine.actions.backlog import Backlog
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.actions.rule import Rule
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.cache.action_cache import ActionCache
from ingot_build_rules.engine.cache.code_digest import CodeDigests
from ingot_build_rules.engine.cache.file_digests import DiskFiles
from ingot_build_rules.engine.executors.executor import Executor, InlineExecutor
from ingot_build_rules.engine.executors.jobserver import JobServer
from ingot_build_rules.engine.executors.lint import LintExecutor
from ingot_build_rules.engine.executors.local import LocalExecutor
from ingot_build_rules.engine.executors.pool import PoolExecutor
from ingot_build_rules.engine.scheduler import Observers, Policy, Scheduler
from ingot_build_rules.rules.compile_options import CompileOptions
from ingot_build_rules.rules.registry import RULEBOOK
from ingot_compiler.backends.host.zig import zig_path

if TYPE_CHECKING:
    from ingot_build_rules.compilation.compile_model import CompiledModel

_PACKAGES = (ingot_artifacts, ingot_build_rules, ingot_compiler, ingot_runtime)
PACKAGE_FOLDERS = {
    package.__name__: os.path.dirname(str(package.__file__)) for package in _PACKAGES
}
_DISTRIBUTIONS = ("llvmlite", "msgpack", "numpy", "onnx")
"""Packages whose code decides results; each module has the name of its distribution."""
_ENCODING = (
    "ingot_build_rules/engine/actions/codec.py",
    "ingot_build_rules/engine/actions/message_pack.py",
)
Code = tuple[tuple[str, str], ...]
"""(file, package or program, digest)."""


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """``cache_folder`` is written to, ``lower`` ones are only read; ``trust`` says whose records in
    them count; with ``read_only`` the first one is, too. ``jobs``: processes at most, 1 runs
    everything in this one; more are started when there is enough to do. ``rehash``: look into every
    file. ``makeflags``: names the jobserver of a make that shares out jobs; ``warn`` is told when
    it cannot be had. ``lint``: run everything again, in this process, and fail what reads a file
    that its key does not know of. ``history``: rule -> seconds of one action in past builds."""

    cache_folder: str
    trust: Trust
    lower: tuple[str, ...] = ()
    read_only: bool = False
    jobs: int = 1
    rehash: bool = False
    policy: Policy = field(default_factory=Policy)
    observers: Observers = field(default_factory=Observers)
    waiting: Callable[[int], None] | None = None
    makeflags: str = ""
    warn: Callable[[str], None] = lambda _: None
    lint: bool = False
    history: Mapping[str, float] = field(default_factory=dict[str, float])


@contextmanager
def open_build(settings: BuildSettings) -> Generator[Scheduler]:
    """Open a build; its processes end with the block, at once if it fails.

    Raises:
        CacheAuthorityError: others can write to the cache. OutputError: it cannot be made or
            written.
    """
    with ExitStack() as stack:
        folder, lower = settings.cache_folder, settings.lower
        if settings.read_only:
            # What is made is of use within this build alone.
            folder, lower = (
                stack.enter_context(tempfile.TemporaryDirectory(prefix="ingot-")),
                (folder, *lower),
            )
        cache = Cache(
            folder, [open_layer(path, settings.trust) for path in lower], trust=settings.trust
        )
        stack.callback(cache.close)
        stack.enter_context(cache.building(settings.waiting))
        files = DiskFiles(
            _facts_path(settings, "file_digests"), rehash=settings.rehash, saves=not settings.read_only,
            key=settings.trust.key,
        )  # fmt: skip
        values = Values(cache.blobs, Codec(RULEBOOK.types))
        backlog = Backlog(settings.history)
        executor = _executor(settings, cache, values, backlog, stack)
        digests = code_digests_of(settings)
        keys = KeyMaker(
            code_of(digests),
            lambda tool: files.digest(tool_path(tool)),
            module_code_of(digests),
        )
        build = Scheduler(
            RULEBOOK, values, executor, ActionCache(cache.index, cache.blobs), cache.leases, files, keys,
            replace(settings.policy, checked_share=1.0) if settings.lint else settings.policy, settings.observers, backlog,
        )  # fmt: skip
        try:
            yield build
        except BaseException:
            executor.close(kill=True)
            raise
        executor.close(kill=False)
        cache.index.touch(build.used_records())
        files.save()


def _executor(
    settings: BuildSettings, cache: Cache, values: Values, backlog: Backlog, stack: ExitStack
) -> Executor:
    if settings.lint:
        folders = [folder for layer in cache.layers for folder in layer.folders]
        return LintExecutor(RULEBOOK, values, [*PACKAGE_FOLDERS.values(), *folders])
    inline = InlineExecutor(RULEBOOK, values)
    if settings.jobs == 1:
        return inline
    addresses = [layer.address for layer in cache.layers]
    pool = PoolExecutor(RULEBOOK, addresses, cache.temporary, _tokens(settings, stack))
    return LocalExecutor(inline, pool, settings.jobs, backlog, settings.warn)


def _tokens(settings: BuildSettings, stack: ExitStack) -> JobServer | None:
    server = JobServer.from_makeflags(settings.makeflags)
    if server is not None:
        stack.enter_context(server)
        if server.warning:
            settings.warn(server.warning)
    return server


def tool_path(tool: str) -> str:
    """The program that a rule calls by this name."""
    assert tool == "zig", tool
    return zig_path()


def code_of(digests: CodeDigests) -> Callable[[Rule[object, object]], str]:
    """Return the function from a rule to the digest of its code."""
    return lambda rule: module_code_of(digests)(rule.compute.__module__)


def module_code_of(digests: CodeDigests) -> Callable[[str], str]:
    """Return the function from a module to the digest of the code that it can run."""
    return lambda module: _digest(code_parts(digests, module))


def _digest(code: Code) -> str:
    return hashlib.sha256("".join(f"{name}\n{item}\n" for name, item in code).encode()).hexdigest()


def code_parts(digests: CodeDigests, module: str) -> Code:
    """What decides results besides inputs: the code that ``module`` can run, the encoding of
    results, the Python that runs it.

    The codec's own files alone: it can import every class of an artifact, and imports those that
    the rule's own code names.
    """
    encoding = [pair for pair in digests.files_of(Codec.__module__) if pair[0] in _ENCODING]
    assert len(encoding) == len(_ENCODING), "the codec has moved"
    python = (f"python {sys.version_info[0]}.{sys.version_info[1]}", "")
    return (
        *sorted({*digests.files_of(module), *encoding}),
        *digests.distributions_of(module),
        python,
    )


def code_digests_of(settings: BuildSettings) -> CodeDigests:
    """Digests of our own code, kept between builds in the cache."""
    return code_digests(
        _facts_path(settings, "code_digests"), saves=not settings.read_only, key=settings.trust.key
    )


@functools.cache
def code_digests(cache_file: str | None, *, saves: bool = True, key: bytes = b"") -> CodeDigests:
    """Digests of our own code and of the packages that it calls: what runs in this process does not
    change any more."""
    distributions = {name: name for name in _DISTRIBUTIONS}
    return CodeDigests(PACKAGE_FOLDERS, cache_file, distributions, sys.path, saves=saves, key=key)


def _facts_path(settings: BuildSettings, name: str) -> str:
    return os.path.join(versioned(settings.cache_folder), name)


def start_compilation(
    build: Scheduler, model: Model, options: CompileOptions, max_bytes: int | None = None
) -> CompiledModel:
    """Start a compilation of ``model`` over an open build, which is refused where it needs more
    than ``max_bytes``.

    Raises:
        UserError: the file is not there or not readable.
    """
    # It imports the types of all stages; `ingot build` looks at none.
    from ingot_build_rules.compilation.compile_model import CompiledModel

    files = build.files
    source = open_model(model, files.digest)
    return CompiledModel(
        Compilation(build, source, options, toolchain(files.digest(tool_path("zig"))), max_bytes)
    )


def start_from_text(
    build: Scheduler,
    stage: str,
    path: str,
    options: CompileOptions,
    weights: str | None,
    max_bytes: int | None = None,
) -> CompiledModel:
    """Start a compilation of the text of a ``stage``, "graph" or "placed", with the ``weights`` of
    a file, if there is one.

    Raises:
        UserError: a file is not there, or not of this text. ModelError: the text does not parse, or
            is not valid.
    """
    from ingot_build_rules.compilation.compile_model import CompiledModel
    from ingot_build_rules.compilation.from_text import TextCompilation, placed_options, read_stage
    from ingot_build_rules.compilation.stage_weights import StageWeights, read_weights
    from ingot_compiler.ir.graph import Graph

    found = read_stage(stage, path)
    given = read_weights(weights) if weights is not None else StageWeights()
    chosen = options if isinstance(found, Graph) else placed_options(found, options)
    tools = toolchain(build.files.digest(tool_path("zig")))
    return CompiledModel(TextCompilation(build, found, chosen, tools, given, path, max_bytes))
