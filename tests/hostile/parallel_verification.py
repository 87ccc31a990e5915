"""Verification of 40 MiB by several threads: damage is always found, a file that is cut meanwhile
is an error.

In: a folder for files, a number of trials of each kind. Out: a line ``verdict<tab>trial`` for each.
Not done here: judging. ``python -m tests.hostile.parallel_verification FOLDER COUNT``
"""

from __future__ import annotations

import _thread
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.hostile import trials
from tests.hostile.large_tiny import MIB, MIBS, write_large
from tests.hostile.loaders import loaded

import ingot_runtime

SECONDS = 120.0
THREADS = (1, 2, 4)
MODES = ("full", "fast")
WAYS = ("aot", "c")
_CUT_SECONDS_MAX = 0.03


def damaged(
    path: Path, weights_at: int, number: int, threads: int, mode: str, way: str, can_start: int
) -> str:
    """One bit is wrong; only `can_start` workers of Python's loader can be started. The error must
    name the MiB."""
    draw = random.Random(number)
    mib = number % MIBS
    place = weights_at + mib * MIB + draw.choice((0, MIB - 1, draw.randrange(MIB)))
    start = _thread.start_new_thread

    def limited(*arguments: Any) -> int:
        nonlocal can_start
        can_start -= 1
        if can_start < 0:
            raise RuntimeError("can't start new thread")
        return start(*arguments)

    _thread.start_new_thread = limited
    _flip(path, place)
    try:
        loaded(path, way, threads, mode)
    except ingot_runtime.DigestError as error:
        return "found" if f"MiB {mib}" in error.what else f"wrong: {error.what} for MiB {mib}"
    finally:
        _flip(path, place)
    return "wrong: damage accepted"


def _flip(path: Path, place: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        value = file.read(1)[0]
        file.seek(place)
        file.write(bytes([value ^ 1]))


def cut(path: Path, weights_at: int, number: int, threads: int, mode: str, way: str) -> str:
    """The file is cut somewhere while it is verified, run, and verified again."""
    draw = random.Random(number)
    size = path.stat().st_size
    delay, end = draw.random() * _CUT_SECONDS_MAX, draw.randrange(weights_at, size)
    change: list[Callable[[], None]] = [partial(os.truncate, path, end)]
    if number % 3 == 0:
        change.insert(0, path.touch)

    def act() -> None:
        for each in change:
            time.sleep(delay)
            each()

    actor = threading.Thread(target=act)
    actor.start()

    def life() -> bool:
        session = loaded(path, way, threads, mode)
        while actor.is_alive():
            if not trials.runs_right(session):
                return False
        return trials.runs_right(session)

    return trials.verdict(life)


def main() -> None:
    """Try, and print."""
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    trials.prepare()
    path = folder / "large.ingot"
    weights_at = write_large(path)
    kinds = [(threads, mode, way) for threads in THREADS for mode in MODES for way in WAYS]
    for number in range(count):
        threads, mode, way = kinds[number % len(kinds)]
        can_start = number // len(kinds) % threads if number // 2 % 2 else threads
        trial = partial(damaged, path, weights_at, number * 7, threads, mode, way, can_start)
        print(
            f"{trials.in_child(trial, SECONDS)}\tdamage {number}, {threads} threads, {can_start} start, {mode}, {way}",
            flush=True,
        )
    content = path.read_bytes()
    for number in range(count):
        threads, mode, way = kinds[number % len(kinds)]
        end = trials.in_child(partial(cut, path, weights_at, number, threads, mode, way), SECONDS)
        print(f"{end}\tcut {number}, {threads} threads, {mode}, {way}", flush=True)
        with path.open("r+b") as file:
            left = file.seek(0, os.SEEK_END)
            file.write(content[left:])


if __name__ == "__main__":
    main()
