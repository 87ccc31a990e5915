"""Builders to be killed, stopped and crowded: rules that write down when they run, builds over
them, processes that build.

In: folders. Out: schedulers, processes, what was written down. Not done here: assertions.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.tidy.source import ROOT

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.layers import open_layer
from ingot_build_rules.engine.actions.action import Action
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.build import Build
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.actions.rule import FileDigests, Rule, Rulebook, RuleContext
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.cache.action_cache import ActionCache
from ingot_build_rules.engine.cache.file_digests import DiskFiles
from ingot_build_rules.engine.executors.executor import InlineExecutor
from ingot_build_rules.engine.executors.pool import PoolExecutor
from ingot_build_rules.engine.scheduler import Observers, Policy, Scheduler
from ingot_runtime.ingot_error import IngotError

HANG_SECONDS = 300.0
_PADDING_BYTES = 3000


@dataclass(frozen=True, slots=True)
class Work:
    """``number`` and ``parts`` decide the result; the rest is how to get there: where to write down
    what happens, how long to sleep, what to do wrong."""

    number: int
    parts: tuple[Artifact[int], ...] = ()
    log: str = ""
    seconds: float = 0.0
    do: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """A file to read; ``folder`` is where it is, and decides nothing."""

    name: str
    folder: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A function to load, as "module:attribute", and what to call it with."""

    function: str
    number: int


class WrongError(IngotError):
    """What a rule raises on purpose."""


def write_line(log: str, *words: object) -> None:
    """Add a line to a file that many processes write to."""
    if log:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())
        os.close(descriptor)


def _work(context: RuleContext, inputs: Work) -> tuple[Artifact[int], Artifact[memoryview]]:
    parts = [part.value() for part in inputs.parts]
    name = name_of(inputs)
    write_line(inputs.log, "begin", name, os.getpid())
    end = time.monotonic() + inputs.seconds
    # Python hears a signal that comes right before a system call when that is over.
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))
    if inputs.do:
        _MISDEEDS[inputs.do](context)
    result = (
        context.keep(value_of(inputs.number, parts)),
        context.keep_bytes(padding_of(inputs.number)),
    )
    write_line(inputs.log, "end", name, os.getpid())
    return result


def _look(context: RuleContext, inputs: Look) -> str:
    """The content of a file; ``do``: where to write something else after it was read."""
    path = Path(inputs.folder, inputs.name)
    text = path.read_text()
    if inputs.do:
        path.write_text(inputs.do)
    context.note(inputs.name)
    return text


def _resolve(files: FileDigests, inputs: Look, name: str) -> str:
    return files.digest(f"{inputs.folder}/{name}")


PARTS = ("wrong", Look("here", "in a folder"), ("on", Look("purpose", "")), "nothing")
"""Of the error that ``raise`` raises: two of them hold references."""


def _raise(_: RuleContext) -> None:
    raise WrongError(*PARTS)


def _start_child(_: RuleContext) -> None:
    """A program of the rule's own, in the way when its worker is killed."""
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import time; time.sleep(3600)",
            f"a child of a rule for {os.getppid()}",
        ],
        check=True,
    )


def _leave_a_file(_: RuleContext) -> None:
    """A temporary folder that nobody deletes, and a death."""
    Path(tempfile.mkdtemp(), "left").write_text("left")
    os.kill(os.getpid(), signal.SIGKILL)


_MISDEEDS: dict[str, Callable[[RuleContext], object]] = {
    "raise": _raise,
    "exit": lambda _: os._exit(7),
    "sys.exit": lambda _: sys.exit(3),
    "segfault": lambda _: ctypes.string_at(0),
    "kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "bug": lambda _: 1 // 0,
    "print": lambda _: (print("noise " * 1000, flush=True), os.write(1, b"noise" * 1000)),
    "read": lambda _: sys.stdin.read(),
    "child": _start_child,
    "temporary": _leave_a_file,
    "load": lambda context: context.load(f"{__name__}:add_one"),
    "surrogate": lambda context: context.warn("\udcff"),
}


def _call(context: RuleContext, inputs: Call) -> int:
    function: Callable[[int], int] = context.load(inputs.function)
    return function(inputs.number)


def add_one(number: int) -> int:
    """Code that inputs of ``call`` may name."""
    return number + 1


def never_listed(number: int) -> int:
    """Code that no inputs may name."""
    return number - 1


CALL = Rule("call", 1, ("function", "number"), _call, loads=("function",))
WORK = Rule("work", 1, ("number", "parts"), _work)
LOOK = Rule("look", 1, ("name",), _look, _resolve)
BOOK = Rulebook(
    f"{__name__}:BOOK",
    (WORK, LOOK, CALL),
    {"Work": __name__, "Look": __name__, "Call": __name__},
    (WrongError,),
    {"call": (f"{__name__}:add_one",)},
)


def name_of(inputs: Work) -> str:
    """What a run of ``work`` is called in the log."""
    return ".".join([str(inputs.number), *(part.digest[:12] for part in inputs.parts)])


def value_of(number: int, parts: Sequence[int]) -> int:
    """What ``work`` gives."""
    return (number * 31 + sum(parts) * 7 + 1) % 10_007


