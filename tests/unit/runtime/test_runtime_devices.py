"""A bundle for the host and devices beside it: binding, results, counts, memory, errors that cross
native code."""

import sys
import weakref
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents
from tests.hostile.two_devices import (
    TARGET,
    library,
    tree_entry,
    two_device_contents,
    two_device_reference,
)

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime import command
from ingot_runtime.executor.session import Session
from ingot_runtime.format.plan import LibraryPlan
from ingot_runtime_devices.attached import Attached
from ingot_runtime_devices.device import ALIGNMENT_BYTES
from ingot_runtime_devices.host_memory import HostMemory, Piece
from ingot_runtime_devices.registry import OPEN

EXECUTORS = ("aot", "vm")
X = np.linspace(-2, 5, 4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)
Y = two_device_reference(X)
SIZE_BYTES = X.nbytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``one``, ``two``: devices beside the host; ``open``: any number of rows; ``grown``: a block
    of a size that main knows; ``host``."""
    path = tmp_path_factory.mktemp("devices")
    write_bundle(two_device_contents(), path / "one", tree_entry)
    write_bundle(two_device_contents(count=2), path / "two", tree_entry)
    write_bundle(two_device_contents("rows"), path / "open", tree_entry)
    write_bundle(two_device_contents("rows", grows=True), path / "grown", tree_entry)
    write_bundle(tiny_contents(), path / "host", tree_entry)
    return path


def right(session: Session) -> bool:
    """Whether a call gives the reference's bits."""
    return bool((session.run({"x": X})["y"] == Y).all())


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", ["one", "two", "open", "grown"])
def test_results(folder: Path, name: str, executor: str) -> None:
    """The same bits as on the host, call after call, bound too."""
    session = ingot_runtime.load(folder / name, executor=executor, threads=2)
    for _ in range(3):
        assert right(session)
    bound = session.bind({"x": X})
    bound.run()
    assert (bound.outputs["y"] == Y).all()
    if name in ("open", "grown"):
        more = np.tile(X, (1000, 1))
        assert (session.run({"x": more})["y"] == two_device_reference(more)).all()
        assert session.run({"x": X[:0]})["y"].shape == (0, WIDTH)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_counts(folder: Path, executor: str) -> None:
    """Launches per device, copies and bytes per edge, by virtual names, since the load."""
    session = ingot_runtime.load(folder / "two", executor=executor)
    assert session.device_counts().launches == {"acc": 0, "aux": 0}
    assert session.device_counts().copies == {}
    for _ in range(2):
        session.run({"x": X})
    counts = session.device_counts()
    assert counts.launches == {"acc": 4, "aux": 0}
    twice = (2, 2 * SIZE_BYTES)
    assert counts.copies == {
        ("host", "acc"): (4, 4 * SIZE_BYTES), ("acc", "host"): twice, ("acc", "aux"): twice, ("aux", "host"): twice,
    }  # fmt: skip
    with pytest.raises(ingot_runtime.InputError, match="no device counts"):
        ingot_runtime.load(folder / "host").device_counts()


@pytest.mark.parametrize(
    "devices",
    [
        {},
        {"acc": "null"},
        {"acc": "null:3", "aux": "null:0"},
        {"acc": "null:1", "aux": "null:1"},
        {"acc": "cpu:1", "aux": "null:1", "host": "host"},
        {"acc": f"cpu:1,target={TARGET}", "aux": "cpu:15"},
    ],
)
def test_bound_devices(folder: Path, devices: dict[str, str]) -> None:
    """Any device of the kind will do, also one for two, and one of another kind that runs the same
    code."""
    session = ingot_runtime.load(folder / "two", devices=devices)
    assert right(session)
    compiled = {"host": "host:0", "acc": "null:0", "aux": "null:1"}
    chosen = {name: text.partition(",")[0] for name, text in devices.items()}
    named = {name: text if ":" in text else f"{text}:0" for name, text in chosen.items()}
    assert session.devices == {**compiled, **named}


