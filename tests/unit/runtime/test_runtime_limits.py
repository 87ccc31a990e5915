"""What a user may ask of the loader besides results: which bundle it is, how much memory, whose
memory."""

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.format.source import open_file
from ingot_runtime.loader import system

X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)
LARGE = np.ones((100_000, WIDTH), np.float32)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents("batch"), path, tree_entry)
    return path


def test_digest(bundle: Path) -> None:
    """The whole root digest, or at least 32 digits of it, in any case; from a path and from
    bytes."""
    root = open_file(bundle).root_digest.hex()
    for digest in (root, root[:32], root[:50], root.upper()):
        assert ingot_runtime.load(bundle, digest=digest).run({"x": X})["y"].shape == X.shape
        assert (
            ingot_runtime.load(bundle.read_bytes(), digest=digest).run({"x": X})["y"].shape
            == X.shape
        )


def test_another_digest(bundle: Path) -> None:
    """Any other bundle is refused before its table is looked at."""
    root = open_file(bundle).root_digest.hex()
    other = f"{int(root[0], 16) ^ 1:x}{root[1:]}"
    with pytest.raises(ingot_runtime.DigestError, match="another bundle than the one asked for"):
        ingot_runtime.load(bundle, digest=other[:32])
    data = bytearray(bundle.read_bytes())
    data[72] ^= 1  # the table: what the digest vouches for comes later
    bundle.write_bytes(data)
    with pytest.raises(ingot_runtime.DigestError, match="another bundle than the one asked for"):
        ingot_runtime.load(bundle, digest=other)
    with pytest.raises(ingot_runtime.DigestError, match="header or section table damaged"):
        ingot_runtime.load(bundle, digest=root)


def test_bad_digests(bundle: Path) -> None:
    """Fewer than 32 digits, or no hex digits, are a mistake of the caller."""
    for bad in ("", "a" * 31, "a" * 65, "g" * 64, b"a" * 64, 5):
        with pytest.raises(ingot_runtime.InputError, match="bad digest"):
            ingot_runtime.load(bundle, digest=bad)  # type: ignore[arg-type]  # the error is what is tested


def test_max_bytes(bundle: Path) -> None:
    """What a call would need beyond the limit is refused by number before it is taken; smaller
    calls run."""
    session = ingot_runtime.load(bundle, max_bytes=100_000)
    assert (session.run({"x": X})["y"] == tiny_reference(X)).all()
    with pytest.raises(ingot_runtime.LimitError, match="a call needs too much memory") as caught:
        session.run({"x": LARGE})
    assert "max_bytes is 100000" in str(caught.value)
    assert (session.run({"x": X})["y"] == tiny_reference(X)).all()
    assert isinstance(caught.value, ingot_runtime.ResourceError)
    with pytest.raises(ingot_runtime.LimitError):
        session.bind({"x": LARGE})
    for bad in (0, -1, 1.5, True):
        with pytest.raises(ingot_runtime.InputError, match="max_bytes"):
            ingot_runtime.load(bundle, max_bytes=bad)  # type: ignore[arg-type]  # the error is what is tested


def test_the_least_limit(bundle: Path) -> None:
    """What an error says is needed is enough, and one byte less is not; with several sessions, so
    much for each, since their calls run at once."""
    with pytest.raises(ingot_runtime.LimitError) as caught:
        ingot_runtime.load(bundle, max_bytes=1).run({"x": X})
    needed = int(caught.value.why.split()[-5])
    for sessions in (1, 3):
        least = needed * sessions
        enough = ingot_runtime.load(bundle, max_bytes=least, sessions=sessions)
        assert (enough.run({"x": X})["y"] == tiny_reference(X)).all()
        short = ingot_runtime.load(bundle, max_bytes=least - 1, sessions=sessions)
        with pytest.raises(ingot_runtime.LimitError, match=f"need {needed} bytes"):
            short.run({"x": X})


