"""What every kind of device must do (``ingot_runtime_devices/device.py``), held to it by one suite.
A new kind is a line in ``OPEN_KINDS``."""

import ctypes
import gc
import itertools
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest
from tests.hostile.tiny import KERNEL, KERNEL_IR
from tests.hostile.two_devices import library
from tests.ptx.fake_driver import installed

import ingot_runtime
from ingot_runtime.format import abi
from ingot_runtime.format.limits import SIZE_BYTES_MAX
from ingot_runtime.format.plan import LibraryPlan
from ingot_runtime.loader.cpu import machine_features
from ingot_runtime_devices.cuda_library import HEAD as CUDA_HEAD
from ingot_runtime_devices.device import ALIGNMENT_BYTES, Device
from ingot_runtime_devices.opencl_library import HEAD
from ingot_runtime_devices.registry import OPEN

if TYPE_CHECKING:
    from ingot_runtime_devices.device import Allocation

COUNT = 64
_CODE = """
define hidden i32 @{name}(ptr %buffers, ptr %scalars, i64 %first, i64 %last, ptr %scratch) nounwind "no-builtins" {{
  ret i32 {code}
}}
"""
KERNELS = {
    KERNEL: KERNEL_IR,
    "refuses": _CODE.format(name="refuses", code=258),
    "fails": _CODE.format(name="fails", code=5),
}
SCALE, REFUSES, FAILS = range(3)


def open_with_host_code(kind: str, id_: int) -> Device:
    """Open a device that runs the host's code, with the kernels above."""
    made = library(tuple(KERNELS.values()), tuple(KERNELS))
    plan = LibraryPlan(kind, made.target, made.features, len(made.kernels))
    return OPEN[kind]("acc", id_, plan, made.image, "section library 0", machine_features())


_OPENCL = """
__kernel void {name}(__global uchar *m0, long o0, __global uchar *m1, long o1, __global uchar *m2,
    long o2, long n, __global uchar *scratch, long scratch_at, __global int *report, long extent,
    long share) {{
  for (long i = get_global_id(0) * share; i < extent && i < (get_global_id(0) + 1) * share; ++i) {{
    __global float *y = (__global float *)(m0 + o0);
    {statement};
  }}
}}
"""
_STATEMENTS = {
    KERNEL: "y[i] = ((__global float *)(m1 + o1))[i] * ((__global float *)(m2 + o2))[i] + 1",
    "refuses": "*report = 258",
    "fails": "*report = 5",
}


def opencl_library() -> bytes:
    """The same kernels in OpenCL C."""
    rows = "".join(f"\n{name} 3 1 {int(name != KERNEL)} 0" for name in _STATEMENTS)
    texts = (_OPENCL.format(name=name, statement=text) for name, text in _STATEMENTS.items())
    return f"{HEAD}{rows}\n\n{''.join(texts)}".encode()


def open_opencl(id_: int) -> Device:
    """Open an OpenCL device with them."""
    plan = LibraryPlan("opencl", "opencl-c-1.2", (), len(_STATEMENTS))
    return OPEN["opencl"]("acc", id_, plan, opencl_library(), "section library 0", frozenset())


_PTX = """
.visible .entry {name}(
	.param .u64 {name}_param_0,
	.param .u64 {name}_param_1,
	.param .u64 {name}_param_2,
	.param .u64 {name}_param_3,
	.param .u64 {name}_param_4,
	.param .u64 {name}_param_5,
	.param .u64 {name}_param_6,
	.param .u64 {name}_param_7
)
{{
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<16>;
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	shl.b32 %r2, %r2, 4;
	shr.u32 %r1, %r1, 3;
	add.s32 %r1, %r1, %r2;
	cvt.u64.u32 %rd1, %r1;
	ld.param.b64 %rd2, [{name}_param_6];
	setp.ge.s64 %p1, %rd1, %rd2;
	@%p1 bra END;
{statements}
END:
	ret;
}}
"""
_PTX_SCALE = """	shl.b64 %rd3, %rd1, 2;
	ld.param.b64 %rd4, [{name}_param_0];
	ld.param.b64 %rd5, [{name}_param_1];
	ld.param.b64 %rd6, [{name}_param_2];
	add.s64 %rd4, %rd4, %rd3;
	add.s64 %rd5, %rd5, %rd3;
	add.s64 %rd6, %rd6, %rd3;
	ld.global.b32 %r3, [%rd5];
	ld.global.b32 %r4, [%rd6];
	fma.rn.f32 %r3, %r3, %r4, 0f3F800000;
	st.global.b32 [%rd4], %r3;"""
