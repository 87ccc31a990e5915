"""``session.swap_weights``: a running service goes on with other weights, without a stop; what
cannot be swapped leaves the old ones."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference
from tests.unit.cli.test_share import SIZE, share, write
from tests.unit.runtime.test_signatures import Owner, sign

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_compiler.backends.host.support.host import HostDigests
from ingot_runtime.errors import (
    BundleError,
    BusyError,
    ChangedError,
    DigestError,
    FileError,
    IncompatibleError,
    SignatureError,
    TimedOutError,
)
from ingot_runtime.executor import swap
from ingot_runtime.executor.context import ExecutionContext
from ingot_runtime.executor.session import Session
from ingot_runtime.format.limits import MIB

X = np.random.RandomState(3).standard_normal((4, WIDTH)).astype(np.float32)
COUNT = 4
EXPECTED = [tiny_reference(X, seed).tobytes() for seed in range(COUNT)]
tree_entry = HostDigests().mib_tree_entry


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Fine-tunes: the same code, other weights; their number is the seed."""
    folder = tmp_path_factory.mktemp("swap")
    return [write(folder / f"{seed}.ingot", seed) for seed in range(COUNT)]


def result(session: Session) -> bytes:
    return session.run({"x": X})["y"].tobytes()


@pytest.mark.parametrize("options", [{}, {"executor": "vm"}, {"sessions": 3, "threads": 2}])
def test_the_next_call_has_the_new_ones(paths: list[Path], options: dict[str, int]) -> None:
    """From a path or bytes; there and back; what is bound goes on with them; the digest is the
    new one's."""
    with ingot_runtime.load(paths[0], **options) as session:  # type: ignore[arg-type]
        first, bound = session.digest, session.bind({"x": X})
        assert result(session) == EXPECTED[0]
        session.swap_weights(paths[1])
        assert session.digest != first
        bound.run()
        assert bound.outputs["y"].tobytes() == EXPECTED[1]
        for _ in range(4):
            assert result(session) == EXPECTED[1]
        session.swap_weights(paths[2].read_bytes())
        assert result(session) == EXPECTED[2]
        session.swap_weights(paths[0], digest=first)
        assert result(session) == EXPECTED[0]
        assert session.digest == first


def test_under_load(paths: list[Path]) -> None:
    """Callers see one of the fine-tunes, never a mixture; and none that is older than what was
    there when they began, or younger than what is there when they are done."""
    begun, done, is_over = 0, 0, threading.Event()
    wrong: list[str] = []

    def call(session: Session) -> None:
        while not is_over.is_set():
            oldest = done
            found = result(session)
            newest = begun
            seen = [at for at in range(oldest, newest + 1) if EXPECTED[at % COUNT] == found]
            if not seen:
                wrong.append(f"{oldest} to {newest}")

    with ingot_runtime.load(paths[0], sessions=2) as session:
        callers = [threading.Thread(target=call, args=(session,)) for _ in range(4)]
        for caller in callers:
            caller.start()
        try:
            for number in range(1, 12):
                begun = number
                session.swap_weights(paths[number % COUNT])
                done = number
        finally:
            is_over.set()
            for caller in callers:
                caller.join()
        assert result(session) == EXPECTED[11 % COUNT]
    assert not wrong


