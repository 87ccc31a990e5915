"""Changes of a bundle on the disk while it is loaded and run: every call is right, or an error of
the loader.

In: a folder for files, "cases" or a number of random schedules. Out: a line ``verdict<tab>trial``
for each. Not done here: judging. ``python -m tests.hostile.changing_file FOLDER cases`` and
``... FOLDER 1000``
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
from tests.hostile import trials
from tests.hostile.loaders import LOADERS, WAYS, Load, Running, around_verification, loaded
from tests.hostile.tiny import (
    WEIGHTS_AT,
    WEIGHTS_SECTION_BYTES,
    WIDTH,
    tiny_contents,
    tiny_reference,
    tiny_weights,
    tree_entry,
)

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle

SECONDS = 120.0
_OTHER_SEED = 5
_LOADS = 12
_PAUSE_SECONDS_MAX = 0.004
_X = np.arange(600 * WIDTH, dtype=np.float32).reshape(600, WIDTH)
_EXPECTED = {seed: tiny_reference(_X, seed) for seed in (0, _OTHER_SEED)}


@cache
def _content(seed: int) -> bytes:
    with tempfile.TemporaryDirectory(prefix="changing-") as folder:
        path = Path(folder) / "m.ingot"
        write_bundle(tiny_contents("batch", seed=seed), path, tree_entry)
        return path.read_bytes()


class Bundle:
    """A bundle on the disk that is changed in all the ways there are; ``first`` and ``other`` are
    two valid contents."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "m.ingot"
        self.first, self.other = _content(0), _content(_OTHER_SEED)
        # The weights are the end of the file.
        self.section_at = len(self.first) - WEIGHTS_SECTION_BYTES
        self.weights_at = self.section_at + WEIGHTS_AT
        self.restore()

    def _beside(self, suffix: str) -> Path:
        return self.path.with_suffix(suffix)

    def restore(self) -> None:
        """A new file with the first content, as the writer makes it."""
        self._replace(self.first)

    def _replace(self, content: bytes) -> None:
        self._beside(".new").write_bytes(content)
        self._beside(".new").rename(self.path)

    def _write(self, content: bytes, at: int = 0) -> None:
        """Write in place, and put size and times back."""
        found = self.path.stat()
        with self.path.open("r+b") as file:
            file.seek(at)
            file.write(content)
        os.utime(self.path, ns=(found.st_atime_ns, found.st_mtime_ns))

    def cut(self) -> None:
        """Half of the weights are gone."""
        os.truncate(self.path, self.section_at + 100)

    def cut_to_nothing(self) -> None:
        """Everything is gone."""
        os.truncate(self.path, 0)

    def grow(self) -> None:
        """Bytes behind the end."""
        with self.path.open("ab") as file:
            file.write(b"more")

    def replace_weights(self) -> None:
        """Other weights, equal size and time."""
        self._write(tiny_weights(_OTHER_SEED).tobytes(), self.weights_at)

    def copy_over(self) -> None:
        """What ``cp -p`` of another bundle of the same size and time does: cut to nothing, write,
        put the time back."""
        found = self.path.stat()
        self.path.write_bytes(self.other)
        os.utime(self.path, ns=(found.st_atime_ns, found.st_mtime_ns))

    def cut_and_restore(self) -> None:
        """Pages are gone for a moment."""
        found = self.path.stat()
        os.truncate(self.path, self.section_at)
        with self.path.open("r+b") as file:
            file.seek(self.section_at)
            file.write(self.first[self.section_at :])
        os.utime(self.path, ns=(found.st_atime_ns, found.st_mtime_ns))

    def change_and_restore(self) -> None:
        """Weights are others for a moment."""
        self._write(tiny_weights(_OTHER_SEED).tobytes(), self.weights_at)
        self._write(tiny_weights().tobytes(), self.weights_at)

    def touch(self) -> None:
        """Another time, the same content."""
        os.utime(self.path)

    def change_mode(self) -> None:
        """Permissions there and back."""
        self.path.chmod(0o600)
        self.path.chmod(0o644)

    def rename(self) -> None:
        """Away and back."""
        self.path.rename(self._beside(".away"))
        self._beside(".away").rename(self.path)

    def link(self) -> None:
        """Another name, made and removed."""
        self._beside(".link").hardlink_to(self.path)
        self._beside(".link").unlink()

    def unlink(self) -> None:
        """The name is gone; what is open stays."""
        self.path.unlink()

    def replace_by_rename(self) -> None:
        """Another bundle under the name: what users shall do."""
        self._replace(self.other)

    def restore_in_place(self) -> None:
        """The first content and its time are back, in the same file."""
        self.path.write_bytes(self.first)


# How a session ends whose file is changed so.
EXPECTED = {
    "cut": "ChangedError", "cut_to_nothing": "ChangedError", "grow": "ChangedError", "touch": "ChangedError",
    "replace_weights": "DigestError", "copy_over": "DigestError",
    "cut_and_restore": "right", "change_and_restore": "right", "change_mode": "right", "rename": "right", "link": "right",
    "unlink": "right", "replace_by_rename": "right",
}  # fmt: skip
MOMENTS = ("before verification", "after verification", "between runs")