_PTX_CODE = """	ld.param.b64 %rd3, [{name}_param_5];
	st.global.b32 [%rd3], {code};"""
_PTX_STATEMENTS = {
    KERNEL: _PTX_SCALE.format(name=KERNEL),
    "refuses": _PTX_CODE.format(name="refuses", code=258),
    "fails": _PTX_CODE.format(name="fails", code=5),
}


def cuda_library() -> bytes:
    """The same kernels as PTX, one unit in each eight threads."""
    texts = (_PTX.format(name=name, statements=text) for name, text in _PTX_STATEMENTS.items())
    module = ".version 6.3\n.target sm_75\n.address_size 64" + "".join(texts)
    rows = "".join(f"\n{name} 3 1 {int(name != KERNEL)} 0 128" for name in _PTX_STATEMENTS)
    return f"{CUDA_HEAD}\nmodule sm_75 6.3 10000 {len(module)}{rows}\n\n{module}".encode()


def open_cuda(id_: int) -> Device:
    """Open a GPU of the driver that stands in for CUDA's, with them; there are two."""
    plan = LibraryPlan("cuda", "sm_75", (), len(_PTX_STATEMENTS))
    return OPEN["cuda"]("acc", id_, plan, cuda_library(), "section library 0", frozenset())


OPEN_KINDS: dict[str, Callable[[int], Device]] = {
    "null": partial(open_with_host_code, "null"),
    "cpu": partial(open_with_host_code, "cpu"),
    "opencl": open_opencl,
    "cuda": open_cuda,
}


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.opencl) if name == "opencl" else name
        for name in OPEN_KINDS
    ]
)
def kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return each kind in turn; a driver stands in for CUDA's."""
    name: str = request.param
    with installed():
        yield name


@pytest.fixture
def device(kind: str) -> Device:
    """Open device 0 of a kind."""
    return OPEN_KINDS[kind](0)


def address_of(array: npt.NDArray[np.float32]) -> int:
    return int(array.ctypes.data)


def put(device: Device, values: npt.NDArray[np.float32]) -> "Allocation":
    """Return an allocation that holds `values`."""
    made = device.allocate(values.nbytes)
    device.write(made.address, address_of(values), values.nbytes)
    return made


def got(device: Device, address: int, count: int = COUNT) -> npt.NDArray[np.float32]:
    """Read floats from the device."""
    values = np.full(count, np.nan, np.float32)
    device.read(address_of(values), address, values.nbytes)
    return values


@dataclass
class Scale:
    """y = x * w + 1 on a device: its allocations, and the launch."""

    device: Device

    def __post_init__(self) -> None:
        self.values = np.arange(COUNT, dtype=np.float32)
        self.x = put(self.device, self.values)
        self.w = put(self.device, self.values + 2)
        self.y = self.device.allocate(4 * COUNT)
        self.scratch = self.device.allocate(64)

    def __call__(
        self,
        y: int | None = None,
        kernel: int = SCALE,
        extent: int = COUNT,
        scratch: int | None = None,
    ) -> int:
        """Launch."""
        target = self.y.address if y is None else y
        last = self.scratch.address if scratch is None else scratch
        return self.device.launch(
            kernel, [target, self.x.address, self.w.address, last], [COUNT], extent, 1, 0
        )


def test_every_kind_is_tested() -> None:
    """The kinds that the loader can open are those of this suite."""
    assert set(OPEN) == set(OPEN_KINDS)


def test_allocations_are_zero_aligned_and_apart(device: Device) -> None:
    """Each is a multiple of 64, holds zeros, and shares no byte with another; none is null, even of
    no bytes."""
    made = [device.allocate(size) for size in (0, 1, 100, 4096, 1 << 20)]
    spans = sorted((each.address, each.address + each.size_bytes) for each in made)
    assert all(each.address and each.address % ALIGNMENT_BYTES == 0 for each in made)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert not got(device, made[-1].address, 1 << 18).any()


