"""Copies between the host and devices that begin early: where they begin and end, that they run
beside launches, and that the bits are those of the host alone."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from onnx import ModelProto
from tests.conformance.test_devices import OPEN_KINDS
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal
from tests.trace_format import checked_trace
from tests.unit.lowering.test_stage_texts import FUSED

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.lowering.groups.early_copies import begin_copies_early
from ingot_compiler.lowering.groups.fused import (
    BufferSpec,
    Copy,
    Grow,
    IfStep,
    Step,
    SymbolRead,
    SymbolSet,
)
from ingot_compiler.lowering.groups.parse_fused import parse_fused
from ingot_runtime.errors import DeviceError
from ingot_runtime_devices import begun_copy
from ingot_runtime_devices.host_memory import HostMemory

if TYPE_CHECKING:
    from ingot_runtime_devices.opencl import OpenCl

ROWS, WIDTH = 2048, 64  # an output is worth a thread
X = np.random.default_rng(7).standard_normal((ROWS, WIDTH)).astype(np.float32)
WAIT_SECONDS = 60  # a copy that nothing runs beside waits as long, and fails


def network(*, early: bool = True) -> ModelProto:
    """Two products, one after the other; the first one's result is an output too where
    ``early``."""
    nodes = [node("MatMul", "x w0", "first"), node("MatMul", "first w1", "y")]
    outputs = [tensor(name, [ROWS, WIDTH]) for name in (("first", "y") if early else ("y",))]
    weights = {"w0": normal(0, WIDTH, WIDTH), "w1": normal(1, WIDTH, WIDTH)}
    return make_model(nodes, [tensor("x", [ROWS, WIDTH])], outputs, weights)


def late_input() -> ModelProto:
    """Two products, one after the other; the second one reads another input."""
    nodes = [node("MatMul", "x w0", "first"), node("MatMul", "first w1", "second")]
    nodes.append(node("Add", "second late", "y"))
    inputs = [tensor(name, [ROWS, WIDTH]) for name in ("x", "late")]
    weights = {"w0": normal(0, WIDTH, WIDTH), "w1": normal(1, WIDTH, WIDTH)}
    return make_model(nodes, inputs, [tensor("y", [ROWS, WIDTH])], weights)


def bundle_on(device: str, model: ModelProto | None = None) -> bytes:
    """A network wholly on a device."""
    targets, place = ["x86-64-v3"], {"*": "acc"}
    made = ingot.compile(model or network(), targets=targets, devices={"acc": device}, place=place)
    return bytes(made.to_bytes())


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("model", "steps", "version"),
    [
        (network(), ["copy", "kernel", "begin_copy", "kernel", "copy", "end_copy"], "1.3"),
        (network(early=False), ["copy", "kernel", "kernel", "copy"], "1.2"),
        (late_input(), ["copy", "begin_copy", "kernel", "end_copy", "kernel", "copy"], "1.3"),
    ],
    ids=["back", "neither", "there"],
)
def test_where_a_copy_begins_and_ends(
    model: ModelProto,
    steps: list[str],
    version: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Behind the kernel that writes what is copied, or behind the copies that the first kernel
    waits for, and where it is needed; what nothing runs beside is one step, and such a bundle needs
    no later loader."""
    source, bundle = tmp_path / "m.onnx", tmp_path / "m.ingot"
    source.write_bytes(model.SerializeToString())
    words = ["compile", str(source), "--device", "acc=cpu", "--place", "*=acc", "-q"]
    assert main([*words, "-o", str(bundle)]) == 0
    assert describe_bundle(bundle)["format"] == version
    capsys.readouterr()
    assert main([*words, "--to", "fused"]) == 0
    first_words = [line.split(" ")[0] for line in capsys.readouterr().out.splitlines()]
    assert [word for word in first_words if word in {*steps, "begin_copy", "end_copy"}] == steps