def test_two_swaps_at_once(paths: list[Path]) -> None:
    """Both are done, one behind the other."""
    with ingot_runtime.load(paths[0], sessions=3) as session:
        workers = [
            threading.Thread(target=session.swap_weights, args=(path,)) for path in paths[1:3] * 3
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert {result(session) for _ in range(6)} <= {*EXPECTED[1:3]}
        assert len({result(session) for _ in range(6)}) == 1


def mapped(path: Path) -> int:
    gc.collect()
    return Path("/proc/self/maps").read_text(encoding="utf-8").count(str(path))


def test_the_old_mapping_is_released(paths: list[Path]) -> None:
    """And the old file closed."""
    with ingot_runtime.load(paths[0], sessions=2) as session:
        assert mapped(paths[0])
        session.swap_weights(paths[1])
        assert result(session) == EXPECTED[1]
        assert not mapped(paths[0])
        assert mapped(paths[1])
        links = [
            os.readlink(f"/proc/self/fd/{fd}")
            for fd in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{fd}")
        ]
        assert str(paths[0]) not in links


def test_the_new_file_is_watched(paths: list[Path], tmp_path: Path) -> None:
    """The old one may go; a write into the new one ends calls."""
    old, new = (tmp_path / name for name in ("old.ingot", "new.ingot"))
    old.write_bytes(paths[0].read_bytes())
    new.write_bytes(paths[1].read_bytes())
    with ingot_runtime.load(old) as session:
        session.swap_weights(new)
        os.truncate(old, 5)
        assert result(session) == EXPECTED[1]
        new.chmod(0o600)
        assert result(session) == EXPECTED[1]
        with new.open("r+b") as file:
            file.write(b"?")
        with pytest.raises(ChangedError):
            session.run({"x": X})


def test_shared_weights(paths: list[Path], tmp_path: Path) -> None:
    """A fine-tune that shares most of its weights with the one that runs."""
    shared = share(paths[0], paths[1])
    with ingot_runtime.load(paths[0]) as session:
        session.swap_weights(shared)
        assert result(session) == EXPECTED[1]
        session.swap_weights(paths[0])
        assert result(session) == EXPECTED[0]


def other_code(path: Path) -> Path:
    write_bundle(tiny_contents(rows="rows"), path, tree_entry)
    return path


def other_plan(path: Path) -> Path:
    return write(path, 1, SIZE + MIB)


def damaged(path: Path) -> Path:
    data = bytearray(write(path, 1).read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    return path


def missing(path: Path) -> Path:
    return path


REFUSED = {
    "code": (other_code, IncompatibleError, "not the same code"),
    "plan": (other_plan, IncompatibleError, "plan 0"),
    "missing": (missing, FileError, "cannot open"),
    "damaged": (damaged, DigestError, "MiB 7"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_swapped(paths: list[Path], tmp_path: Path, case: str) -> None:
    """It is refused with why, and the old weights stay."""
    make, kind, words = REFUSED[case]
    with ingot_runtime.load(paths[0]) as session:
        digest = session.digest
        with pytest.raises(kind, match=words) as refused:
            session.swap_weights(make(tmp_path / "m.ingot"))
        assert refused.value.do
        assert str(tmp_path / "m.ingot") in refused.value.where
        assert session.digest == digest
        assert result(session) == EXPECTED[0]


def test_the_keys_of_the_load(paths: list[Path], tmp_path: Path) -> None:
    """What was demanded of the first bundle is demanded of the next; another digest is refused."""
    signed = [tmp_path / f"{seed}.ingot" for seed in range(2)]
    owner = Owner(tmp_path, "alice", 1)
    for path, origin in zip(signed, paths, strict=False):
        path.write_bytes(origin.read_bytes())
        sign(path, owner)
    with ingot_runtime.load(signed[0], keys=[owner.raw]) as session:
        with pytest.raises(SignatureError):
            session.swap_weights(paths[1])
        with pytest.raises(DigestError):
            session.swap_weights(signed[1], digest=session.digest)
        assert result(session) == EXPECTED[0]
        session.swap_weights(signed[1])
        assert result(session) == EXPECTED[1]


@pytest.mark.parametrize("at", range(7))
def test_a_fault_at_any_step(paths: list[Path], monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Whatever fails, in the middle of several sessions too, all of them go on with the old ones;
    the next attempt is a new one."""
    left = at

    def failing(function: object) -> object:
        def call(*arguments: object, **named: object) -> object:
            nonlocal left
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
            return function(*arguments, **named)  # type: ignore[operator]

        return call

    with ingot_runtime.load(paths[0], sessions=3) as session:
        with monkeypatch.context() as patched:
            for name in ("open_bundle", "read_plan", "verified_weights"):
                patched.setattr(swap, name, failing(getattr(swap, name)))
            patched.setattr(ExecutionContext, "go_on_with", failing(ExecutionContext.go_on_with))
            expected = 0
            try:
                session.swap_weights(paths[1])
                expected = 1
            except KeyboardInterrupt:
                pass
        assert expected == (at >= 6)
        for _ in range(6):
            assert result(session) == EXPECTED[expected]
        session.swap_weights(paths[2])
        assert {result(session) for _ in range(6)} == {EXPECTED[2]}


def test_it_waits_for_calls(paths: list[Path]) -> None:
    """It has a timeout, and is refused from within a call; both leave the old ones."""
    with ingot_runtime.load(paths[0], executor="vm") as session:
        errors: list[BundleError] = []
        is_inside, may_end = threading.Event(), threading.Event()

        def observe(*_: object) -> None:
            if not is_inside.is_set():
                try:
                    session.swap_weights(paths[1])
                except BusyError as error:
                    errors.append(error)
                is_inside.set()
                may_end.wait()

        session.observe(observe)
        found: list[bytes] = []
        caller = threading.Thread(target=lambda: found.append(result(session)))
        caller.start()
        is_inside.wait()
        with pytest.raises(TimedOutError):
            session.swap_weights(paths[1], None, 0.01)
        may_end.set()
        caller.join()
        assert len(errors) == 1
        assert found == [EXPECTED[0]]
        assert result(session) == EXPECTED[0]


def test_a_closed_session(paths: list[Path]) -> None:
    """It is refused."""
    session = ingot_runtime.load(paths[0])
    session.close()
    with pytest.raises(BundleError, match="closed"):
        session.swap_weights(paths[1])