def test_what_is_written_is_read(device: Device) -> None:
    """At any offset; the bytes around it stay; nothing is copied for a size of 0."""
    made = device.allocate(4 * COUNT)
    device.write(made.address + 12, address_of(np.full(5, 7, np.float32)), 20)
    assert got(device, made.address).tolist() == [0] * 3 + [7] * 5 + [0] * (COUNT - 8)
    device.write(made.address, 0, 0)
    device.read(0, made.address + 4 * COUNT, 0)


@pytest.mark.parametrize("count", [COUNT, 1 << 18])
def test_a_read_that_begins_early(device: Device, count: int) -> None:
    """It gets what was there when it began, while the device launches and reads other things; it is
    there when it ends, or when the device is waited for."""
    scale, made = Scale(device), put(device, np.arange(count, dtype=np.float32))
    first, second = (np.full(count, np.nan, np.float32) for _ in range(2))
    scale()
    device.begin_read(address_of(first), made.address, first.nbytes)
    device.begin_read(address_of(second), made.address, second.nbytes)
    assert scale() == 0
    assert got(device, scale.y.address)[1] == 4
    device.end_read(address_of(first))
    assert np.array_equal(first, np.arange(count))
    device.end_read(address_of(first))
    device.wait()
    assert np.array_equal(second, first)
    device.end_read(address_of(second))


def test_a_read_that_begins_behind_a_launch(device: Device) -> None:
    """It gets what the launches before it compute."""
    scale, values = Scale(device), np.full(COUNT, np.nan, np.float32)
    scale()
    device.begin_read(address_of(values), scale.y.address, values.nbytes)
    device.end_read(address_of(values))
    assert np.array_equal(values, scale.values * (scale.values + 2) + 1)


@pytest.mark.parametrize("count", [COUNT, 1 << 18])
def test_a_write_that_begins_early(device: Device, count: int) -> None:
    """It is there when it ends, or when the device is waited for, whatever the device launches
    meanwhile; the bytes around it stay."""
    scale, values = Scale(device), np.arange(count, dtype=np.float32)
    first, second = (put(device, np.zeros(count + 1, np.float32)) for _ in range(2))
    scale()
    device.begin_write(first.address + 4, address_of(values), values.nbytes)
    device.begin_write(second.address, address_of(values), values.nbytes)
    assert scale() == 0
    device.end_write(first.address + 4)
    device.end_write(first.address + 4)
    assert np.array_equal(got(device, first.address, count + 1), np.append(np.float32(0), values))
    device.wait()
    assert np.array_equal(got(device, second.address, count + 1), np.append(values, np.float32(0)))
    device.end_write(second.address)


def test_a_write_that_begins_behind_a_launch(device: Device) -> None:
    """The launches before it read what was there before."""
    scale, values = Scale(device), np.full(COUNT, 7, np.float32)
    scale()
    device.begin_write(scale.x.address, address_of(values), values.nbytes)
    device.end_write(scale.x.address)
    assert np.array_equal(got(device, scale.y.address), scale.values * (scale.values + 2) + 1)


def test_a_write_that_begins_behind_an_allocation(device: Device) -> None:
    """Its zeros are there before what is written."""
    values = np.arange(1 << 20, dtype=np.float32)
    made = [device.allocate(values.nbytes) for _ in range(8)]
    for each in reversed(made):
        device.begin_write(each.address, address_of(values), values.nbytes)
    for each in made:
        device.end_write(each.address)
        assert np.array_equal(got(device, each.address, values.size), values)


def test_writes_that_cannot_begin(device: Device) -> None:
    """As reads that cannot."""
    made, values = put(device, np.ones(1 << 18, np.float32)), np.zeros(1 << 18, np.float32)
    with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
        device.begin_write(made.address + 4, address_of(values), made.size_bytes)
    device.begin_write(made.address, 0, 0)
    device.begin_write(made.address, address_of(values), values.nbytes)
    device.close()
    with pytest.raises(ingot_runtime.DeviceError, match="closed"):
        device.begin_write(made.address, address_of(values), values.nbytes)
    with pytest.raises(ingot_runtime.DeviceError, match="closed"):
        device.end_write(made.address)


