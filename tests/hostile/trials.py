"""Trials of the loader, each in a child process of its own: how it may end, and what it must have
given back.

In: a bundle of ``tiny``, and what a trial does. Out: a verdict per trial: "right", the name of the
loader's error, or one of the bad ends ("wrong", "foreign ...", "leak ...", "signal ...", "hang",
"second ..."). Not done here: faults.
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import gc
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.c_loader import library
from tests.hostile.loaders import Running, loaded
from tests.hostile.tiny import WIDTH, tiny_reference

import ingot_runtime
from ingot_runtime import load_bundle as load_module
from ingot_runtime.loader import pool

Rows = npt.NDArray[np.float32]
GOOD = ("right", "FileError", "ResourceError", "ChangedError")
_SMALL = np.arange(3 * WIDTH, dtype=np.float32).reshape(3, WIDTH)
_LARGE = np.arange(4000 * WIDTH, dtype=np.float32).reshape(4000, WIDTH)
_SMALL_EXPECTED, _LARGE_EXPECTED = tiny_reference(_SMALL), tiny_reference(_LARGE)
_THREADS_GO_SECONDS = 10.0
_CHILD_SECONDS = 300.0

_maps: list[weakref.ref[mmap.mmap]] = []
_system_map = mmap.mmap


class CountedMap(_system_map):
    """The interpreter's own kind of mapping, which the loader's memory belongs to; those that live
    are counted."""

    def __new__(cls, *arguments: Any, **options: Any) -> CountedMap:
        made = super().__new__(cls, *arguments, **options)
        _maps.append(weakref.ref(made))
        return made


def prepare() -> None:
    """Count mappings from now on, leave cycles of references where they are, let a session have as
    many threads as it asks for, import what a session imports, and make the loader in C."""
    gc.disable()
    library()
    mmap.mmap = CountedMap  # type: ignore[misc]
    found = pool.usable_threads

    def as_asked(asked: int) -> int:
        found(asked)  # its system calls are part of a load
        return asked

    load_module.__dict__["usable_threads"] = as_asked


def held() -> dict[str, list[str]]:
    """What this process holds: descriptors, threads, mappings of bundles and images, memory of the
    loader."""
    threads = sorted(
        os.listdir("/proc/self/task")
    )  # first: what a thread holds goes before it does
    descriptors: list[str] = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one of the listing itself
            descriptors.append(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    named = [
        line.split(maxsplit=5)[5] for line in maps if ".ingot" in line or "memfd:ingot" in line
    ]
    return {
        "descriptors": sorted(descriptors),
        "threads": threads,
        "mappings": sorted(named),
        "memory": sorted(
            str(len(one)) for each in _maps if (one := each()) is not None and not one.closed
        ),
    }


def leaked(before: dict[str, list[str]]) -> str:
    """Return what is held beyond `before`, and what is missing; "" for nothing. A thread may take a
    moment to be gone."""
    end = time.monotonic() + _THREADS_GO_SECONDS
    while set((after := held())["threads"]) - set(before["threads"]) and time.monotonic() < end:
        time.sleep(0.001)
    differences = {name: _difference(after[name], before[name]) for name in before}
    # One that was joined before may have been on its way out still.
    differences["threads"] = [each for each in differences["threads"] if each.startswith("+")]
    more = {name: each for name, each in differences.items() if each}
    return f"leak {json.dumps(more)}" if more else ""


def _difference(after: list[str], before: list[str]) -> list[str]:
    one, other = collections.Counter(after), collections.Counter(before)
    return [f"+ {item}" for item in (one - other).elements()] + [
        f"- {item}" for item in (other - one).elements()
    ]


def verdict(action: Callable[[], bool]) -> str:
    """Do something with a loader; "right" or "wrong" as it says, or the name of the error."""
    try:
        return "right" if action() else "wrong"
    except ingot_runtime.BundleError as error:
        return type(error).__name__
    except BaseException as error:
        return f"foreign {type(error).__name__}: {error}"


def runs_right(session: Running) -> bool:
    """Whether small and large inputs give the bits that they must."""
    small = session.run({"x": _SMALL})["y"]
    large = session.run({"x": _LARGE})["y"]
    return bool((small == _SMALL_EXPECTED).all() and (large == _LARGE_EXPECTED).all())


def load_run_close(
    path: str, threads: int = 1, way: str = "aot", verify: str = "full", close: bool = True
) -> bool:
    """The whole life of a session; ended by `close`, or by dropping the last reference, which
    closes it in C."""
    session = loaded(path, way, threads, verify)
    try:
        return runs_right(session)
    finally:
        if close or way == "c":
            session.close()


def in_child(body: Callable[[], str], seconds: float) -> str:
    """Fork, do `body`, return what it returns, or how the child ended."""
    receive, send = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # newer interpreters warn of a fork beside threads, as pytest's
        child = os.fork()
    if child == 0:
        report(send, body)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], seconds)
        if not ready:
            os.kill(child, signal.SIGKILL)
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return ended(text, status, hung=not ready)


def in_fresh_child(body: Callable[[], str]) -> str:
    """Fork a process that has not been prepared yet, do `body` there, return how it ended."""

    def prepared() -> str:
        prepare()
        return body()

    return in_child(prepared, _CHILD_SECONDS)


def report(send: int, body: Callable[[], str]) -> None:
    """Do `body` in a child: write its verdict to a pipe, and end without any clean-up."""
    text = ""
    faulthandler.disable()  # the parent tells of signals
    try:
        text = body()
    except BaseException as error:
        text = f"foreign {type(error).__name__}: {error}"
    os.write(send, text.encode())
    os._exit(0)


def ended(text: str, status: int, *, hung: bool) -> str:
    """Return the verdict on a child from its report and its wait status."""
    if hung:
        return "hang"
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return f"signal {-code}"
    return text or f"exit {code}"


def is_good(end: str) -> bool:
    """Whether a trial may end so."""
    return end in GOOD


def run_driver(module: str, *arguments: str, seconds: float) -> dict[str, list[str]]:
    """Run ``python -m tests.hostile.MODULE``, which prints lines ``verdict<tab>trial``; return
    trials by verdict."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "OPENBLAS_NUM_THREADS": "1",  # whoever forks and traces has one thread
    }
    done = subprocess.run(
        [sys.executable, "-m", f"tests.hostile.{module}", *arguments],
        cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (
        f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    )
    assert not done.stderr, done.stderr[-4000:]
    ends: dict[str, list[str]] = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        end, trial = line.split("\t")
        ends[end].append(trial)
    return dict(ends)