def answer(session: Running) -> int:
    """Return the seed whose numbers a run gives, -1 for wrong ones."""
    got = session.run({"x": _X})["y"]
    return next((seed for seed, expected in _EXPECTED.items() if (got == expected).all()), -1)


def case(folder: Path, name: str, moment: str, loader: str) -> str:
    """Do one change at one moment: the end is known, and a new load of the restored file is
    right."""
    bundle, load = Bundle(folder), LOADERS[loader]
    change: Callable[[], None] = getattr(bundle, name)
    if moment == "between runs":
        end = trials.verdict(partial(_life, bundle, load, change))
    else:
        at = {"before verification": (change, _nothing), "after verification": (_nothing, change)}
        with around_verification(loader, *at[moment]):
            end = trials.verdict(partial(_life, bundle, load, None))
    bundle.restore()
    again = trials.verdict(lambda: answer(load(bundle.path)) == 0)
    if again != "right":
        return f"second {again}"
    return "as expected" if end == EXPECTED[name] else f"{end} for {EXPECTED[name]}"


def _nothing() -> None:
    pass


def _life(bundle: Bundle, load: Load, change: Callable[[], None] | None) -> bool:
    """Run, and change the file between two calls. Whoever has lost weights stays dead, and so does
    each session that has the same ones: no content of the file brings them back."""
    found = bundle.path.stat()
    sessions = [load(bundle.path)]
    if change is not None:
        sessions.append(sessions[0].another())
        if any(answer(each) != 0 for each in sessions):
            return False
        change()
    try:
        return answer(sessions[0]) == 0 and answer(sessions[0]) == 0
    except (ingot_runtime.ChangedError, ingot_runtime.DigestError) as error:
        for restored in (False, True):
            if restored:
                bundle.restore_in_place()
                os.utime(bundle.path, ns=(found.st_atime_ns, found.st_mtime_ns))
            ends = [trials.verdict(partial(_is_first, each)) for each in sessions]
            if ends != ["ChangedError"] * len(sessions):
                raise AssertionError(f"the next calls after {error.what}: {ends}") from None
        raise


def _is_first(session: Running) -> bool:
    return answer(session) == 0


def schedule(folder: Path, number: int) -> str:
    """Random changes from another thread or process, while loads and runs go on."""
    draw = random.Random(number)
    bundle = Bundle(folder)
    names = draw.sample(sorted(EXPECTED), draw.randint(1, 5))
    stop = threading.Event()
    child = 0
    if number % 2:
        child = os.fork()
        if child == 0:
            _change_for_ever(bundle, names, random.Random(number), stop)
    else:
        actor = threading.Thread(
            target=_change_for_ever, args=(bundle, names, random.Random(number), stop)
        )
        actor.start()
    try:
        ends = {_attempt(str(bundle.path), draw) for _ in range(_LOADS)}
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        else:
            stop.set()
            actor.join()  # pyright: ignore[reportPossiblyUnboundVariable]
    bundle.restore()
    again = trials.verdict(lambda: answer(LOADERS["python"](bundle.path)) == 0)
    return ", ".join(sorted(ends)) if again == "right" else f"second {again}"


# A file that is read while it is written may look like anything; nothing else may go wrong.
ENDS = (
    "right",
    "FileError",
    "ChangedError",
    "DigestError",
    "FormatError",
    "NotABundleError",
    "VersionError",
    "ResourceError",
)


def _attempt(path: str, draw: random.Random) -> str:
    threads, mode = draw.choice((1, 1, 3)), draw.choice(("full", "fast"))
    way = draw.choice(sorted(WAYS))
    runs = draw.randint(1, 6)

    def life() -> bool:
        session = loaded(path, way, threads, mode)
        seeds = {answer(session) for _ in range(runs)}
        return len(seeds) == 1 and -1 not in seeds  # one bundle, from the first run to the last

    return trials.verdict(life)


def _change_for_ever(
    bundle: Bundle, names: list[str], draw: random.Random, stop: threading.Event
) -> None:
    while not stop.is_set():
        if bundle.path.exists():
            getattr(bundle, draw.choice(names))()
        time.sleep(draw.random() * _PAUSE_SECONDS_MAX)
        if draw.random() < 0.4:
            bundle.restore()
            time.sleep(draw.random() * _PAUSE_SECONDS_MAX)


def main() -> None:
    """Try, and print."""
    top = Path(sys.argv[1])
    trials.prepare()
    for seed in _EXPECTED:
        _content(seed)  # once, for all children
    todo: list[tuple[str, Callable[[Path], str]]] = []
    if sys.argv[2] == "cases":
        todo = [
            (f"{name}, {moment}, {loader}", partial(case, name=name, moment=moment, loader=loader))
            for loader in LOADERS
            for name in EXPECTED
            for moment in MOMENTS
        ]
    else:
        todo = [
            (f"schedule {number}", partial(schedule, number=number))
            for number in range(int(sys.argv[2]))
        ]
    for index, (name, trial) in enumerate(todo):
        folder = top / str(index)
        folder.mkdir()
        print(f"{trials.in_child(partial(trial, folder), SECONDS)}\t{name}", flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