def test_a_copy_begins_when_its_size_is_known() -> None:
    """Not before the step that binds a symbol of its size, nor before the last that writes what is
    copied; one before another, all begin before any ends."""
    host, there = BufferSpec("workspace", "f32", 4), BufferSpec("workspace", "f32", 4, device=1)
    wanted = Copy(1, 0)
    work = IfStep("c", (), ())  # a step that computes, and names no buffer
    bound: list[Step] = [SymbolRead("n", 2, 0, "i64"), SymbolSet(("m",), (1,))]
    open_size = BufferSpec("workspace", "f32", symbol("n"), device=1)
    steps = [Grow(1, 4), work, *bound, work, wanted]
    found = begin_copies_early(steps, (host, there, host))
    begins, ends = Copy(1, 0, part="begin"), Copy(1, 0, part="end")
    assert found == (Grow(1, 4), begins, work, *bound, work, ends)
    found = begin_copies_early(steps, (host, open_size, host))
    assert found == (Grow(1, 4), work, bound[0], begins, bound[1], work, ends)
    assert begin_copies_early([Grow(1, 4), wanted, *bound], (host, there, host))[1] == wanted


def test_a_copy_to_a_device_begins_when_it_can() -> None:
    """An input's before the first step that computes, another value's behind the step that writes
    it, behind what makes room for it; one between two devices is whole."""
    given, made = BufferSpec("input", "f32", 4), BufferSpec("workspace", "f32", 4)
    there, other = (replace(made, device=device) for device in (1, 2))
    wanted, work = Copy(0, 1), IfStep("c", (), ())
    begins, ends = Copy(0, 1, part="begin"), Copy(0, 1, part="end")
    first = SymbolSet(("m",), (1,))
    found = begin_copies_early([first, work, work, wanted], (given, there))
    assert found == (first, begins, work, work, ends)
    found = begin_copies_early([work, Grow(0, 4), work, wanted], (made, there))
    assert found == (work, Grow(0, 4), begins, work, ends)
    found = begin_copies_early([work, Grow(1, 4), work, wanted], (given, there))
    assert found == (work, Grow(1, 4), begins, work, ends)
    assert begin_copies_early([work, wanted], (made, there)) == (work, wanted)
    assert begin_copies_early([work, wanted], (other, there)) == (work, wanted)


def test_a_value_that_passes_the_host() -> None:
    """What comes from one device and goes on to another goes on when it is there."""
    host, one, other = (BufferSpec("workspace", "f32", 4, device=device) for device in (0, 1, 2))
    back, on, work = Copy(1, 0), Copy(0, 2), IfStep("c", (), ())
    found = begin_copies_early([Grow(1, 4), back, work, on], (host, one, other))
    parts = replace(back, part="begin"), replace(back, part="end")
    assert found == (Grow(1, 4), parts[0], work, parts[1], on)


def test_a_copy_between_devices_has_no_parts() -> None:
    """A text that says otherwise is refused."""
    text = FUSED.replace("b4: f32 x 15, workspace", "b4: f32 x 15, workspace on device 2")
    with pytest.raises(ModelError, match="what begins early: expected a copy from or to the host"):
        parse_fused(text.replace("copy b3 to b4", "begin_copy b3 to b4"))


@pytest.mark.broad
@pytest.mark.parametrize(
    "device", ["cpu:1", "null", pytest.param("opencl", marks=pytest.mark.opencl)]
)
def test_bits(device: str) -> None:
    """Native and stepped, again and again: the bits of the processor alone."""
    expected: dict[str, bytes] = {}
    for executor in ("aot", "vm"):
        with ingot_runtime.load(bundle_on(device), executor=executor) as session:
            for _ in range(5):
                for name, value in session.run({"x": X}).items():
                    assert expected.setdefault(name, value.tobytes()) == value.tobytes()
            assert session.device_counts().copies[("acc", "host")] == (10, 10 * X.nbytes)
    if device != "opencl":  # it has other loops
        with ingot_runtime.load(
            ingot.compile(network(), targets=["x86-64-v3"]).to_bytes()
        ) as alone:
            values = alone.run({"x": X})
        assert {name: value.tobytes() for name, value in values.items()} == expected


LATE = np.random.default_rng(8).standard_normal((ROWS, WIDTH)).astype(np.float32)


@pytest.mark.broad
@pytest.mark.parametrize(
    "device", ["cpu:1", "null", pytest.param("opencl", marks=pytest.mark.opencl)]
)
def test_bits_of_what_begins_early_there(device: str) -> None:
    """Likewise of copies to a device; what the caller changes behind a call changes nothing."""
    bundle, found = bundle_on(device, late_input()), set[bytes]()
    for executor in ("aot", "vm"):
        with ingot_runtime.load(bundle, executor=executor) as session:
            for _ in range(5):
                given = {"x": X.copy(), "late": LATE.copy()}
                value = session.run(given)["y"]
                given["late"][:] = np.nan
                found.add(value.tobytes())
            assert session.device_counts().copies[("host", "acc")] == (10, 10 * X.nbytes)
    if device != "opencl":  # it has other loops
        alone = ingot.compile(late_input(), targets=["x86-64-v3"]).to_bytes()
        with ingot_runtime.load(alone) as session:
            found.add(session.run({"x": X, "late": LATE})["y"].tobytes())
    assert len(found) == 1


