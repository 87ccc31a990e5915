"""Copies from a GPU that run beside its launches: the same bits whatever the driver does first of
what it may, and copies that are there before later launches have begun."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest
from tests.conformance.test_devices import COUNT, Scale, address_of, open_cuda, put
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal
from tests.ptx.fake_driver import Machine, installed
from tests.ptx.streams import FIRST_LATE, LATE, Event, Stream

import ingot
import ingot_runtime
from ingot_runtime.errors import DeviceError
from ingot_runtime_devices.cuda import Cuda

WIDTH = 24
X = np.random.default_rng(7).standard_normal((20, WIDTH)).astype(np.float32)


@pytest.fixture(scope="module")
def bundle() -> bytes:
    """Two products; the first one's result is an output."""
    nodes = [node("MatMul", "x w0", "first"), node("MatMul", "first w1", "y")]
    outputs = [tensor(name, list(X.shape)) for name in ("first", "y")]
    weights = {"w0": normal(0, WIDTH, WIDTH), "w1": normal(1, WIDTH, WIDTH)}
    model = make_model(nodes, [tensor("x", list(X.shape))], outputs, weights)
    made = ingot.compile(model, targets=["x86-64-v3"], devices={"acc": "cuda"}, place={"*": "acc"})
    return bytes(made.to_bytes())


@pytest.fixture(scope="module")
def expected(bundle: bytes) -> dict[str, Array]:
    """What a GPU gives that does everything at once."""
    with installed(), ingot_runtime.load(bundle) as session:
        return dict(session.run({"x": X}))


@pytest.fixture
def machine() -> Iterator[Machine]:
    """GPUs whose first stream does what it is asked when somebody waits for it."""
    with installed(Machine(order=FIRST_LATE)) as made:
        yield made


@pytest.mark.parametrize(("order", "executor"), [(LATE, "aot"), (FIRST_LATE, "vm")])
def test_bits(bundle: bytes, expected: dict[str, Array], order: str, executor: str) -> None:
    """Again and again, with one copy that begins early in each call."""
    with installed(Machine(order=order)) as machine:
        with ingot_runtime.load(bundle, executor=executor) as session:
            for _ in range(2):
                for name, value in session.run({"x": X}).items():
                    np.testing.assert_array_equal(value, expected[name])
        assert machine.calls["pagelocked_empty"] == 1
        assert machine.calls["event"] == 2


def test_a_copy_ends_before_what_was_queued_behind_it(machine: Machine) -> None:
    """It has what was there, and the launch has not run."""
    device = open_cuda(0)
    scale, got = Scale(device), np.full(COUNT, np.nan, np.float32)
    scale()
    device.begin_read(address_of(got), scale.y.address, got.nbytes)
    scale()
    device.end_read(address_of(got))
    first = machine.streams[0]
    assert first.asked - first.done == 1
    np.testing.assert_array_equal(got, scale.values * (scale.values + 2) + 1)
    device.wait()
    assert first.asked == first.done


def test_the_copy_waits_for_what_it_copies(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the event it would be another one: the driver that stands in shows it."""
    monkeypatch.setattr(Stream, "wait_for_event", _ignored)
    device = open_cuda(0)
    scale, got = Scale(device), np.full(COUNT, np.nan, np.float32)
    scale()
    device.begin_read(address_of(got), scale.y.address, got.nbytes)
    device.end_read(address_of(got))
    assert not np.array_equal(got, scale.values * (scale.values + 2) + 1)
    assert machine.order == FIRST_LATE


def _ignored(stream: Stream, event: Event) -> None:
    del stream, event


def test_without_memory_that_stays(
    bundle: bytes, expected: dict[str, Array], machine: Machine
) -> None:
    """The copy is made at once."""
    machine.locked_bytes_max = 0
    with ingot_runtime.load(bundle) as session:
        for name, value in session.run({"x": X}).items():
            np.testing.assert_array_equal(value, expected[name])
    assert not machine.locked


def test_memory_that_stays_is_kept_and_bounded(machine: Machine) -> None:
    """Of two sizes in turn there are two pieces; what is more than 64 MiB is copied at once."""
    device = cast("Cuda", open_cuda(0))
    made = put(device, np.arange(1 << 10, dtype=np.float32))
    large = device.allocate((64 << 20) + 64)
    got = np.zeros(1 << 10, np.float32)
    for size in (64, 4096, 64, 4096):
        device.begin_read(address_of(got), made.address, size)
        device.begin_read(address_of(got) + 4, made.address, 32)
        device.end_read(address_of(got) + 4)
        device.end_read(address_of(got))
    assert [each.size for each in machine.locked] == [64, 32, 4096]
    whole = np.ones(large.size_bytes // 4, np.float32)
    device.begin_read(address_of(whole), large.address, large.size_bytes)
    assert not whole.any()
    assert len(machine.locked) == 3


@pytest.mark.parametrize("call", ["event", "pagelocked_empty"])
def test_a_driver_that_fails_is_lost(bundle: bytes, call: str) -> None:
    """That call ends with an error, and so does every later one."""
    with installed() as machine, ingot_runtime.load(bundle) as session:
        machine.fails = call
        with pytest.raises(DeviceError, match="the device is lost"):
            session.run({"x": X})
        machine.fails = ""
        with pytest.raises(DeviceError):
            session.run({"x": X})
