"""Whole models on a GPU that a program of Python stands for: the results of the host alone within
rounding; ``ptxas`` accepts every kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.harness import cuda_harness
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import assert_close
from tests.ptx.fake_driver import Machine, installed
from tests.ptx.streams import AT_ONCE, FIRST_LATE, LATE
from tests.unit.backends.test_cuda_kernels import ORDERS
from tests.unit.backends.test_opencl_models import FOUR, chain, check_architecture
from tests.unit.end_to_end.test_end_to_end_devices import BLOCKS, X, network
from tests.unit.end_to_end.test_models import RELATIVE_ERROR_MAX, STATIC, Cases

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.format import header as head
from ingot_runtime.format.plan import decode_plan

TARGET = "x86-64-v3"
_ERROR_MAX = 1e-5
_QUICK = ("bert",)
_ALONE = ["host"] * len(FOUR)
_FEED = np.random.default_rng(2).standard_normal((3, 12)).astype(np.float32)


@pytest.fixture(autouse=True)
def machine() -> Iterator[Machine]:
    """Two GPUs."""
    with installed() as made:
        yield made


def on_gpu(model: str, path: Path, target: str = "sm_75") -> Cases:
    """Compile an architecture with every node on a GPU."""
    cases, device = Cases(model, dynamic=False), f"cuda,target={target}"
    made = ingot.compile(cases.path, targets=[TARGET], devices={"acc": device}, place={"*": "acc"})
    made.save(path)
    return cases


@pytest.mark.broad
@pytest.mark.parametrize(
    "model",
    [model if model in _QUICK else pytest.param(model, marks=pytest.mark.slow) for model in STATIC],
)
def test_architecture_is_right(model: str, tmp_path: Path) -> None:
    """Every node on the device gives PyTorch's outputs; none is refused."""
    cases = on_gpu(model, tmp_path / "m.ingot")
    check_architecture(tmp_path / "m.ingot", cases)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", ORDERS)
@pytest.mark.parametrize("model", ["bert", "mamba"])
def test_no_thread_counts_on_another_without_waiting(
    model: str, lanes: tuple[int, ...], tmp_path: Path
) -> None:
    """The same outputs where the threads of a group run one after the other until they wait."""
    cases = on_gpu(model, tmp_path / "m.ingot")
    with (
        installed(Machine(lanes=lanes)),
        ingot_runtime.load(tmp_path / "m.ingot") as session,
    ):
        result = session.run(cases.feeds[0])
        for name, array in cases.expected[0].items():
            assert_close(array, result[name], RELATIVE_ERROR_MAX)


@pytest.mark.ptxas
@pytest.mark.parametrize("model", STATIC)
def test_ptxas_accepts_every_kernel(model: str, tmp_path: Path) -> None:
    """Of an architecture, for the oldest and the latest GPU."""
    on_gpu(model, tmp_path / "m.ingot", "sm_75+sm_90")
    with opened(str(tmp_path / "m.ingot"), None) as source:
        plan = decode_plan(source.section(head.PLAN))
        section = bytes(source.section(head.LIBRARY, 0))
    cuda_harness.assemble(section, plan.libraries[0].kernel_count, tmp_path)


def placed(places: Sequence[str], devices: dict[str, str]) -> bytes:
    """The four blocks, each on a device."""
    place = {f"/{block}/*": device for block, device in zip(FOUR, places, strict=True)}
    return ingot.compile(chain(), targets=[TARGET], devices=devices, place=place).to_bytes()


@pytest.fixture(scope="module")
def expected() -> Array:
    """What the host alone gives."""
    result: Array = ingot_runtime.load(placed(_ALONE, {})).run({"x": _FEED})["y"]
    return result