def test_reads_that_cannot_begin(device: Device) -> None:
    """What leaves an allocation is refused at once; a device that was closed refuses both halves,
    and what had begun is there."""
    made, values = put(device, np.ones(1 << 18, np.float32)), np.zeros(1 << 18, np.float32)
    with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
        device.begin_read(address_of(values), made.address + 4, made.size_bytes)
    device.begin_read(0, made.address, 0)
    device.begin_read(address_of(values), made.address, values.nbytes)
    device.close()
    assert values.all()
    with pytest.raises(ingot_runtime.DeviceError, match="closed"):
        device.begin_read(address_of(values), made.address, values.nbytes)
    with pytest.raises(ingot_runtime.DeviceError, match="closed"):
        device.end_read(address_of(values))


def test_move_may_overlap(device: Device) -> None:
    """Within the device bytes are copied as by memmove."""
    made = put(device, np.arange(COUNT, dtype=np.float32))
    device.move(made.address + 4, made.address, 4 * (COUNT - 1))
    assert got(device, made.address).tolist() == [0, *range(COUNT - 1)]


def test_launch_computes_in_order(device: Device) -> None:
    """A launch sees what was written and launched before it, a read what was launched before it."""
    scale = Scale(device)
    expected = scale.values * (scale.values + 2) + 1
    assert scale() == 0
    device.move(scale.x.address, scale.y.address, 4 * COUNT)
    assert scale() == 0
    device.wait()
    assert np.array_equal(got(device, scale.y.address), expected * (scale.values + 2) + 1)
    assert scale(extent=0) == 0


def test_codes_of_kernels(device: Device) -> None:
    """The code of a requirement is returned, any other is an error; the device goes on."""
    scale = Scale(device)
    assert scale(kernel=REFUSES) == 258
    with pytest.raises(ingot_runtime.DeviceError, match="returns 5"):
        scale(kernel=FAILS)
    assert scale() == 0


@pytest.mark.parametrize("number", [-1, len(KERNELS), 1 << 30])
def test_kernel_that_is_not_there(device: Device, number: int) -> None:
    """A kernel beyond the library is refused."""
    with pytest.raises(ingot_runtime.DeviceError, match="kernel"):
        Scale(device)(kernel=number)


def test_bounds(device: Device) -> None:
    """No operation leaves an allocation, by its address or by its size; host addresses and 0 are
    not the device's."""
    made, host = device.allocate(4 * COUNT), np.zeros(COUNT * 4096, np.float32)
    room = made.size_bytes
    places = [(made.address, room + 1), (made.address + room, 1), (made.address - 1, 1), (0, 1), (made.address, -1),
              (address_of(host), 4), (made.address + (1 << 62), 1)]  # fmt: skip
    here = address_of(host)
    for address, size_bytes in places:
        with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
            device.write(address, here, size_bytes)
        with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
            device.read(here, address, size_bytes)
        with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
            device.move(address, made.address, size_bytes)
        with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
            device.move(made.address, address, size_bytes)
    assert not host.any()


def test_launch_addresses(device: Device) -> None:
    """Every buffer of a launch lies in the device's memory; scratch is aligned; the extent is not
    negative."""
    scale, host = Scale(device), np.zeros(COUNT, np.float32)
    for address in (0, address_of(host), scale.y.address - 1, scale.y.address + (1 << 62)):
        with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
            scale(y=address)
    with pytest.raises(ingot_runtime.DeviceError, match="extent"):
        scale(extent=-1)
    with pytest.raises(ingot_runtime.DeviceError, match="scratch"):
        device.launch(SCALE, [], [], 1, 1, 0)
    assert not got(device, scale.y.address).any()


def test_a_buffer_of_no_bytes_at_the_end(device: Device) -> None:
    """A launch may be given the end of an allocation, where a value without elements lies; no
    further."""
    scale = Scale(device)
    end = scale.y.address + scale.y.size_bytes
    assert scale(y=end, kernel=REFUSES) == 258  # it touches no buffer
    with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
        scale(y=end + ALIGNMENT_BYTES, kernel=REFUSES)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("offset", [1, 4, 32, 63])
