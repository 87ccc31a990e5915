"""Products and convolutions whose units bring their operands into shared memory together: right at
all edges, bit by bit what each unit gives alone, with less to read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness import cuda_harness
from tests.harness.codegen_harness import Array, run_program
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import assert_close, normal
from tests.harness.opencl_harness import DevicePrograms
from tests.harness.team_harness import UNITS, Case, alone_program, on_gpu, run_on, team_program
from tests.ptx.fake_driver import Machine, installed
from tests.ptx.traffic import Traffic
from tests.unit.backends.test_cuda_kernels import ORDERS
from tests.unit.kernels.test_contraction import assert_near

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import opened
from ingot_compiler.backends.cuda.architectures import ARCHITECTURES
from ingot_compiler.backends.cuda.backend import BACKEND
from ingot_compiler.ir.dims import symbol
from ingot_compiler.kernels.machines import TEAM_MACHINE, VECTOR_MACHINE
from ingot_compiler.kernels.team_tiles import choose_team_tile
from ingot_compiler.lowering.loops.loop_parts import RegisterTile
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.verify_loops import find_loop_problems
from ingot_compiler.targets.target import parse_target
from ingot_runtime.format import header as head

CASES = (
    Case(130, 70, 37),
    Case(33, 17, 5, RegisterTile(2, 2)),
    Case(70, 40, 16, RegisterTile(4, 4)),
    Case(64, 32, 48, RegisterTile(4, 4), is_packed=False),
    Case(130, 70, 37, is_packed=False),
    Case(32, 16, 1, RegisterTile(2, 2), is_packed=False),
    Case(9, 17, 33, RegisterTile(1, 2)),
    Case(50, 20, 19, RegisterTile(2, 4), open_rows=True),
    Case(50, 20, 35, RegisterTile(2, 4), is_packed=False, open_rows=True, open_depth=True),
    Case(50, 20, 35, RegisterTile(4, 2), is_heavy=True),
    Case(40, 24, 20, RegisterTile(2, 2), depth_pitch=3),
    Case(40, 24, 20, RegisterTile(2, 2), depth_pitch=2, open_pitch=True),
    Case(40, 24, 20, RegisterTile(2, 2), is_packed=False, b_dtype="f16"),
    Case(40, 24, 20, RegisterTile(2, 2), is_packed=False, b_dtype="i8"),
)
_BARRIER = "bar.sync \t0;"


def expect(case: Case, got: Array) -> None:
    """The product, within the bound of a chain of multiply-adds."""
    a, b = case.operands()
    if case.is_heavy:
        *_, bias, residual = case.arrays()
        exact = np.tanh(a.astype(float) @ b + bias) + residual
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-4)
    else:
        assert_near(got, a, b.astype(np.float32), "f32")


@pytest.mark.broad
@pytest.mark.parametrize("case", CASES, ids=str)
def test_products_are_those_of_units_alone(case: Case) -> None:
    """Rows, columns and depth that no tile divides, open sizes: the product, and every bit of what
    the units give that read their operands themselves."""
    got, alone = (on_gpu(program(case), case) for program in (team_program, alone_program))
    expect(case, got)
    np.testing.assert_array_equal(got.view(np.uint32), alone.view(np.uint32))


@pytest.mark.sweep(6)
@pytest.mark.parametrize("lanes", ORDERS)
@pytest.mark.parametrize("case", CASES[1:3], ids=str)
def test_no_thread_counts_on_another_without_waiting(case: Case, lanes: tuple[int, ...]) -> None:
    """The same where the threads of a group run one after the other until they wait."""
    expect(case, on_gpu(team_program(case), case, lanes))


@pytest.mark.parametrize("which", [0, 1])
def test_each_barrier_is_needed(which: int) -> None:
    """Without one of the two, threads read what others have not brought, or no longer need."""
    case = Case(64, 32, 48, RegisterTile(2, 2))
    section = cuda_harness.library_of([team_program(case)])
    text = section.decode()
    places = [at for at in range(len(text)) if text.startswith(_BARRIER, at)]
    assert len(places) == 2
    without = text[: places[which]] + " " * len(_BARRIER) + text[places[which] + len(_BARRIER) :]
    with installed(Machine(lanes=ORDERS[0])):
        device = cuda_harness.open_library(without.encode(), 1)
        got = run_on(device, team_program(case), case)
    a, b = case.operands()
    assert not np.allclose(got, a @ b, atol=1e-3, equal_nan=False)


def test_a_processor_computes_each_unit_alone() -> None:
    """The loops of a file for a GPU or a processor."""
    for case in CASES:
        arrays = case.arrays()
        processor = parse_target(BACKEND.loops_for)
        run_program(team_program(case), processor, arrays, case.scalars)
        expect(case, arrays[2])


@pytest.mark.opencl
def test_an_opencl_device_computes_each_unit_alone() -> None:
    """As a processor does."""
    programs = [team_program(case) for case in CASES]
    compiled = DevicePrograms(programs)
    for number, case in enumerate(CASES):
        arrays = case.arrays()
        assert compiled.run(number, arrays, case.scalars) == 0
        expect(case, arrays[2])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_text_of_a_team_reads_back(case: Case) -> None:
    """And breaks no rule of loop programs."""
    program = team_program(case)
    assert f"team={UNITS} place=" in print_loops(program)
    assert parse_loops(print_loops(program)) == program
    assert not list(find_loop_problems(program))


def test_a_team_reads_less() -> None:
    """Of a product of 256 x 128 x 64: the sectors that warps touch for each operation are a sixth
    of those that the tiles of a processor need, whose units read for themselves."""
    case = Case(256, 128, 64)
    alone = Case(256, 128, 64, RegisterTile(6, 2))
    traffic = Traffic(), Traffic()
    on_gpu(team_program(case), case, traffic=traffic[0])
    on_gpu(alone_program(alone), alone, traffic=traffic[1])
    assert traffic[0].products == case.rows * case.columns * case.depth
    tiles = 2 * 2  # of 128 x 64
    assert traffic[0].sector_bytes == tiles * (128 + 64) * case.depth * 4
    assert 6 * traffic[0].sector_bytes < traffic[1].sector_bytes


@pytest.mark.parametrize(
    ("sizes", "tile"),
    [
        ((1, 2048, 4096), RegisterTile(8, 8)),
        ((1, 12544, 64), RegisterTile(8, 8)),
        ((1, 128, 3072), RegisterTile(4, 8)),
        ((12, 128, 128), RegisterTile(2, 8)),
        ((1, 49, 512), RegisterTile(1, 2)),
        ((1, 16, 512), RegisterTile(1, 2)),
        ((1, 7, 512), None),
        ((1, 64, 15), None),
    ],
)
def test_tiles_fit_the_product(sizes: tuple[int, int, int], tile: RegisterTile | None) -> None:
    """Large ones where there are teams enough, else small ones; none with few results."""
    assert choose_team_tile(*sizes, TEAM_MACHINE, "f32") == tile
    assert choose_team_tile(*sizes, VECTOR_MACHINE, "f32") is None
    assert choose_team_tile(*sizes, TEAM_MACHINE, "f64") is None
    assert choose_team_tile(*sizes[:2], symbol("n"), TEAM_MACHINE, "f32") is None


def convolutions() -> tuple[ModelProto, Mapping[str, Array]]:
    """Strides, pads, dilations, groups, one channel, a bias and a residual sum; a product of
    batches whose second operand is made at run time."""
    nodes = [
        node("Conv", "x w0 b0", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Add", "b c", "d"),
        node(
            "Conv", "d w2", "e", kernel_shape=[3, 3], pads=[2, 2, 2, 2], dilations=[2, 2], group=2
        ),
        node("Conv", "one w3", "f", kernel_shape=[1, 3], strides=[1, 2]),
        node("MatMul", "p q", "g"),
        node("Softmax", "g", "h"),
    ]
    weights = {
        "w0": normal(0, 20, 3, 3, 3),
        "b0": normal(1, 20),
        "w1": normal(2, 20, 20, 3, 3),
        "w2": normal(3, 36, 10, 3, 3),
        "w3": normal(4, 18, 1, 1, 3),
    }
    shapes = {"x": (1, 3, 17, 15), "one": (1, 1, 9, 11), "p": (2, 33, 21), "q": (2, 21, 19)}
    results = {"e": (1, 36, 9, 8), "f": (1, 18, 9, 5), "h": (2, 33, 19)}
    draw = np.random.default_rng(5)
    feed = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    inputs, outputs = (
        [tensor(name, list(shape)) for name, shape in each.items()] for each in (shapes, results)
    )
    return make_model(nodes, inputs, outputs, weights), feed


@pytest.mark.broad
@pytest.mark.parametrize(
    "bound",
    [
        "cuda:0",
        pytest.param("cpu:1", marks=pytest.mark.slow),
        pytest.param("opencl:0", marks=[pytest.mark.slow, pytest.mark.opencl]),
    ],
)
def test_convolutions_are_right(bound: str, tmp_path: Path) -> None:
    """What the host gives, within rounding; all of them in teams, also where another device takes
    the GPU's place."""
    model, feed = convolutions()
    expected = ingot_runtime.load(ingot.compile(model, targets=["x86-64-v3"]).to_bytes()).run(feed)
    path = tmp_path / "m.ingot"
    kinds = "cuda" if bound == "cuda:0" else f"cuda|{bound}"
    devices = {"acc": kinds}
    ingot.compile(model, targets=["x86-64-v3"], devices=devices, place={"*": "acc"}).save(path)
    assert teams_of(path) >= 5
    with installed(), ingot_runtime.load(path, devices={"acc": bound}) as session:
        found = session.run(feed)
    for name, array in expected.items():
        assert_close(array, found[name], 1e-5)


def teams_of(path: Path) -> int:
    """How many kernels of a bundle's first library wait for their team."""
    with opened(str(path), None) as source:
        section = bytes(source.section(head.LIBRARY, 0)).decode()
    return sum(_BARRIER in kernel for kernel in section.split(".visible .entry")[1:])


@pytest.mark.ptxas
def test_registers_hold_the_sums(tmp_path: Path) -> None:
    """No architecture spills a tile."""
    programs = [team_program(case) for case in CASES]
    section = cuda_harness.library_of(programs, "+".join(each.name for each in ARCHITECTURES))
    told = cuda_harness.assemble(section, len(programs), tmp_path)
    assert told.count(" 0 bytes spill stores, 0 bytes spill loads") == len(ARCHITECTURES) * len(
        programs
    )
    assert told.count("spill stores") == len(ARCHITECTURES) * len(programs)
