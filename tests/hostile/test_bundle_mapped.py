"""A bundle that changes on disk while it is mapped: an exception, never a signal."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.loader.weights import Verifier

X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


def script(text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a script in a process of its own, that may die."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, "-c", text, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


_HEAD = """
import os, sys, numpy as np, ingot_runtime
x = np.arange(32, dtype=np.float32).reshape(4, 8)
def run(session):
    try:
        return session.run({"x": x})["y"].sum()
    except ingot_runtime.BundleError as error:
        return type(error).__name__
"""


def test_truncated_while_mapped(bundle: Path) -> None:
    """Cutting off the weights ends the call with ChangedError; the same file whole again loads
    again."""
    done = script(
        _HEAD
        + """
session = ingot_runtime.load(sys.argv[1], verify="code")
size = os.path.getsize(sys.argv[1])
os.truncate(sys.argv[1], size - (3 << 19))
print(run(session), run(session))
""",
        str(bundle),
    )
    assert (done.returncode, done.stdout) == (0, "ChangedError ChangedError\n"), done.stderr


def test_truncated_with_several_sessions(bundle: Path) -> None:
    """The handler serves every session, whichever ends first, and is gone after the last."""
    done = script(
        _HEAD
        + """
import ctypes
from ingot_runtime.loader import sigbus
sessions = [ingot_runtime.load(sys.argv[1], verify="code") for _ in range(3)]
del sessions[0]
os.truncate(sys.argv[1], os.path.getsize(sys.argv[1]) - (3 << 19))
print(run(sessions[0]), run(sessions[1]), len(sigbus._installed))
sessions.clear()
print(len(sigbus._installed))
""",
        str(bundle),
    )
    assert (done.returncode, done.stdout) == (0, "ChangedError ChangedError 1\n0\n"), done.stderr


def test_foreign_fault_is_not_swallowed(bundle: Path) -> None:
    """A SIGBUS elsewhere ends the process as it would without us, and faulthandler, installed
    before, still reports."""
    text = (
        _HEAD
        + """
import mmap, faulthandler
if sys.argv[2] == "yes":
    faulthandler.enable()
session = ingot_runtime.load(sys.argv[1])
with open(sys.argv[1] + ".other", "w+b") as file:
    file.truncate(8192)
    view = mmap.mmap(file.fileno(), 8192)
    file.truncate(0)
    view[5000]
"""
    )
    for reporter in ("no", "yes"):
        done = script(text, str(bundle), reporter)
        assert done.returncode == -signal.SIGBUS
        assert ("Bus error" in done.stderr) == (reporter == "yes")


def test_written_while_mapped(bundle: Path) -> None:
    """A write into the file, also of what is not read, is noticed by the next run."""
    session = ingot_runtime.load(bundle)
    session.run({"x": X})
    with open(bundle, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    with pytest.raises(ingot_runtime.ChangedError, match="changed while it was in use"):
        session.run({"x": X})


def test_renamed_over_while_mapped(bundle: Path) -> None:
    """Replacing the file by renaming, as the writer does, leaves sessions with the old content."""
    session = ingot_runtime.load(bundle)
    write_bundle(tiny_contents(seed=5), bundle, tree_entry)
    assert (session.run({"x": X})["y"] == tiny_reference(X)).all()
    assert (ingot_runtime.load(bundle).run({"x": X})["y"] == tiny_reference(X, seed=5)).all()


def test_changed_while_loading(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that changes between its checks is refused by load."""

    def verify(*_: object) -> None:
        os.utime(bundle)

    monkeypatch.setattr(Verifier, "verify", verify)
    with pytest.raises(ingot_runtime.ChangedError):
        ingot_runtime.load(bundle)


def test_a_handler_over_ours(bundle: Path) -> None:
    """Whoever installs another handler over ours takes the guard from nobody who loads afterwards,
    and a foreign fault ends all."""
    text = (
        _HEAD
        + """
import faulthandler, mmap
first = ingot_runtime.load(sys.argv[1], verify="code")
faulthandler.enable()
second = ingot_runtime.load(sys.argv[1], verify="code")
os.truncate(sys.argv[1], os.path.getsize(sys.argv[1]) - (3 << 19))
print(run(first), run(second), flush=True)
first.close(), second.close()
with open(sys.argv[1] + ".other", "w+b") as file:
    file.truncate(8192)
    view = mmap.mmap(file.fileno(), 8192)
    file.truncate(0)
    view[5000]
"""
    )
    done = script(text, str(bundle))
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, "ChangedError ChangedError\n"), (
        done.stderr
    )
