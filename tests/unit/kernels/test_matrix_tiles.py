"""Kernels on tile registers (AMX) on any machine with AVX-512: functions stand for the
instructions.

Everything else of a kernel runs as it is: shapes, addresses, ends of rows, columns and depths. What
the instructions themselves do, ``test_tile_instructions`` compares where a processor has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.harness.codegen_harness import NUMPY
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.kernels_harness import Array, Kernel
from tests.harness.lowering_harness import (
    Builder,
    check_graph,
    compile_graph,
    f32,
    normal,
    run_compiled,
)
from tests.harness.software_tiles import SoftwareTiles
from tests.unit.codegen.test_bf16_products import drawn as drawn_bf16
from tests.unit.lowering.test_byte_convolutions import PAIRS, drawn, window

import ingot
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm import Level, load_in_process
from ingot_compiler.codegen.llvm_binding import Engine
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.ir.dims import evaluate, symbol
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.lowering.loops.loop_parts import RegisterTile
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.program import Contraction, For, LoopProgram, Statement
from ingot_compiler.lowering.loops.verify_loops import find_loop_problems
from ingot_compiler.oracles.interpret_loops import interpret_loops
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import Target, native_target, parse_target

TARGET = parse_target("x86-64-v4+avx512bf16+avx512vnni+amx-bf16+amx-int8")
_OTHERS = {name for name in TARGET.features if not name.startswith("amx-")}
HERE = [TARGET] if set(host_target().features) >= _OTHERS else []
"""What runs in this process with functions in the place of tiles."""
runs = pytest.mark.parametrize("target", HERE, ids=str)


@pytest.fixture
def tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[SoftwareTiles]:
    """Kernels that are loaded call these."""
    made = SoftwareTiles()

    def load(text: str, target: Target, level: Level = 2) -> Engine:
        return load_in_process(made.in_place(text), target, level)

    monkeypatch.setattr("tests.harness.kernels_harness.load_in_process", load)
    monkeypatch.setattr("tests.harness.lowering_harness._kernel", Kernel)
    yield made
    assert made.errors == []
    assert made.shapes is None, "a kernel left its configuration"


def in_tiles(programs: tuple[LoopProgram, ...]) -> list[LoopProgram]:
    """Those whose contraction runs on tiles, in a loop over panels or alone."""
    return [program for program in programs if any(map(_is_in_tiles, program.body))]


def _is_in_tiles(statement: Statement) -> bool:
    if isinstance(statement, For):
        return any(map(_is_in_tiles, statement.body))
    return isinstance(statement, Contraction) and statement.in_matrix_tiles


@runs
@pytest.mark.parametrize("dtypes", PAIRS)
@pytest.mark.parametrize(("rows", "depth", "columns"), [(37, 132, 40), (16, 64, 16), (50, 200, 33)])
def test_bytes_are_exact(
    target: Target,
    tiles: SoftwareTiles,
    dtypes: tuple[DType, DType],
    rows: int,
    depth: int,
    columns: int,
) -> None:
    """Every sign; ends of rows, of columns, of the depth; with the op that follows."""
    a, b = drawn((rows, depth), dtypes[0], 1), drawn((depth, columns), dtypes[1], 2)
    builder = Builder([TensorType(dtypes[0], a.shape)])
    total = builder.op("matmul_integer", 0, builder.constant(b, dtypes[1]))
    check_graph(builder, [builder.op("add", total, total)], [a], 0.0, [target])
    assert tiles.counts["tilerelease"] > 0


@runs
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_bring_rows_together(
    target: Target, tiles: SoftwareTiles, stride: int
) -> None:
    """Pixels of two lines in one tile, a halo, groups: taps that are not merged with the depth."""
    x, w = drawn((2, 128, 7, 9), "u8", 1), drawn((24, 64, 3, 3), "i8", 2)
    builder = Builder([TensorType("u8", x.shape)])
    attributes = {**window(2, stride=stride, pad_value=7), "groups": 2}
    result = builder.op("conv", 0, builder.constant(w, "i8"), **attributes)
    check_graph(builder, [result], [x], 0.0, [target])
    assert tiles.counts["tdpbusd"] > 0


@runs
def test_open_numbers_of_rows(target: Target, tiles: SoftwareTiles) -> None:
    """From none to several blocks; a single row takes the kernel for one."""
    rows, b = symbol("rows"), drawn((96, 40), "i8", 2)
    builder = Builder([TensorType("u8", (rows, 96))])
    total = builder.op("matmul_integer", 0, builder.constant(b, "i8"))
    for count in (1, 5, 16, 33, 120):
        check_graph(builder, [total], [drawn((count, 96), "u8", count)], 0.0, [target])
    assert tiles.counts["tdpbusd"] > 0


def bf16_programs() -> list[tuple[LoopProgram, list[Array]]]:
    """A product whose depth does not end with a tile, and a convolution of two lines of pixels,
    with arrays in the places of their buffers."""
    builder = Builder([f32(19, 70), f32(1, 32, 9, 11)])
    product = builder.op("matmul", 0, builder.constant(normal(1, 70, 21)))
    weights = builder.constant(normal(2, 18, 32, 3, 3))
    image = builder.op("conv", 1, weights, **window(2, stride=2))
    outputs = [builder.op("add", product, product), image]
    compiled = compile_graph(builder.finish(outputs), TARGET, precision="bf16")
    found: list[tuple[LoopProgram, list[Array]]] = []
    for launch in launches_of(compiled.fused):
        program = compiled.programs[launch.program]
        if in_tiles((program,)):
            specs = [compiled.fused.buffers[buffer] for buffer in launch.buffers]
            arrays = [
                drawn_bf16((1, evaluate(spec.element_count, {})), number, 0.01).ravel()
                if spec.dtype == "bf16"
                else np.zeros(evaluate(spec.element_count, {}), NUMPY[spec.dtype])
                for number, spec in enumerate(specs)
            ]
            found.append((program, arrays))
    return found


@pytest.mark.broad
@runs
def test_bf16_code_equals_the_interpreter(target: Target, tiles: SoftwareTiles) -> None:
    """Bit by bit, by the rounding of tiles; denormals, infinities and NaN among the factors."""
    cases = bf16_programs()
    assert len(cases) == 2
    for program, arrays in cases:
        assert parse_loops(print_loops(program)) == program
        expected = [array.copy() for array in arrays]
        with np.errstate(all="ignore"):
            interpret_loops(program, expected, {}, f32_lanes=target.f32_lanes)
        Kernel(program, target).run(arrays, parts=2)
        np.testing.assert_array_equal(arrays[-1], expected[-1])
    assert tiles.counts["tdpbf16ps"] > 0


@runs
def test_bf16_graphs(target: Target, tiles: SoftwareTiles) -> None:
    """From the graph to the result: packed weights, rounded activations, a fused sum."""
    x, w = normal(1, 40, 96), normal(2, 96, 50)
    builder = Builder([f32(40, 96)])
    product = builder.op("matmul", 0, builder.constant(w))
    graph = builder.finish([builder.op("add", product, product)])
    compiled = compile_graph(graph, target, precision="bf16")
    (result,) = run_compiled(compiled, graph, [x], builder.read)
    np.testing.assert_allclose(result, 2.0 * (x.astype(np.float64) @ w), 0, 0.3)
    assert tiles.counts["tdpbf16ps"] > 0


@pytest.mark.parametrize(
    ("precision", "instruction"),
    [("bf16", b"\xc4\xe2\x62\x5c\xc2"), ("f32", b"\xc4\xe2\x61\x5e\xc2")],
)
def test_object_code_has_the_instructions(precision: str, instruction: bytes) -> None:
    """``tdpbf16ps tmm0, tmm2, tmm3`` and ``tdpbusd tmm0, tmm2, tmm3``, on any machine that
    compiles."""
    dtype: DType = "f32" if precision == "bf16" else "u8"
    builder = Builder([TensorType(dtype, (64, 128))])
    if precision == "bf16":
        total = builder.op("matmul", 0, builder.constant(normal(1, 128, 64)))
    else:
        total = builder.op("matmul_integer", 0, builder.constant(drawn((128, 64), "i8", 1), "i8"))
    compiled = compile_graph(builder.finish([total]), TARGET, precision=precision)
    (program,) = in_tiles(compiled.programs)
    assert instruction in compile_object(
        llvm_text(kernel_module(program, TARGET)), TARGET, verify=True
    )


def test_programs_that_fit_no_tiles_are_refused() -> None:
    """Rows, panels and depths that the instructions do not have."""
    program, _ = bf16_programs()[0]
    (tiled,) = [item for item in program.body if isinstance(item, Contraction)]
    assert tiled.b_panels
    for wrong in (
        replace(tiled, tile=RegisterTile(8, 2)),
        replace(tiled, b_panels=None),
        replace(tiled, depth_extent=71),
    ):
        problems = list(find_loop_problems(replace(program, body=(wrong,))))
        assert any("tiles" in problem.rule for problem in problems)
    assert not list(find_loop_problems(program))


def test_native_names_them() -> None:
    """Where the machine has them: a feature that another builds on comes with it."""
    native = native_target(TARGET.features)
    assert {"amx-bf16", "amx-int8", "amx-tile"} <= set(native.features)


def test_variants_share_packed_weights(tmp_path: Path) -> None:
    """One packing serves tiles and pairs: a bundle for both has code twice, and weights once."""
    plain, sizes = "x86-64-v4+avx512bf16", list[int]()
    nodes, weights = [node("MatMul", "x w", "y")], {"w": normal(1, 512, 512)}
    product = make_model(nodes, [tensor("x", [64, 512])], [tensor("y", None)], weights)
    for targets in ([plain], [plain, f"{plain}+amx-bf16"]):
        path = tmp_path / f"{len(targets)}.ingot"
        ingot.compile(product, targets=targets, precision="bf16").save(path)
        sizes.append(path.stat().st_size)
    assert sizes[1] - sizes[0] < 512 * 512