@pytest.mark.parametrize("place", ["y", "x", "w", "scratch"])
def test_alignment(device: Device, place: str, offset: int) -> None:
    """Buffers of a launch and its scratch lie at multiples of 64 (FORMAT.md, "Image"), whatever the
    kernel would accept; copies lie anywhere."""
    scale = Scale(device)
    roomy = device.allocate(4 * COUNT + 64)
    buffers = {
        "y": scale.y.address,
        "x": scale.x.address,
        "w": scale.w.address,
        "scratch": scale.scratch.address,
    }
    buffers[place] = roomy.address + offset
    with pytest.raises(ingot_runtime.DeviceError, match="multiples of 64"):
        device.launch(SCALE, list(buffers.values()), [COUNT], COUNT, 1, 0)
    assert not got(device, scale.y.address).any()
    buffers[place] = roomy.address + 64
    assert device.launch(SCALE, list(buffers.values()), [COUNT], COUNT, 1, 0) == 0
    device.write(roomy.address + offset, address_of(scale.values), scale.values.nbytes)
    assert np.array_equal(got(device, roomy.address + offset), scale.values)


def test_out_of_memory(device: Device) -> None:
    """More than the device has is an error of resources, and the device goes on."""
    for size_bytes in (SIZE_BYTES_MAX, 1 << 62, -1):
        with pytest.raises(ingot_runtime.ResourceError, match="not enough memory on device"):
            device.allocate(size_bytes)
    assert Scale(device)() == 0


def test_use_after_free(device: Device) -> None:
    """What was freed, or what nobody holds any more, is not the device's memory."""
    scale = Scale(device)
    device.free(scale.x)
    with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
        scale()
    with pytest.raises(ingot_runtime.DeviceError):
        device.free(scale.x)
    address = scale.y.address
    del scale.y
    gc.collect()
    with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
        got(device, address)


def test_instances_are_apart(kind: str) -> None:
    """Two devices of a kind have memory apart: one's address is not the other's. Of OpenCL, some
    drivers have a single one: opened twice."""
    ids = (0, 0) if kind == "opencl" else (0, 1)
    devices = [OPEN_KINDS[kind](id_) for id_ in ids]
    assert [device.name for device in devices] == [f"{kind}:{id_}" for id_ in ids]
    made = put(devices[0], np.ones(COUNT, np.float32))
    with pytest.raises(ingot_runtime.DeviceError, match="not in its memory"):
        got(devices[1], made.address)
    devices[1].close()
    assert got(devices[0], made.address).all()


@pytest.mark.parametrize(("end", "why"), [("close", "closed"), ("lose", "lost: no power")])
def test_lost_device(device: Device, end: str, why: str) -> None:
    """A device that is closed or lost refuses everything, and may be closed again."""
    scale = Scale(device)
    if end == "close":
        device.close()
    else:
        device.lose("no power")
    calls: list[Callable[[], object]] = [
        scale, device.wait, lambda: device.allocate(1), lambda: got(device, scale.x.address),
        lambda: device.write(scale.x.address, address_of(scale.values), 4), lambda: device.free(scale.x),
        lambda: device.move(scale.x.address, scale.y.address, 4),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ingot_runtime.DeviceError, match=why):
            call()
    device.close()


def test_cancelled_launch(device: Device) -> None:
    """A launch looks at the watch that it is given."""
    scale = Scale(device)
    watch = ctypes.create_string_buffer(abi.WATCH.size_bytes)
    ctypes.c_uint32.from_buffer(watch, abi.WATCH.offsets["cancel"]).value = 1
    buffers = [each.address for each in (scale.y, scale.x, scale.w, scale.scratch)]
    assert (
        device.launch(SCALE, buffers, [COUNT], COUNT, 1, ctypes.addressof(watch))
        == abi.RC_CANCELLED
    )
    assert not got(device, scale.y.address).any()


_TOUCH = """
import ctypes, sys
from tests.conformance.test_devices import OPEN_KINDS, Scale
from tests.ptx.fake_driver import installed
machine = installed()
machine.__enter__()
device = OPEN_KINDS[sys.argv[1]](0)
scale = Scale(device)
assert scale() == 0
device.read(ctypes.addressof(ctypes.create_string_buffer(4)), scale.y.address, 4)
print("ready", flush=True)
{access}
print("alive", flush=True)
"""


@pytest.mark.broad
@pytest.mark.parametrize(
    "access",
    ["ctypes.string_at(scale.y.address, 4)", "ctypes.memset(scale.x.address, 1, 4)"],
    ids=["read", "write"],
)
def test_the_host_traps(kind: str, access: str) -> None:
    """An access by host code ends the process by a signal, also after the device has used the
    memory."""
    done = subprocess.run(
        [sys.executable, "-c", _TOUCH.format(access=access), kind],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("ready\n", -signal.SIGSEGV), done.stderr
