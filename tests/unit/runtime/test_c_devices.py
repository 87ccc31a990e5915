"""Devices beside the host in the loader in C: the bits of the one in Python, its words where one is
missing, and a driver that stands in for NVIDIA's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.c_loader import (
    CBundle,
    LoaderError,
    find_opencl,
    options,
    verdict_of_c,
    verdict_of_python,
)
from tests.hostile.mutations import mutant
from tests.hostile.reseal import Parts
from tests.hostile.test_forged_devices import LIES
from tests.hostile.tiny import KERNEL, WIDTH
from tests.hostile.two_devices import tree_entry, two_device_contents, two_device_reference
from tests.ptx.fake_driver import installed
from tests.unit.backends.test_opencl_models import FOUR, TARGET, chain
from tests.unit.end_to_end.test_models import STATIC, Cases
from tests.unit.runtime.test_c_loader import mutated

import ingot
import ingot_runtime
from ingot_artifacts.bundle.contents import LibrarySpec
from ingot_artifacts.bundle.write import write_bundle
from ingot_compiler.backends.host.zig import run_zig
from ingot_runtime.format import header as head
from ingot_runtime_devices.cuda_library import HEAD as CUDA_HEAD
from ingot_runtime_devices.opencl_library import HEAD as OPENCL_HEAD

X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)
FAKE = Path(__file__).parents[1] / "c_programs" / "fake_cuda.c"
MUTANT_COUNT = 60


def bundle_of(
    folder: Path, code: LibrarySpec | None = None, rows: int | str = 4, **more: int
) -> Path:
    """A bundle by hand whose devices run one kernel of three buffers."""
    path = folder / "two.ingot"
    chosen = {name: bool(more.get(name, 0)) for name in ("grows", "early")}
    contents = two_device_contents(rows, more.get("count", 1), code=code, **chosen)
    write_bundle(contents, path, tree_entry)
    return path


@pytest.mark.parametrize("early", [0, 1])
def test_hooks_hear_of_launches_and_copies(tmp_path: Path, early: int) -> None:
    """Those that the steps of the loader in Python are, before and after; a copy that begins early
    ends when it is waited for."""
    path = bundle_of(tmp_path, count=2, early=early)
    heard: list[tuple[int, ...]] = []

    def hear(_: object, *numbers: int) -> None:
        heard.append(numbers)

    launched = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(hear)
    copied = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
    )(hear)
    chosen = options()
    chosen.profile = ctypes.cast(launched, ctypes.c_void_p)
    chosen.profile_copy = ctypes.cast(copied, ctypes.c_void_p)
    with CBundle(path, chosen) as loaded, ingot_runtime.load(path, executor="vm") as session:
        loaded.run({"x": X})
        session.run({"x": X})
        wanted = [
            (step.launch,) if step.launch >= 0 else (step.device, step.source, step.size_bytes)
            for step in session.steps()
        ]
    begun = [numbers[:-1] for numbers in heard if not numbers[-1]]
    ended = [numbers[:-1] for numbers in heard if numbers[-1]]
    assert any(len(numbers) == 3 for numbers in wanted)
    assert sorted(begun) == sorted(ended) == sorted(wanted)
    if not early:
        assert begun == ended == wanted


@pytest.mark.sweep(5)
@pytest.mark.parametrize("grows", [0, 1])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("rows", [4, "batch"])
def test_devices_of_the_processor(tmp_path: Path, rows: int | str, count: int, grows: int) -> None:
    """Weights, pools, blocks that only `main` asks for, copies from device to device; of one size
    and another."""
    path = bundle_of(tmp_path, None, rows, count=count, grows=grows)
    bound = {"acc": "cpu:3"} | ({"aux": "cpu:3"} if count > 1 else {})
    for chosen in (options(), options(threads=2, devices=bound)):
        with CBundle(path, chosen) as loaded, CBundle(path.read_bytes(), chosen) as other:
            for x in (X, X) if rows == 4 else (X, X[:2], X):
                assert (loaded.run({"x": x})["y"] == two_device_reference(x)).all()
                assert (other.run({"x": x})["y"] == two_device_reference(x)).all()
            assert set(loaded.devices) == {"host", "acc", "aux"} - (
                {"aux"} if count == 1 else set()
            )
            assert loaded.devices["acc"] == ("cpu:3" if chosen.devices[0] else "null:0")


def test_the_host_traps(tmp_path: Path) -> None:
    """Nobody but a device may touch its memory: its pages have no rights when the call is over."""
    with CBundle(bundle_of(tmp_path)) as loaded:
        loaded.run({"x": X})
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    assert any(" ---p " in line for line in lines)


def lies() -> Iterator[bytes]:
    """The devices and libraries of a plan that lies, and mutants, all sealed again."""
    parts = Parts(PLAIN[0])
    for lie in LIES.values():
        made = parts.copy()
        made.change_plan(lie.change)
        yield made.sealed()
    for number in range(MUTANT_COUNT):
        _, changed, _ = mutant(parts, number, 11)
        if changed.may_run:
            yield mutated(parts, changed)
    image = parts.payloads[head.LIBRARY, 0]
    for at in range(0, 80, 4):
        for value in (0, 1, 0x7FFFFFFF):
            made = parts.copy()
            word = value.to_bytes(4, "little")
            made.put(head.LIBRARY, 0, image[:at] + word + image[at + 4 :])
            yield made.sealed()


PLAIN: list[bytes] = []


@pytest.mark.broad
def test_hostile_bundles_get_the_same_verdict(tmp_path: Path) -> None:
    """Same error, words, place and exit code, of plans, libraries and trees that lie."""
    PLAIN.append(bundle_of(tmp_path, count=2).read_bytes())
    kinds: set[str] = set()
    for data in lies():
        verdict = verdict_of_python(data)
        assert verdict_of_c(data) == verdict
        kinds.add(verdict.kind)
    assert kinds >= {"", "FormatError", "DigestError", "VersionError"}


def test_damaged_weights_of_a_device(tmp_path: Path) -> None:
    """Are told with the device, by both digests."""
    data = bytearray(bundle_of(tmp_path).read_bytes())
    data[-100_000] ^= 1
    for mode in ("full", "fast", "code"):
        verdict = verdict_of_python(bytes(data), verify=mode)
        assert verdict_of_c(bytes(data), options(mode)) == verdict
        assert verdict.kind == ("DigestError" if mode != "code" else "")


WRONG = (
    {"acc": "cpu:16"}, {"acc": "null:99"}, {"acc": "opencl"}, {"acc": "cuda:3"}, {"acc": "host"},
    {"host": "cpu"}, {"host": "host:1"}, {"ac": "cpu"}, {"acc": "tpu"}, {"acc": "cpu:x"},
    {"acc": "cpu:"}, {"acc": "cpu:4294967296"}, {"acc": "cpu,target=x86-64-v9"}, {"acc": ""},
    {"acc": "cpu,scope=fast"}, {"acc": "cpu,target=a,target=b"}, {"acc": "cpu,target="},
    {"acc": "cpu,size=3"}, {"acc": "cpu,"}, {"acc": "cpu:1:2"},
)  # fmt: skip


@pytest.mark.parametrize("devices", WRONG, ids=str)
def test_bindings_are_refused_in_the_same_words(tmp_path: Path, devices: dict[str, str]) -> None:
    """What, where, why and the exit code; what to do, where nothing is guessed."""
    path = bundle_of(tmp_path)
    with pytest.raises(ingot_runtime.BundleError) as in_python:
        ingot_runtime.load(path, devices=devices)
    with pytest.raises(LoaderError) as in_c:
        CBundle(path, options(devices=devices))
    wanted, got = in_python.value, in_c.value
    assert (got.verdict.kind, got.verdict.what) == (type(wanted).__name__, wanted.what)
    assert (got.verdict.where, got.why) == (wanted.where, wanted.why)
    assert got.verdict.exit_code == wanted.exit_code
    assert got.todo == wanted.do or "did you mean" in wanted.do


_OPENCL = """
__kernel void tiny_scale(__global uchar *m0, long o0, __global uchar *m1, long o1,
    __global uchar *m2, long o2, long n, __global uchar *scratch, long scratch_at,
    __global int *report, long extent, long share) {
#pragma OPENCL FP_CONTRACT OFF
  for (long i = get_global_id(0) * share; i < extent && i < (get_global_id(0) + 1) * share; ++i) {
    float product = ((__global float *)(m1 + o1))[i] * ((__global float *)(m2 + o2))[i % n];
    ((__global float *)(m0 + o0))[i] = product + 1;
  }
}
"""
_PTX_PARAMETERS = ",".join(f"\n\t.param .u64 tiny_scale_param_{index}" for index in range(8))
_PTX = f".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry tiny_scale({_PTX_PARAMETERS}\n)\n{{\n\tret;\n}}\n"


def opencl_code(row: str = f"{KERNEL} 3 1 0 0", title: str = OPENCL_HEAD) -> LibrarySpec:
    """The kernel in OpenCL C."""
    section = f"{title}\n{row}\n\n{_OPENCL}".encode()
    return LibrarySpec("opencl", "opencl-c-1.2", (), (KERNEL,), section)


def cuda_code(
    row: str = f"{KERNEL} 3 1 0 0 128", module: str = "", text: str = _PTX
) -> LibrarySpec:
    """The kernel as PTX, as far as a driver looks that has the kernel itself."""
    module = module or f"module sm_75 6.3 10000 {len(text)}"
    return LibrarySpec(
        "cuda", "sm_75", (), (KERNEL,), f"{CUDA_HEAD}\n{module}\n{row}\n\n{text}".encode()
    )


TABLES: dict[str, LibrarySpec] = {
    "opencl, no head": opencl_code(title="kernels"),
    "opencl, an extension that is none": opencl_code(title=f"{OPENCL_HEAD} fp64"),
    "opencl, an extension that nobody has": opencl_code(title=f"{OPENCL_HEAD} cl_ingot_none"),
    "opencl, another row": opencl_code(row=f"{KERNEL} 3 1 0 2"),
    "opencl, two rows": opencl_code(row=f"{KERNEL} 3 1 0 0\nother 3 1 0 0"),
    "opencl, no row": opencl_code(row=""),
    "cuda, another row": cuda_code(row=f"{KERNEL} 3 1 0 0"),
    "cuda, threads of a block": cuda_code(row=f"{KERNEL} 3 1 0 0 12"),
    "cuda, too many threads": cuda_code(row=f"{KERNEL} 3 1 0 0 2048"),
    "cuda, other parameters": cuda_code(row=f"{KERNEL} 4 1 0 0 128"),
    "cuda, another kernel": cuda_code(row="other 3 1 0 0 128"),
    "cuda, no module": cuda_code(module=f"{KERNEL} 3 1 0 0 128"),
    "cuda, another architecture": cuda_code(module=f"module sm_80 6.3 10000 {len(_PTX)}"),
    "cuda, more bytes": cuda_code(module=f"module sm_75 6.3 10000 {len(_PTX) + 1}"),
    "cuda, fewer bytes": cuda_code(module=f"module sm_75 6.3 10000 {len(_PTX) - 1}"),
    "cuda, an entry more": cuda_code(text=_PTX + _PTX.partition("64\n")[2].replace("tiny", "more")),
}


@pytest.mark.broad
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.opencl) if name.startswith("opencl") else name
        for name in TABLES
    ],
)
def test_tables_that_lie_get_the_same_verdict(tmp_path: Path, cuda: FakeCuda, name: str) -> None:
    """Before a driver sees any of it."""
    del cuda
    if name.startswith("opencl"):
        find_opencl()
    path = bundle_of(tmp_path, TABLES[name])
    with installed():
        verdict = verdict_of_python(path)
    assert verdict.kind == ("IncompatibleError" if "nobody" in name else "FormatError")
    assert verdict_of_c(path) == verdict


TABLE_MUTANTS = (80, pytest.param(5000, marks=pytest.mark.slow))


@pytest.mark.broad
@pytest.mark.parametrize("count", TABLE_MUTANTS)
def test_mutants_of_a_table(tmp_path: Path, cuda: FakeCuda, count: int) -> None:
    """Letters of a table that are left out, put in or changed: both loaders take it, or refuse it
    in the same words; of the many, undefined behaviour would end the process."""
    parts = Parts(bundle_of(tmp_path, cuda_code()).read_bytes())
    section = parts.payloads[head.LIBRARY, 0]
    end, letters = section.index(b"\n\n") + 2, b"019 _\n\0\xffamx.:"
    kinds: set[str] = set()
    rng = np.random.default_rng(count)
    for number in range(count):
        at, letter, width = rng.integers(end), letters[rng.integers(len(letters))], rng.integers(2)
        put = bytes([letter]) * int(rng.integers(2))
        made = parts.copy()
        made.put(head.LIBRARY, 0, section[:at] + put + section[at + width :])
        data = made.sealed()
        with installed():
            wanted = verdict_of_python(data)
        assert verdict_of_c(data, sanitized=count > 1000) == wanted, number
        kinds.add(wanted.kind)
    assert kinds >= {"", "FormatError"}
    assert cuda.calls()


@pytest.mark.opencl(devices=2)
def test_opencl_by_hand(tmp_path: Path) -> None:
    """From device to device by way of the host; blocks that only `main` asks for."""
    find_opencl()
    for grows in (0, 1):
        path = bundle_of(tmp_path, opencl_code(), count=2, grows=grows)
        with CBundle(path) as loaded:
            for x in (X, X + 3):
                assert (loaded.run({"x": x})["y"] == two_device_reference(x)).all()
            assert loaded.devices == {"host": "host:0", "acc": "opencl:0", "aux": "opencl:1"}


@pytest.mark.opencl
def test_opencl_has_the_bits_of_the_other_loader() -> None:
    """In turns over host, OpenCL and the processor; the architectures are all on the device."""
    find_opencl()
    x = np.random.default_rng(2).standard_normal((3, 12)).astype(np.float32)
    devices = {"acc": "opencl", "aside": "cpu:1"}
    places = ("acc", "aside", "acc", "host")
    place = {f"/{block}/*": device for block, device in zip(FOUR, places, strict=True)}
    data = ingot.compile(chain(), targets=[TARGET], devices=devices, place=place).to_bytes()
    with ingot_runtime.load(data) as session, CBundle(data) as loaded:
        assert loaded.run({"x": x})["y"].tobytes() == session.run({"x": x})["y"].tobytes()
        assert loaded.devices == session.devices


@pytest.mark.broad
@pytest.mark.opencl(devices=2)
def test_the_first_kind_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``opencl|cpu``: the processor where the driver is missing; what the user names is that or an
    error."""
    find_opencl()
    place = {"/second/*": "acc", "/fourth/*": "acc"}
    data = ingot.compile(
        chain(), targets=["x86-64-v3"], devices={"acc": "opencl|cpu:1"}, place=place
    ).to_bytes()
    x = np.random.default_rng(2).standard_normal((3, 12)).astype(np.float32)
    for bound in ("opencl:0", "opencl:1", "cpu:2"):
        given = {"acc": bound}
        with (
            ingot_runtime.load(data, devices=given) as session,
            CBundle(data, options(devices=given)) as loaded,
        ):
            assert loaded.devices["acc"] == bound
            assert loaded.run({"x": x})["y"].tobytes() == session.run({"x": x})["y"].tobytes()
    with CBundle(data) as loaded:
        assert loaded.devices["acc"] == "opencl:0"
    monkeypatch.setenv("INGOT_OPENCL_LIBRARY", str(tmp_path / "none.so"))
    with CBundle(data) as loaded:
        assert loaded.devices["acc"] == "cpu:1"
    refused = verdict_of_c(data, options(devices={"acc": "opencl"}))
    assert refused.what == "device 'acc' needs an OpenCL driver"
    (tmp_path / "none.so").write_bytes(b"text")
    assert verdict_of_c(data, options(devices={"acc": "opencl"})) == refused
    told = verdict_of_c(data, options(devices={"acc": "opencl:77"}))
    assert (told.kind, told.exit_code) == ("IncompatibleError", 5)