@pytest.mark.sweep(4)
@pytest.mark.parametrize("order", [AT_ONCE, LATE, FIRST_LATE])
def test_some_placements(expected: Array, order: str) -> None:
    """In turns over the host, a GPU and another one; copies go by way of the host. When a driver
    does what it is asked makes no difference."""
    bundle = placed(["acc", "host", "other", "acc"], {"acc": "cuda", "other": "cuda:1"})
    with installed(Machine(order=order)), ingot_runtime.load(bundle) as session:
        assert_close(expected, session.run({"x": _FEED})["y"], _ERROR_MAX)
        counts = session.device_counts()
    assert counts.launches["acc"] >= 2
    assert counts.launches["other"] > 0
    assert counts.copies["other", "acc"][0] == 1


@pytest.mark.slow
def test_every_placement_of_six_blocks() -> None:
    """2^6 of them, over the host and a GPU."""
    alone = _of_network(("host",) * 6)
    for places in itertools.product(("host", "acc"), repeat=6):
        assert_close(alone, _of_network(places), _ERROR_MAX)


def _of_network(places: Sequence[str]) -> Array:
    place = {f"/{block}/*": device for block, device in zip(BLOCKS, places, strict=True)}
    made = ingot.compile(network(), targets=[TARGET], devices={"acc": "cuda"}, place=place)
    with ingot_runtime.load(made.to_bytes()) as session:
        result: Array = session.run({"x": X})["y"]
        return result


@pytest.mark.opencl
def test_a_device_of_several_kinds(expected: Array, machine: Machine) -> None:
    """One file that takes a GPU, an OpenCL device or the processor, whichever is there."""
    bundle = placed(["acc", "host", "acc", "acc"], {"acc": "cuda|opencl|cpu:1"})
    for bound in ("cuda:0", "opencl:0", "cpu:2"):
        with ingot_runtime.load(bundle, devices={"acc": bound}) as session:
            assert session.devices["acc"] == bound
            assert_close(expected, session.run({"x": _FEED})["y"], _ERROR_MAX)
    assert ingot_runtime.load(bundle).devices["acc"] == "cuda:0"
    machine.gpus = ()
    assert ingot_runtime.load(bundle).devices["acc"] == "opencl:0"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bert", "whisper"])
@pytest.mark.opencl
def test_attention_of_several_kinds(model: str, tmp_path: Path) -> None:
    """Scratch is cut for each kind: attention is right on all of them."""
    cases = Cases(model, dynamic=False)
    devices = {"acc": "opencl|cuda|cpu:1"}
    made = ingot.compile(cases.path, targets=[TARGET], devices=devices, place={"*": "acc"})
    made.save(tmp_path / "m.ingot")
    for bound in ("opencl:0", "cuda:0", "cpu:1"):
        with ingot_runtime.load(tmp_path / "m.ingot", devices={"acc": bound}) as session:
            result = session.run(cases.feeds[0])
            for name, array in cases.expected[0].items():
                assert_close(array, result[name], RELATIVE_ERROR_MAX)


@pytest.mark.broad
def test_the_commands_work_on_such_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """verify, inspect with the PTX of a kernel, diff, report."""
    paths = [str(tmp_path / name) for name in ("m.ingot", "n.ingot")]
    Path(paths[0]).write_bytes(placed(["host", "acc", "host", "host"], {"acc": "cuda"}))
    Path(paths[1]).write_bytes(placed(["host", "acc", "acc", "host"], {"acc": "cuda"}))
    assert main(["verify", paths[0]]) == 0
    assert main(["inspect", paths[0]]) == 0
    told = capsys.readouterr().out
    assert "cuda" in told
    with opened(paths[0], None) as source:
        row = bytes(source.section(head.LIBRARY, 0)).split(b"\n")[2].decode()
    assert main(["inspect", paths[0], "--asm", row.split()[0]]) == 0
    assert ".visible .entry" in capsys.readouterr().out
    assert main(["diff", *paths]) in (0, 1)
    assert main(["report", paths[0], "-o", str(tmp_path / "r.html")]) == 0
    assert capsys.readouterr().err == ""
