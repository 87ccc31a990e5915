"""A bundle that changes on disk while it is mapped: an error of either loader, never a signal; and
the signals that are somebody else's."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.c_loader import library
from tests.hostile.attacks import attacked
from tests.hostile.loaders import LOADERS, around_verification
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle

X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


def script(text: str, bundle: Path, loader: str, *more: str) -> "subprocess.CompletedProcess[str]":
    """Run a script in a process of its own, that may die."""
    library()  # made once, for all of them
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, "-c", _HEAD + text, bundle, loader, *more],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


_HEAD = """
import ctypes, faulthandler, mmap, os, signal, sys
import numpy as np
import ingot_runtime
from tests.hostile.loaders import LOADERS, around_verification
load = LOADERS[sys.argv[2]]
libc = ctypes.CDLL(None)
libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
x = np.arange(32, dtype=np.float32).reshape(4, 8)
def run(session):
    try:
        return session.run({"x": x})["y"].sum()
    except ingot_runtime.BundleError as error:
        return type(error).__name__
def cut():
    os.truncate(sys.argv[1], os.path.getsize(sys.argv[1]) - (3 << 19))
def present():
    action = ctypes.create_string_buffer(152)
    assert libc.sigaction(7, None, action) == 0
    return action.raw[:8]
def foreign_fault():
    with open(sys.argv[1] + ".other", "w+b") as file:
        file.truncate(8192)
        view = mmap.mmap(file.fileno(), 8192)
        file.truncate(0)
        libc.memset(ctypes.addressof(ctypes.c_char.from_buffer(view)) + 5000, 0, 1)
"""


@pytest.mark.broad
@attacked
def test_truncated_while_mapped(bundle: Path, loader: str) -> None:
    """Cutting off the weights ends the call with ChangedError; the same file whole again loads
    again."""
    done = script(
        """
session = load(sys.argv[1], verify="code")
cut()
print(run(session), run(session))
""",
        bundle,
        loader,
    )
    assert (done.returncode, done.stdout) == (0, "ChangedError ChangedError\n"), done.stderr


@attacked
def test_truncated_with_several_sessions(bundle: Path, loader: str) -> None:
    """The handler serves every session, whichever ends first, and is gone after the last."""
    done = script(
        """
before = present()
sessions = [load(sys.argv[1], verify="code") for _ in range(3)]
sessions.pop(0).close()
cut()
print(run(sessions[0]), run(sessions[1]), present() != before)
for session in sessions:
    session.close()
del session
sessions.clear()
print(present() == before)
""",
        bundle,
        loader,
    )
    assert (done.returncode, done.stdout) == (0, "ChangedError ChangedError True\nTrue\n"), (
        done.stderr
    )


@pytest.mark.broad
@attacked
def test_foreign_fault_is_not_swallowed(bundle: Path, loader: str) -> None:
    """A SIGBUS elsewhere ends the process as it would without us, and faulthandler, installed
    before, still reports."""
    text = """
if sys.argv[3] == "yes":
    faulthandler.enable()
session = load(sys.argv[1])
foreign_fault()
"""
    for reporter in ("no", "yes"):
        done = script(text, bundle, loader, reporter)
        assert done.returncode == -signal.SIGBUS
        assert ("Bus error" in done.stderr) == (reporter == "yes")


@pytest.mark.sweep(60)
@attacked
@pytest.mark.parametrize("order", ["before us", "between us", "over us"])
def test_a_host_that_mends_its_own_faults(bundle: Path, loader: str, order: str) -> None:
    """A program that has a handler of its own and goes on after its faults has the guard, too,
    after any number of them: its handler is called, ours stays."""
    done = script(
        """
faults = []
@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def mend(number, information, context):
    faults.append(number)
    at = ctypes.c_uint64.from_address(information + 16).value // 4096 * 4096
    libc.mmap(ctypes.c_void_p(at), ctypes.c_size_t(4096), 3, 0x32, -1, ctypes.c_int64(0))
ours = ctypes.create_string_buffer(152)
ctypes.c_uint64.from_buffer(ours).value = ctypes.cast(mend, ctypes.c_void_p).value
ctypes.c_int32.from_buffer(ours, 136).value = 4  # SA_SIGINFO
def load_now():
    return load(sys.argv[1], verify="code")
sessions = [load_now()] if sys.argv[3] != "before us" else []
assert libc.sigaction(7, ours, None) == 0
if sys.argv[3] != "over us":
    sessions.append(load_now())
for _ in range(3):
    foreign_fault()
if sys.argv[3] == "over us":
    sessions.append(load_now())
cut()
print([run(session) for session in sessions], faults)
""",
        bundle,
        loader,
        order,
    )
    ends = ["ChangedError"] * (1 if order == "before us" else 2)
    assert (done.returncode, done.stdout) == (0, f"{ends} [7, 7, 7]\n"), done.stderr


@pytest.mark.sweep(60)
@attacked
@pytest.mark.parametrize(("action", "end"), [("SIG_DFL", -signal.SIGBUS), ("SIG_IGN", 0)])
def test_a_signal_that_is_sent(bundle: Path, loader: str, action: str, end: int) -> None:
    """A SIGBUS that a process sends does what it would without us; who ignores it keeps the
    guard."""
    done = script(
        """
signal.signal(signal.SIGBUS, getattr(signal, sys.argv[3]))
session = load(sys.argv[1], verify="code")
os.kill(os.getpid(), signal.SIGBUS)
cut()
print(run(session))
""",
        bundle,
        loader,
        action,
    )
    assert (done.returncode, done.stdout) == (end, "ChangedError\n" * (end == 0)), done.stderr


@attacked
def test_written_while_mapped(bundle: Path, loader: str) -> None:
    """A write into the file, also of what is not read, is noticed by the next run."""
    session = LOADERS[loader](bundle)
    session.run({"x": X})
    with open(bundle, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    with pytest.raises(ingot_runtime.ChangedError, match="changed while it was in use"):
        session.run({"x": X})
    session.close()


@attacked
def test_renamed_over_while_mapped(bundle: Path, loader: str) -> None:
    """Replacing the file by renaming, as the writer does, leaves sessions with the old content."""
    session = LOADERS[loader](bundle)
    write_bundle(tiny_contents(seed=5), bundle, tree_entry)
    assert (session.run({"x": X})["y"] == tiny_reference(X)).all()
    other = LOADERS[loader](bundle)
    assert (other.run({"x": X})["y"] == tiny_reference(X, seed=5)).all()
    session.close()
    other.close()


@attacked
def test_changed_while_loading(bundle: Path, loader: str) -> None:
    """A file that changes between its checks computes nothing."""
    around = around_verification(loader, lambda: None, lambda: os.utime(bundle))
    with around, pytest.raises(ingot_runtime.ChangedError):
        LOADERS[loader](bundle).run({"x": X})


@pytest.mark.broad
@attacked
def test_a_handler_over_ours(bundle: Path, loader: str) -> None:
    """Whoever installs another handler over ours takes the guard from nobody who loads afterwards,
    and a foreign fault ends all."""
    text = """
first = load(sys.argv[1], verify="code")
faulthandler.enable()
second = load(sys.argv[1], verify="code")
cut()
print(run(first), run(second), flush=True)
if sys.argv[3] == "closed":
    first.close(), second.close()
foreign_fault()
"""
    for state in ("open", "closed"):
        write_bundle(tiny_contents(), bundle, tree_entry)
        done = script(text, bundle, loader, state)
        expected = (-signal.SIGBUS, "ChangedError ChangedError\n")
        assert (done.returncode, done.stdout) == expected, done.stderr
        assert "Bus error" in done.stderr