def test_results_are_the_callers(bundle: Path) -> None:
    """A result that anybody still sees, in whatever way, is never written again; what nobody sees
    is used again."""
    session = ingot_runtime.load(bundle)
    expected = tiny_reference(LARGE)
    seen = session.run({"x": LARGE})["y"]
    views = [seen[1:], seen.reshape(-1), seen.T, seen.view(np.uint8)]
    held = [view.copy() for view in views]
    buffers = [session.run({"x": LARGE})["y"].data, session.run({"x": LARGE})["y"][5:].data]
    del seen
    for _ in range(5):
        session.run({"x": -LARGE})
        gc.collect()
    for view, copy in zip(views, held, strict=True):
        assert (view == copy).all()
    assert (np.asarray(buffers[0]) == expected).all()
    assert (np.asarray(buffers[1]) == expected[5:]).all()


def test_results_are_used_again(bundle: Path) -> None:
    """Two blocks at most wait for the next call: results that are dropped at once come back at the
    same places."""
    session = ingot_runtime.load(bundle)
    places = {session.run({"x": LARGE})["y"].__array_interface__["data"][0] for _ in range(20)}
    assert len(places) <= 2


def test_bind_with_overlap(bundle: Path) -> None:
    """An output over an input, in part or whole, is refused."""
    session = ingot_runtime.load(bundle)
    memory = np.zeros((12, WIDTH), np.float32)
    for x, y in ((memory[:4], memory[2:6]), (memory[4:8], memory[4:8]), (memory[4:8], memory[1:5])):
        with pytest.raises(ingot_runtime.InputError, match="share memory"):
            session.bind({"x": x}, {"y": y})
    bound = session.bind({"x": memory[:4]}, {"y": memory[4:8]})
    memory[:4] = X
    bound.run()
    assert (memory[4:8] == tiny_reference(X)).all()


def test_bind_with_a_list(bundle: Path) -> None:
    """No dict is a mistake of the caller, by name."""
    session = ingot_runtime.load(bundle)
    wrong: list[Any] = [([X],), ({"x": X}, [X])]
    for arguments in wrong:
        with pytest.raises(ingot_runtime.InputError, match="puts are not a dict"):
            session.bind(*arguments)


def test_after_close(bundle: Path) -> None:
    """A closed session refuses everything by name; closing it again is nothing."""
    session = ingot_runtime.load(bundle, executor="vm")
    bound = session.bind({"x": X})
    session.run({"x": X})
    session.close()
    session.close()
    for call in (
        lambda: session.run({"x": X}),
        bound.run,
        session.trace,
        session.steps,
        lambda: session.bind({"x": X}),
    ):
        with pytest.raises(ingot_runtime.BusyError, match="the session is closed"):
            call()
    assert not session.cancel()


def test_a_system_that_hides_the_processors(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may not ask for its affinity gets the threads that it asks for, or as many as
    there are processors."""

    def refuse(_: int) -> set[int]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_getaffinity", refuse)
    assert system.usable_processors() == os.cpu_count()
    assert (ingot_runtime.load(bundle, threads=2).run({"x": X})["y"] == tiny_reference(X)).all()


def test_reading_errors(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk refuses is a FileError, whatever it is."""

    def refuse(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", refuse)
    with pytest.raises(ingot_runtime.FileError, match="Input/output error"):
        ingot_runtime.load(bundle)


def test_no_path(tmp_path: Path) -> None:
    """What is neither a path nor bytes is a mistake of the caller."""
    for bad in (5, None, ["m.ingot"]):
        with pytest.raises(ingot_runtime.InputError, match="not a path") as caught:
            ingot_runtime.load(bad)  # type: ignore[arg-type]  # the error is what is tested
        assert "bundle.to_bytes()" in caught.value.do
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(ingot_runtime.FileError, match="cannot open"):
            ingot_runtime.load(path)


def test_a_descriptor_that_others_closed(bundle: Path) -> None:
    """A daemon closes all descriptors: the session's is not closed a second time, and it says what
    has happened."""
    session = ingot_runtime.load(bundle)
    number = session.loaded.source.fd
    os.close(number)
    reader, writer = os.pipe()
    assert number in (reader, writer)  # the lowest free one
    with pytest.raises(ingot_runtime.ChangedError, match="closed its descriptor"):
        session.run({"x": X})
    session.close()
    del session
    gc.collect()
    os.write(writer, b"x")
    assert os.read(reader, 1) == b"x"
    os.close(reader)
    os.close(writer)