@pytest.mark.slow
@pytest.mark.parametrize("model", STATIC)
@pytest.mark.opencl
def test_architectures_on_opencl(model: str) -> None:
    """Each of the 28 on an OpenCL device: the bits of the loader in Python."""
    find_opencl()
    cases = Cases(model, dynamic=False)
    data = ingot.compile(
        cases.path, targets=[TARGET], devices={"acc": "opencl"}, place={"*": "acc"}
    ).to_bytes()
    with ingot_runtime.load(data) as session, CBundle(data) as loaded:
        for feed in cases.feeds:
            wanted, got = session.run(feed), loaded.run(feed)
            for name, array in wanted.items():
                assert (array.shape, array.tobytes()) == (got[name].shape, got[name].tobytes())


@dataclass(frozen=True)
class FakeCuda:
    """A driver that stands in for NVIDIA's; ``say`` sets what it has."""

    calls_path: Path
    monkeypatch: pytest.MonkeyPatch

    def say(self, **values: object) -> None:
        """E.g. ``gpus=1``."""
        for name, value in values.items():
            self.monkeypatch.setenv(f"FAKE_CUDA_{name.upper()}", str(value))

    def calls(self) -> list[str]:
        """What it was asked."""
        return self.calls_path.read_text(encoding="utf-8").split()