class Slow:
    """``ctypes`` for a copy that ends only when a launch has begun that was asked behind it, and
    which ends only when the copy has begun."""

    def __init__(self) -> None:
        self.copying, self.launched = threading.Event(), threading.Event()
        self.waited: list[bool] = []

    def memmove(self, target: int, source: int, size_bytes: int) -> None:
        """Wait, then copy."""
        self.copying.set()
        self.waited.append(self.launched.wait(WAIT_SECONDS))
        ctypes.memmove(target, source, size_bytes)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """Let the copies that begin early, and the launches behind them, wait for one another."""
    made, launch = Slow(), HostMemory.launch
    begins = {name: getattr(HostMemory, name) for name in ("begin_read", "begin_write")}

    def noted(self: HostMemory, *arguments: Any, **named: Any) -> int:
        if self._begun:  # pyright: ignore[reportPrivateUsage]
            made.launched.set()
            assert made.copying.wait(WAIT_SECONDS)
        return launch(self, *arguments, **named)

    def noted_begin(name: str) -> Callable[[HostMemory, int, int, int], None]:
        def begin(self: HostMemory, target: int, source: int, size_bytes: int) -> None:
            made.launched.clear()
            made.copying.clear()
            begins[name](self, target, source, size_bytes)

        return begin

    monkeypatch.setattr(begun_copy, "ctypes", made)
    monkeypatch.setattr(HostMemory, "launch", noted)
    for name in begins:
        monkeypatch.setattr(HostMemory, name, noted_begin(name))
    return made


GIVEN = {"back": {"x": X}, "there": {"x": X, "late": LATE}}
MODELS = {"back": network, "there": late_input}


@pytest.mark.parametrize("way", GIVEN)
@pytest.mark.parametrize("executor", ["aot", "vm"])
def test_a_copy_runs_beside_a_launch(slow: Slow, executor: str, way: str) -> None:
    """The copy of the first result cannot end before the second launch has begun, and it does; that
    of the second input not before the first launch has."""
    bundle = bundle_on("cpu:1", MODELS[way]())
    with ingot_runtime.load(bundle, executor=executor) as session:
        found = session.run(GIVEN[way])
    assert slow.waited == [True]
    with ingot_runtime.load(bundle) as session:
        again = session.run(GIVEN[way])
    assert all(found[name].tobytes() == again[name].tobytes() for name in again)


@pytest.mark.parametrize(("way", "name", "launch"), [("back", "acc to host", 1), ("there", "host to acc", 0)])  # fmt: skip
def test_a_trace_shows_it(slow: Slow, tmp_path: Path, way: str, name: str, launch: int) -> None:
    """The slice of the copy and that of a launch that was asked later have time in common."""
    (tmp_path / "m.ingot").write_bytes(bundle_on("cpu:1", MODELS[way]()))
    given: dict[str, Any] = GIVEN[way]
    np.savez(tmp_path / "x.npz", **given)
    words = ["--inputs", str(tmp_path / "x.npz"), "--trace", str(tmp_path / "t.json")]
    assert main(["run", str(tmp_path / "m.ingot"), *words]) == 0
    entries = checked_trace((tmp_path / "t.json").read_text())
    slices = [entry for entry in entries if entry["ph"] == "X"]
    calls = [entry for entry in slices if entry["cat"] == "call" and "stepped" in entry["name"]]
    copies = [entry for entry in slices if entry["name"] == name]
    launches = [entry for entry in slices if "launch" in entry["args"]]
    assert (len(calls), len(copies), len(launches)) == (2, 4, 4)
    together = [
        each["args"]["launch"]
        for copy in copies
        for each in launches
        if max(copy["ts"], each["ts"]) < min(it["ts"] + it["dur"] for it in (copy, each))
    ]
    assert together == [launch, launch]
    assert len(slow.waited) == 4