@pytest.mark.parametrize(
    ("devices", "kind", "message"),
    [
        ({"gpu": "null:0"}, ingot_runtime.InputError, "no device 'gpu'"),
        ({"ac": "null:0"}, ingot_runtime.InputError, "did you mean 'acc'?"),
        ({"acc": "nul"}, ingot_runtime.InputError, "unknown device kind 'nul'"),
        ({"acc": "null:"}, ingot_runtime.InputError, "a device has no such id"),
        ({"acc": "null:-1"}, ingot_runtime.InputError, "a device has no such id"),
        ({"acc": "null:0:1"}, ingot_runtime.InputError, "a device has no such id"),
        ({"acc": "null:²"}, ingot_runtime.InputError, "a device has no such id"),
        ({"acc": 0}, ingot_runtime.InputError, "bad device for 'acc'"),
        (["acc"], ingot_runtime.InputError, "devices are not a dict"),
        ({"acc": "null:16"}, ingot_runtime.IncompatibleError, "no device null:16 here"),
        ({"acc": "cuda:0"}, ingot_runtime.IncompatibleError, "device 'acc' cannot be cuda:0"),
        ({"acc": "host"}, ingot_runtime.IncompatibleError, "device 'acc' cannot be host:0"),
        ({"host": "null:0"}, ingot_runtime.IncompatibleError, "device 'host' cannot be 'null:0'"),
        ({"acc": "cpu:16"}, ingot_runtime.IncompatibleError, "there are cpu:0 to cpu:15"),
        (
            {"acc": "cpu:0,target=x86-64-v4"},
            ingot_runtime.IncompatibleError,
            "device 'acc' has no target 'x86-64-v4'",
        ),
        (
            {"acc": "cpu:0,scope=fast"},
            ingot_runtime.IncompatibleError,
            "device 'acc' has no scope 'fast'",
        ),
        ({"acc": "cpu:0,tagret=x"}, ingot_runtime.InputError, "did you mean 'target'?"),
        ({"acc": "cpu,scope=a,scope=b"}, ingot_runtime.InputError, "scope is given twice"),
        ({"host": "host:1"}, ingot_runtime.IncompatibleError, "device 'host' cannot be 'host:1'"),
    ],
)
def test_wrong_binding(
    folder: Path, devices: object, kind: type[ingot_runtime.BundleError], message: str
) -> None:
    """Each is refused by name, in four parts."""
    with pytest.raises(kind) as caught:
        ingot_runtime.load(folder / "one", devices=devices)  # type: ignore[arg-type]  # the mistakes
    assert message in str(caught.value)
    assert all((caught.value.where, caught.value.why, caught.value.do))


def test_a_bundle_for_two_devices_on_a_machine_with_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device that is missing is refused by name, with what is there; both run on the one if the
    user says so."""
    monkeypatch.setattr("ingot_runtime_devices.host_memory.ID_COUNT", 1)
    with pytest.raises(ingot_runtime.IncompatibleError) as caught:
        ingot_runtime.load(folder / "two")
    assert "device 'aux' wants null:1; there is null:0" in str(caught.value)
    assert "--device aux=null:0" in caught.value.do
    assert right(ingot_runtime.load(folder / "two", devices={"aux": "null:0"}))


@pytest.mark.parametrize("part", ["bind_device", "attached"])
def test_devices_that_are_not_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Without the package a bundle with devices is refused, naming it; one for the host alone, and
    one's description, need none of it."""
    for name in ("ingot_runtime_devices", f"ingot_runtime_devices.{part}"):
        monkeypatch.setitem(sys.modules, name, None)  # makes the import fail
    with pytest.raises(
        ingot_runtime.IncompatibleError, match="no devices beside the host here"
    ) as caught:
        ingot_runtime.load(folder / "one")
    assert "install ingot-runtime-devices" in caught.value.do
    assert all((caught.value.where, caught.value.why))
    ingot_runtime.load(folder / "host").run({"x": X})
    assert command.main(["inspect", str(folder / "one")]) == 0


def test_library_of_a_better_machine() -> None:
    """A library whose features the machine lacks is refused by their names."""
    made = library()
    plan = LibraryPlan("null", made.target, made.features, 1)
    with pytest.raises(
        ingot_runtime.IncompatibleError, match="'acc' cannot run its library"
    ) as caught:
        OPEN["null"]("acc", 0, plan, made.image, "section library 0", frozenset(made.features[1:]))
    assert f"needs {made.features[0]}, which" in caught.value.why