@pytest.fixture(scope="module")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuda")
    flags = ("-target", "x86_64-linux-gnu", "-O1", "-fPIC", "-ffp-contract=off")
    safe = ("-fno-sanitize=all", "-Wall", "-Wextra", "-Werror")
    for command in (
        ("cc", *flags, *safe, "-c", str(FAKE), "-o", "fake.o"),
        ("ld.lld", "-shared", "fake.o", "-o", "libfake.so"),
    ):
        done = run_zig(command, str(folder))
        assert done.returncode == 0, done.stderr
    return folder / "libfake.so"


@pytest.fixture
def cuda(fake_driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    monkeypatch.setenv("INGOT_CUDA_LIBRARY", str(fake_driver))
    monkeypatch.setenv("FAKE_CUDA_CALLS", str(tmp_path / "calls"))
    return FakeCuda(tmp_path / "calls", monkeypatch)


def test_cuda_by_hand(tmp_path: Path, cuda: FakeCuda) -> None:
    """Streams that do what they are asked only when somebody waits, two GPUs, open sizes."""
    for count, rows in ((1, 4), (2, 4), (2, "batch")):
        path = bundle_of(tmp_path, cuda_code(), rows, count=count, grows=1)
        with CBundle(path) as loaded:
            for x in (X, X + 3):
                assert (loaded.run({"x": x})["y"] == two_device_reference(x)).all()
            assert loaded.devices["acc"] == "cuda:0"
    asked = cuda.calls()
    given = [asked.count(f"cu{name}") for name in ("CtxPushCurrent_v2", "CtxPopCurrent_v2")]
    assert given[0] == given[1] > 0
    assert asked.count("cuMemAlloc_v2") == asked.count("cuMemFree_v2")
    assert asked.count("cuStreamCreate") == asked.count("cuStreamDestroy_v2") == 10
    assert asked.count("cuModuleLoadData") == asked.count("cuModuleUnload") == 5
    assert asked.count("cuLaunchKernel") == 12


def refused(path: Path, devices: dict[str, str] | None = None) -> LoaderError:
    """What the loader in C says; it has four parts."""
    with pytest.raises(LoaderError) as caught:
        CBundle(path, options(devices=devices))
    error = caught.value
    assert all((error.verdict.what, error.verdict.where, error.why, error.todo))
    return error


def test_cuda_that_is_not_here(tmp_path: Path, cuda: FakeCuda) -> None:
    """No driver, no GPU, an older one, an older driver, a driver that fails: each by name, with exit
    code 5, in the words of the loader in Python where it knows the case."""
    path = bundle_of(tmp_path, cuda_code())
    cases: list[tuple[Callable[[], None], str, str]] = [
        (lambda: cuda.say(architecture=70), "cannot run its library here", "it is code for sm_75; Fake GPU 0 has sm_70"),
        (lambda: cuda.say(architecture=75, version=9000), "is too old for the library", "PTX 6.3 needs a driver for CUDA 10.0, this one is for 9.0"),
        (lambda: cuda.say(version=12080, fails="cuModuleLoadData"), "does not compile the library", "cuModuleLoadData: CUDA_ERROR_UNKNOWN (999)"),
        (lambda: cuda.say(fails="cuInit"), "needs a CUDA driver", "cuInit: CUDA_ERROR_UNKNOWN (999)"),
        (lambda: cuda.say(fails="cuDevicePrimaryCtxRetain"), "cannot be opened", "CUDA_ERROR_UNKNOWN"),
        (lambda: cuda.say(fails="cuStreamCreate"), "cannot be opened", "CUDA_ERROR_UNKNOWN"),
        (lambda: cuda.say(fails="none", gpus=0), "no device cuda:0 here", "there are: none"),
        (lambda: cuda.monkeypatch.setenv("INGOT_CUDA_LIBRARY", "/none/libcuda.so"), "needs a CUDA driver", "/none/libcuda.so"),
    ]  # fmt: skip
    for change, what, why in cases:
        change()
        error = refused(path)
        assert (error.verdict.kind, error.verdict.exit_code) == ("IncompatibleError", 5)
        assert what in error.verdict.what
        assert why in error.why
        assert error.verdict.where.endswith("section library 0")


def test_cuda_runs_out_of_memory(tmp_path: Path, cuda: FakeCuda) -> None:
    """A load says what was asked and what there is; a call, too, and the session goes on."""
    path = bundle_of(tmp_path, cuda_code(), "batch")
    cuda.say(memory=100_000)
    error = refused(path)
    assert error.verdict.kind == "ResourceError"
    assert error.verdict.what == "not enough memory on device cuda:0"
    assert "of 100000 bytes are free" in error.why
    cuda.say(memory=2 << 20)
    with CBundle(path) as loaded:
        with pytest.raises(LoaderError, match="not enough memory on device cuda:0"):
            loaded.run({"x": np.zeros((1 << 16, WIDTH), np.float32)})
        assert (loaded.run({"x": X})["y"] == two_device_reference(X)).all()


@pytest.mark.parametrize("call", ["cuLaunchKernel", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"])
def test_cuda_that_fails_is_lost(tmp_path: Path, cuda: FakeCuda, call: str) -> None:
    """The call ends with a ``DeviceError``, and so does every later one."""
    with CBundle(bundle_of(tmp_path, cuda_code())) as loaded:
        assert (loaded.run({"x": X})["y"] == two_device_reference(X)).all()
        cuda.say(fails=call)
        for _ in range(2):
            with pytest.raises(LoaderError, match="a device does not answer") as caught:
                loaded.run({"x": X})
            cuda.say(fails="none")
            assert caught.value.verdict.kind == "DeviceError"
            assert caught.value.verdict.exit_code == 2
            assert "the device is lost: " in caught.value.why


def test_sessions_share_devices(tmp_path: Path, cuda: FakeCuda) -> None:
    """Two sessions of a bundle: one device, one copy of its weights, memory of their own."""
    with CBundle(bundle_of(tmp_path, cuda_code())) as loaded:
        before = cuda.calls().count("cuModuleLoadData")
        with loaded.another() as other:
            for x in (X, X - 2):
                assert (other.run({"x": x})["y"] == two_device_reference(x)).all()
                assert (loaded.run({"x": X})["y"] == two_device_reference(X)).all()
        assert cuda.calls().count("cuModuleLoadData") == before


def test_a_cancelled_call(tmp_path: Path, cuda: FakeCuda) -> None:
    """Ends before the next launch, and the session goes on."""
    hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    launches: list[int] = []
    with CBundle(bundle_of(tmp_path, cuda_code())) as plain:
        plain.run({"x": X})
        per_call = cuda.calls().count("cuLaunchKernel")

    def cancel(_: object, launch: int, is_end: int) -> None:
        launches.append(launch)
        if is_end and len(launches) == 2:
            loaded.cancel()

    native = hook(cancel)
    chosen = options()
    chosen.profile = ctypes.cast(native, ctypes.c_void_p)
    with CBundle(bundle_of(tmp_path, cuda_code()), chosen) as loaded:
        with pytest.raises(LoaderError, match="the call was cancelled"):
            loaded.run({"x": X})
        assert (loaded.run({"x": X})["y"] == two_device_reference(X)).all()
    assert per_call == 2