def padding_of(number: int) -> bytes:
    """Bytes that ``work`` gives besides."""
    return number.to_bytes(4, "big") * (_PADDING_BYTES // 4)


async def fold(build: Build, numbers: Sequence[int], log: str = "", seconds: float = 0.0) -> int:
    """Work on numbers, then on pairs of results, until one is left."""
    row = [
        item[0]
        for item in await build.need_all(
            WORK, [Work(number, (), log, seconds) for number in numbers]
        )
    ]
    while len(row) > 1:
        pairs = [Work(0, tuple(row[at : at + 2]), log, seconds) for at in range(0, len(row), 2)]
        row = [item[0] for item in await build.need_all(WORK, pairs)]
    return await build.value(row[0])


def folded(numbers: Sequence[int]) -> int:
    """The same without any build."""
    row = [value_of(number, ()) for number in numbers]
    while len(row) > 1:
        row = [value_of(0, row[at : at + 2]) for at in range(0, len(row), 2)]
    return row[0]


def action_count(numbers: int) -> int:
    """How many actions a fold of so many numbers has."""
    return numbers if numbers == 1 else numbers + action_count((numbers + 1) // 2)


async def each(build: Build, numbers: Sequence[int], log: str = "", seconds: float = 0.0) -> int:
    """Work on numbers that have nothing to do with each other."""
    done = await build.need_all(WORK, [Work(number, (), log, seconds) for number in numbers])
    return sum([await build.value(item[0]) for item in done])


@contextmanager
def open_scheduler(
    folder: str | Path,
    jobs: int = 1,
    policy: Policy | None = None,
    observers: Observers | None = None,
    lower: Sequence[str] = (),
    files: FileDigests | None = None,
) -> Generator[Scheduler]:
    """Open a build as the command does; its processes end with the block, at once if it fails."""
    with ExitStack() as stack:
        cache = Cache(str(folder), [open_layer(path) for path in lower])
        stack.callback(cache.close)
        stack.enter_context(cache.building())
        values = Values(cache.blobs, Codec(BOOK.types))
        pool = PoolExecutor(BOOK, [layer.address for layer in cache.layers], cache.temporary)
        pool.grow(jobs if jobs > 1 else 0)
        executor = InlineExecutor(BOOK, values) if jobs == 1 else pool
        try:
            yield Scheduler(
                BOOK, values, executor, ActionCache(cache.index, cache.blobs), cache.leases,
                files or DiskFiles(os.path.join(cache.folder, "file_digests")), KeyMaker(lambda _: "", lambda _: ""),
                policy or Policy(), observers or Observers(),
            )  # fmt: skip
        except BaseException:
            executor.close(kill=True)
            raise
        executor.close(kill=False)


def ran(build: Scheduler) -> int:
    """How many actions ran."""
    return sum(count.ran for count in build.counts.values())


@dataclass(frozen=True, slots=True)
class Plan:
    """What a builder process does: ``builds`` one after the other, each ``shape`` over numbers."""

    cache: str
    builds: list[list[int]]
    log: str = ""
    jobs: int = 1
    seconds: float = 0.0
    shape: str = "fold"
    file_bytes_max: int = -1
    lower: list[str] = field(default_factory=list[str])


def start_builder(plan: Plan) -> subprocess.Popen[str]:
    """Start a builder in a session of its own; it prints one answer per build, or an error."""
    code = "import sys; from tests.hostile.engine_harness import run_plan; sys.exit(run_plan(sys.argv[1]))"
    text = json.dumps({name: getattr(plan, name) for name in plan.__slots__})
    return subprocess.Popen(
        [sys.executable, "-c", code, text], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip


def finish(
    builder: subprocess.Popen[str], timeout: float = HANG_SECONDS
) -> tuple[int, list[str], str]:
    """Wait for a builder; return its status, its lines, its errors."""
    with builder:
        out, err = builder.communicate(timeout=timeout)
    return builder.returncode, out.splitlines(), err


def run_plan(text: str) -> int:
    """Be a builder."""
    plan = Plan(**json.loads(text))
    if plan.file_bytes_max >= 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan.file_bytes_max, plan.file_bytes_max))

    def ended(action: Action) -> None:
        if action.status == "ran":
            write_line(plan.log, "kept", name_of(action.inputs), os.getpid())

    shape = {"fold": fold, "each": each}[plan.shape]
    try:
        for numbers in plan.builds:
            with open_scheduler(
                plan.cache, plan.jobs, observers=Observers(ended=ended), lower=plan.lower
            ) as build:
                print(build.run(shape(build, numbers, plan.log, plan.seconds)), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return getattr(error, "exit_code", 99)
    return 0


class Line(NamedTuple):
    """One line of a log."""

    what: str
    name: str
    process: int


def read_log(path: str | Path) -> list[Line]:
    """Return the whole lines of a log."""
    with suppress(FileNotFoundError):
        lines = Path(path).read_text().split("\n")[:-1]
        return [Line(what, name, int(process)) for what, name, process in map(str.split, lines)]
    return []


def wait_for(condition: Callable[[], object]) -> float:
    """Wait until something is so; return how long it took. The limit ends a test that hangs, and
    says nothing of speed.

    Raises:
        TimeoutError: it never was.
    """
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > HANG_SECONDS:
            raise TimeoutError
        time.sleep(0.005)
    return time.monotonic() - started


def processes_about(text: str) -> list[int]:
    """Return the processes that have a text in their command line, but for those that have ended
    and wait for their parent."""
    found: list[int] = []
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            if (
                entry.isdecimal()
                and int(entry) != os.getpid()
                and text.encode() in Path("/proc", entry, "cmdline").read_bytes()
            ):
                found.append(int(entry))
    return found