def test_trace_and_observe(folder: Path) -> None:
    """The vm tells of launches on devices, and shows copies of their buffers; looking is not
    counted."""
    session = ingot_runtime.load(folder / "one", executor="vm")
    seen: list[tuple[int, str, bytes]] = []
    session.observe(
        lambda ordinal, kernel, _, buffers: seen.append((ordinal, kernel, bytes(buffers[0])))
    )
    assert right(session)
    assert [(ordinal, kernel) for ordinal, kernel, _ in seen] == [
        (index, "tiny_scale") for index in range(3)
    ]
    assert seen[2][2] == Y.tobytes()
    assert [row[:2] for row in session.trace()] == [row[:2] for row in seen]
    assert session.device_counts().copies["acc", "host"] == (2, 2 * SIZE_BYTES)


def test_memory_limit_counts_devices(folder: Path) -> None:
    """Pools of all devices are memory of the call; so are blocks that grow there."""
    host, device, output = SIZE_BYTES, 2 * SIZE_BYTES + 64, SIZE_BYTES
    needed = host + device + 64 + output
    assert right(ingot_runtime.load(folder / "one", max_bytes=needed))
    with pytest.raises(ingot_runtime.LimitError, match="needs too much memory"):
        ingot_runtime.load(folder / "one", max_bytes=needed - 1)
    assert right(ingot_runtime.load(folder / "grown", max_bytes=needed + SIZE_BYTES))
    with pytest.raises(ingot_runtime.LimitError, match="whose size the data decide") as caught:
        ingot_runtime.load(folder / "grown", max_bytes=needed + SIZE_BYTES - 1).run({"x": X})
    assert caught.value.where == f"x {list(X.shape)}"
    assert caught.value.why.endswith(f"{SIZE_BYTES - 1} bytes for them, got {SIZE_BYTES}")
    assert "max_bytes" in caught.value.do


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("method", ["launch", "write", "read"])
@pytest.mark.parametrize(
    "error", [ingot_runtime.DeviceError("lost"), KeyboardInterrupt(), MemoryError()]
)
def test_what_a_device_raises(
    folder: Path, monkeypatch: pytest.MonkeyPatch, executor: str, method: str, error: BaseException
) -> None:
    """It is raised by the call, as itself where it is no mistake of a callback; the session goes
    on."""
    session = ingot_runtime.load(folder / "one", executor=executor)

    def fail(*_: object) -> None:
        raise error

    expected: type[BaseException] = (
        type(error) if not isinstance(error, MemoryError) else ingot_runtime.BundleError
    )
    with monkeypatch.context() as patch:
        patch.setattr(HostMemory, method, fail)
        with pytest.raises(expected):
            session.run({"x": X})
    assert right(session)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["launch", "copy"])