@pytest.mark.opencl
def test_opencl_copies_beside_a_queue_that_waits() -> None:
    """A copy that has begun ends while what was queued behind it has not run."""
    import pyopencl as cl

    device = cast("OpenCl", OPEN_KINDS["opencl"](0))
    made, target = device.allocate(X.nbytes), np.zeros_like(X)
    device.write(made.address, int(X.ctypes.data), X.nbytes)
    gate = cl.UserEvent(device._context)  # pyright: ignore[reportPrivateUsage]
    late = threading.Timer(WAIT_SECONDS, gate.set_status, [cl.command_execution_status.COMPLETE])
    late.start()
    device.begin_read(int(target.ctypes.data), made.address, X.nbytes)
    cl.enqueue_barrier(device._queue, [gate])  # pyright: ignore[reportPrivateUsage]
    device.move(made.address + 4, made.address, 4)
    device.end_read(int(target.ctypes.data))
    is_shut = gate.command_execution_status != cl.command_execution_status.COMPLETE
    late.cancel()
    gate.set_status(cl.command_execution_status.COMPLETE)
    device.wait()
    assert is_shut
    assert np.array_equal(target, X)
    device.close()


@pytest.mark.opencl
def test_opencl_copies_there_beside_a_queue_that_waits() -> None:
    """A copy to it that has begun ends while what was queued behind it has not run."""
    import pyopencl as cl

    device = cast("OpenCl", OPEN_KINDS["opencl"](0))
    made, target = device.allocate(X.nbytes), np.zeros_like(X)
    gate = cl.UserEvent(device._context)  # pyright: ignore[reportPrivateUsage]
    late = threading.Timer(WAIT_SECONDS, gate.set_status, [cl.command_execution_status.COMPLETE])
    late.start()
    device.begin_write(made.address, int(X.ctypes.data), X.nbytes)
    cl.enqueue_barrier(device._queue, [gate])  # pyright: ignore[reportPrivateUsage]
    device.end_write(made.address)
    is_shut = gate.command_execution_status != cl.command_execution_status.COMPLETE
    late.cancel()
    gate.set_status(cl.command_execution_status.COMPLETE)
    device.read(int(target.ctypes.data), made.address, X.nbytes)
    assert is_shut
    assert np.array_equal(target, X)
    device.close()


@pytest.mark.opencl
def test_opencl_tells_when_it_ran() -> None:
    """The launches of a stepped call ran one after the other, behind the call's beginning and
    before its end; their copies have times, too."""
    with ingot_runtime.load(bundle_on("opencl"), executor="vm") as session:
        for _ in range(2):
            started = time.perf_counter()
            session.run({"x": X})
            ended = time.perf_counter()
            launches = [step for step in session.steps() if step.launch >= 0]
            spans = [
                (step.started_seconds, step.started_seconds + step.seconds) for step in launches
            ]
            assert len(spans) == 2
            assert started < spans[0][0] < spans[0][1] <= spans[1][0] < spans[1][1] < ended


def test_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no thread can be had, the copy is made at once."""
    expected = ingot_runtime.load(bundle_on("cpu:1")).run({"x": X})
    asked: list[object] = []

    def refuse(*_: object) -> None:
        asked.append(None)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(begun_copy, "_thread", _Threads(refuse))
    found = ingot_runtime.load(bundle_on("cpu:1")).run({"x": X})
    assert asked
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


class _Threads:
    """``_thread`` that starts none."""

    def __init__(self, start_new_thread: Any) -> None:
        self.start_new_thread = start_new_thread
        self.allocate_lock = threading.Lock


@pytest.mark.parametrize(("way", "failing_launch"), [("back", 2), ("there", 1)])
def test_a_call_that_ends_between(
    way: str, failing_launch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch that fails while a copy runs: the call ends with an error, the copy has ended, and
    the next call is right."""
    with ingot_runtime.load(bundle_on("cpu:1", MODELS[way]())) as session:
        expected = session.run(GIVEN[way])
        launch, count = HostMemory.launch, [0]

        def failing(self: HostMemory, *arguments: Any, **named: Any) -> int:
            count[0] += 1
            if count[0] == failing_launch:
                raise DeviceError("a device refuses launch", self.name, "the test")
            return launch(self, *arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(HostMemory, "launch", failing)
            with pytest.raises(DeviceError, match="the test"):
                session.run(GIVEN[way])
        found = session.run(GIVEN[way])
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)