@pytest.mark.parametrize("at", [1, 2])
def test_interrupt_before_the_first_line_of_a_callback(folder: Path, name: str, at: int) -> None:
    """Ctrl-C that comes where no code of ours can catch it is not lost: the call ends with it, and
    the session goes on."""
    session = ingot_runtime.load(folder / "one")
    calls: list[int] = []

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if (
            event == "call"
            and frame.f_code.co_qualname.endswith(f".<locals>.{name}")
            and "callbacks" in frame.f_code.co_filename
        ):
            calls.append(1)
            if len(calls) == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return None

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            session.run({"x": X})
    finally:
        sys.settrace(old)
    assert len(calls) == at
    assert right(session)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_call_waits_for_its_devices(
    folder: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    """When a call returns no device is at work on what it was given; an error that a device knows
    only then is raised by this call."""
    session = ingot_runtime.load(folder / "two", executor=executor)
    waited: list[str] = []

    def wait(self: HostMemory) -> None:
        waited.append(self.name)
        if len(waited) > 2:
            raise ingot_runtime.DeviceError("a launch has failed meanwhile", self.name)

    with monkeypatch.context() as patch:
        patch.setattr(HostMemory, "wait", wait)
        assert right(session)
        assert waited == ["null:0", "null:1"]
        with pytest.raises(ingot_runtime.DeviceError, match="failed meanwhile") as caught:
            session.run({"x": X})
    assert caught.value.where == "null:0"
    assert len(waited) == 4
    assert right(session)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_buffers_are_aligned(folder: Path, monkeypatch: pytest.MonkeyPatch, executor: str) -> None:
    """What `main` launches with on a device lies at multiples of 64: parts of pools, weights,
    blocks that grow, scratch."""
    seen: list[int] = []
    launch = HostMemory.launch

    def note(self: HostMemory, kernel: int, buffers: list[int], *rest: Any) -> int:
        seen.extend(buffers)
        return launch(self, kernel, buffers, *rest)

    monkeypatch.setattr(HostMemory, "launch", note)
    for name in ("one", "two", "open", "grown"):
        assert right(ingot_runtime.load(folder / name, executor=executor))
    assert len(seen) == 4 * 2 * 4
    assert not any(address % ALIGNMENT_BYTES for address in seen)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_cancel_from_a_device(folder: Path, monkeypatch: pytest.MonkeyPatch, executor: str) -> None:
    """A call that is cancelled while a device works ends there."""
    session = ingot_runtime.load(folder / "one", executor=executor)
    write = HostMemory.write

    def cancel(self: HostMemory, address: int, source: int, size_bytes: int) -> None:
        assert session.cancel()
        write(self, address, source, size_bytes)

    with monkeypatch.context() as patch:
        patch.setattr(HostMemory, "write", cancel)
        with pytest.raises(ingot_runtime.CancelledError):
            session.run({"x": X})
    assert session.device_counts().launches["acc"] <= 1
    assert right(session)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("name", "count"), [("two", 2), ("grown", 1)])
def test_nothing_keeps_a_device(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, count: int, executor: str
) -> None:
    """A session that is dropped lets go of its devices at once: no cycle waits for the
    collector."""
    opened: list[weakref.ref[HostMemory]] = []
    start = HostMemory.__init__

    def note(self: HostMemory, *arguments: object) -> None:
        opened.append(weakref.ref(self))
        start(self, *arguments)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(HostMemory, "__init__", note)
    session = ingot_runtime.load(folder / name, executor=executor)
    assert right(session)
    assert len(opened) == count
    assert all(each() is not None for each in opened)
    del session
    assert [each() for each in opened] == [None] * count


@pytest.mark.parametrize("executor", EXECUTORS)
def test_close(folder: Path, executor: str) -> None:
    """Closing a session closes its devices, and may be done again."""
    session = ingot_runtime.load(folder / "two", executor=executor)
    attached = session._context.attached  # pyright: ignore[reportPrivateUsage]
    assert isinstance(attached, Attached)
    session.close()
    session.close()
    for index in (1, 2):
        device = attached.devices[index]
        assert device is not None
        with pytest.raises(ingot_runtime.DeviceError, match="closed"):
            device.wait()


def test_large_allocations_begin_where_huge_pages_do() -> None:
    """Rights to the memory of a network's weights are then those of few pages."""
    piece = Piece(5 << 20)
    assert piece.address % (2 << 20) == 0
    assert piece.size_bytes == 6 << 20
    assert Piece(100).size_bytes == 4096


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_device_with_too_little_memory(
    folder: Path, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call whose sizes need more than the device has ends with what is needed and what there is,
    before anything runs; one that needs less still works."""
    session = ingot_runtime.load(folder / "open", executor=executor)
    assert right(session)
    before = session.device_counts().launches, session.device_counts().copies
    monkeypatch.setattr("ingot_runtime_devices.host_memory.MEMORY_BYTES", 1 << 20)
    rows = np.zeros((1 << 20, WIDTH), np.float32)
    with pytest.raises(
        ingot_runtime.ResourceError, match="not enough memory on device null:0"
    ) as e:
        session.run({"x": rows})
    assert "bytes" in e.value.where
    assert f"of {1 << 20} bytes are in use" in e.value.why
    assert (session.device_counts().launches, session.device_counts().copies) == before
    assert right(session)
