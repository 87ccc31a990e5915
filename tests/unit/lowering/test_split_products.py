"""Products of f32 as products of parts of bf16, in tiles: how near they are, what comes out where
parts do not fit, code against the interpreter.

Functions stand for the instructions (``test_matrix_tiles``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product as product_of_lists
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.harness.chains import chain_product
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.kernels_harness import Array, Kernel
from tests.harness.lowering_harness import (
    Builder,
    Compiled,
    compile_graph,
    f32,
    normal,
    run_compiled,
)
from tests.harness.software_tiles import SoftwareTiles
from tests.unit.kernels.test_matrix_tiles import TARGET, in_tiles, runs, tiles
from tests.unit.lowering.test_byte_convolutions import window

import ingot
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.ir.dims import evaluate
from ingot_compiler.ir.graph import Graph
from ingot_compiler.kernels import matrix_tiles
from ingot_compiler.kernels.products import parts
from ingot_compiler.lowering.groups.fused import BufferSpec, launches_of
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.program import Contraction, For, LoopProgram, Statement
from ingot_compiler.lowering.loops.verify_loops import find_loop_problems
from ingot_compiler.oracles.interpret_loops import interpret_loops
from ingot_compiler.targets.target import Target, parse_target

Output = pytest.CaptureFixture[str]
__all__ = ["tiles"]  # a fixture
DIRECT = parse_target("x86-64-v4")
"""Sums are of multiply-adds."""


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products have parts, too, which are quickly interpreted."""
    monkeypatch.setattr(parts, "_GAIN_MIN", 0.0)


def product(x: Array, w: Array) -> tuple[Graph, Builder]:
    """A product, with the op that follows it."""
    builder = Builder([f32(*x.shape)])
    total = builder.op("matmul", 0, builder.constant(w))
    return builder.finish([builder.op("add", total, total)]), builder


def convolution(x: Array, w: Array) -> tuple[Graph, Builder]:
    """With a bias, zeros around the image, and pixels of two lines in a tile."""
    builder = Builder([f32(*x.shape)])
    bias = builder.constant(normal(9, w.shape[0]))
    image = builder.op("conv", 0, builder.constant(w), bias, **window(2, stride=2))
    return builder.finish([builder.op("relu", image)]), builder


def result(made: tuple[Graph, Builder], x: Array, target: Target, precision: str = "f32") -> Array:
    """What the kernels of a graph compute."""
    graph, builder = made
    compiled = compile_graph(graph, target, precision=precision)
    with np.errstate(all="ignore"):
        (found,) = run_compiled(compiled, graph, [x], builder.read)
    return found


def sparse(seed: int, *shape: int) -> Array:
    """Four of five numbers are 0."""
    numbers = normal(seed, *shape)
    return np.where(np.random.default_rng(seed).random(shape) < 0.8, np.float32(0), numbers)


def wide(seed: int, *shape: int) -> Array:
    """Magnitudes over 36 decades."""
    draw = np.random.default_rng(seed)
    scale = 10.0 ** draw.uniform(-18, 16, shape)
    return (draw.choice((-1.0, 1.0), shape) * scale).astype(np.float32)


def error(found: Array, exact: Array) -> float:
    """Root of the mean square, relative."""
    return float(np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)))


@pytest.mark.broad
@runs
@pytest.mark.parametrize("drawn", [normal, sparse, wide])
def test_three_parts_are_nearer_than_chains(
    target: Target, tiles: SoftwareTiles, drawn: Callable[..., Array]
) -> None:
    """The contract of f32: an rms error against float64 that is not above that of multiply-adds;
    ends of rows, columns and depth."""
    x, w = drawn(1, 50, 330), normal(2, 330, 70)
    exact = 2 * (x.astype(np.float64) @ w)
    split, chain = result(product(x, w), x, target), 2 * chain_product(x, w)
    assert tiles.counts["tdpbf16ps"] > 0
    assert 0 < error(split, exact) <= error(chain, exact)
    pairs = result(product(x, w), x, target, "bf16x3")
    assert error(chain, exact) < error(pairs, exact) < 1.5e-5


@pytest.mark.broad
@runs
def test_convolutions_have_parts(target: Target, tiles: SoftwareTiles) -> None:
    """Of an image with zeros around it, whose tiles are brought together row by row."""
    x, w = normal(1, 1, 32, 14, 14), normal(2, 64, 32, 3, 3)
    split, chain = (result(convolution(x, w), x, each) for each in (target, DIRECT))
    assert tiles.counts["tdpbf16ps"] > 0
    np.testing.assert_allclose(split, chain, 0, 1e-4)
    pairs = result(convolution(x, w), x, target, "bf16x3")
    np.testing.assert_allclose(pairs, chain, 0, 3e-3)
    assert not np.array_equal(pairs, split)


@settings(max_examples=60)
@given(st.data())
def test_each_convolution_of_parts_runs_in_tiles(data: st.DataObject) -> None:
    """Whatever its sizes are, all parts are multiplied: padding may leave most taps outside of the
    image, and dilations, rows of a few pixels."""
    draw = data.draw
    sizes = [draw(st.integers(3, 16)) for _ in range(2)]
    stride, dilation = draw(st.integers(1, 2)), draw(st.integers(1, 4))
    pads = draw(st.integers(0, 2 * dilation))
    reach = [1 + (size + 2 * pads - 2 * dilation - 1) // stride for size in sizes]
    assume(min(reach) >= 1)
    x, w = normal(1, 1, 64, *sizes), normal(2, 64, 64, 3, 3)
    builder = Builder([f32(*x.shape)])
    attributes = window(2, stride=stride, pad=pads, dilation=dilation)
    image = builder.op("conv", 0, builder.constant(w), **attributes)
    graph = builder.finish([image])
    precision = draw(st.sampled_from(("f32", "bf16x3")))
    for program in compile_graph(graph, TARGET, precision=precision).programs:
        assert not list(find_loop_problems(program))


EDGES = (np.inf, -np.inf, np.nan, 3e38, np.finfo(np.float32).max, 1e-40)


@pytest.mark.sweep(5)
@runs
@pytest.mark.parametrize(("edges", "scale"), [(EDGES, 1.0), ((2.0**57,), 1.0), ((), 1e-30)])
@pytest.mark.parametrize("is_weight", [False, True])
def test_what_parts_cannot_hold_comes_out_as_from_chains(
    target: Target,
    tiles: SoftwareTiles,
    edges: tuple[float, ...],
    scale: float,
    *,
    is_weight: bool,
) -> None:
    """Bit by bit, with edges in one factor or with numbers so small that products are denormal."""
    x, w = normal(1, 50, 66), normal(2, 66, 70)
    own = w if is_weight else x
    own *= np.float32(scale)
    for number, edge in enumerate(edges):
        own[3 * number + 1, 5 * number + 2] = edge
    split, chain = (result(product(x, w), x, each) for each in (target, DIRECT))
    assert "tdpbf16ps" not in tiles.counts
    np.testing.assert_array_equal(split, chain)


@runs
def test_images_that_parts_cannot_hold(target: Target, tiles: SoftwareTiles) -> None:
    """Taps, rows that are brought together, zeros around the image."""
    x, w = normal(3, 1, 32, 14, 14), normal(4, 64, 32, 3, 3)
    for number, edge in enumerate(EDGES):
        x[0, 3 * number + 1, 2 * number, 1] = edge
    split, chain = (result(convolution(x, w), x, each) for each in (target, DIRECT))
    assert "tdpbf16ps" not in tiles.counts
    np.testing.assert_array_equal(split, chain)


def caches_of(size_bytes: int) -> Callable[[Target], int]:
    """Second caches of one size on every target."""

    def near_bytes(target: Target) -> int:
        assert target.processors
        return size_bytes

    return near_bytes


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second cache that holds two tiles of the depth of 48 rows: more are multiplied in turns."""
    monkeypatch.setattr(matrix_tiles, "_near_bytes", caches_of(60_000))


def multiplied(x: Array, w: Array, target: Target, precision: str) -> tuple[Graph, Compiled]:
    """A product of parts."""
    graph, _ = product(x, w)
    return graph, compile_graph(graph, target, precision=precision)


def arguments(specs: Sequence[BufferSpec], *, fits: bool) -> list[Array]:
    """Numbers for the buffers of a kernel of parts."""
    draw, arrays = np.random.default_rng(5), list[Array]()
    for spec in specs:
        count = evaluate(spec.element_count, {})
        numbers = draw.standard_normal(count).astype(np.float32)
        if spec.dtype == "bf16":
            arrays.append((numbers.view(np.uint32) >> 16).astype(np.uint16))
        else:
            arrays.append(np.full(count, fits) if spec.dtype == "bool" else numbers)
    return arrays


def check_against_the_interpreter(
    compiled: Compiled, target: Target, rows: int, columns: int, *, fits: bool
) -> LoopProgram:
    """Compare the kernel that multiplies, for so many rows and columns of a unit; give its
    loops."""
    ((launch, program),) = (
        (launch, program)
        for launch in launches_of(compiled.fused)
        if in_tiles((program := compiled.programs[launch.program],))
    )
    assert parse_loops(print_loops(program)) == program
    body = tuple(fewer(statement, rows, columns) for statement in program.body)
    shorter = replace(program, body=body, extent=1)
    arrays = arguments([compiled.fused.buffers[each] for each in launch.buffers], fits=fits)
    expected = [array.copy() for array in arrays]
    interpret_loops(shorter, expected, {}, f32_lanes=target.f32_lanes)
    Kernel(shorter, target).run(arrays, parts=2)
    for found, wanted in zip(arrays, expected, strict=True):
        if fits or found.dtype != np.float32:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, 0, 1e-3)
    return program


def fewer(statement: Statement, rows: int, columns: int) -> Statement:
    """The first rows and columns of a contraction, alone or in a loop over panels."""
    if isinstance(statement, For):
        inner = tuple(fewer(each, rows, columns) for each in statement.body)
        return replace(statement, extent=1, body=inner)
    assert isinstance(statement, Contraction)
    return replace(statement, rows=rows, columns=columns)


@pytest.mark.broad
@runs
@pytest.mark.parametrize("precision", ["f32", "bf16x3"])
@pytest.mark.parametrize("fits", [False, True])
@pytest.mark.parametrize("depth", [68, 64])
def test_code_equals_the_interpreter(
    target: Target, tiles: SoftwareTiles, precision: str, depth: int, *, fits: bool
) -> None:
    """Bit by bit where tiles multiply; the text form reads back. Rows lie in tiles where the depth
    is a multiple of theirs."""
    _, compiled = multiplied(normal(1, 48, depth), normal(2, depth, 64), target, precision)
    check_against_the_interpreter(compiled, target, 18, 20, fits=fits)


@pytest.mark.broad
@runs
@pytest.mark.parametrize("fits", [False, True])
def test_turns_equal_the_interpreter(
    target: Target, tiles: SoftwareTiles, small_cache: None, *, fits: bool
) -> None:
    """Bit by bit: sums are stored by one turn, and loaded by the next one."""
    _, compiled = multiplied(normal(1, 50, 128), normal(2, 128, 64), target, "f32")
    program = check_against_the_interpreter(compiled, target, 18, 32, fits=fits)
    assert len(program.body) == 2


@pytest.mark.sweep(3)
@runs
@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(48, 128, 64), (50, 192, 96), (65, 256, 64)]
)
@pytest.mark.parametrize("edges", [(), EDGES])
def test_turns_change_no_bit(
    target: Target,
    tiles: SoftwareTiles,
    small_cache: None,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    depth: int,
    columns: int,
    edges: tuple[float, ...],
) -> None:
    """Whatever the caches are; where parts do not fit, sums are those of chains."""
    x, w = normal(1, rows, depth), normal(2, depth, columns)
    for number, edge in enumerate(edges):
        x[3 * number + 1, 5 * number + 2] = edge
    graph, builder = product(x, w)
    compiled = compile_graph(graph, target)
    (program,) = in_tiles(compiled.programs)
    assert len(program.body) > 1
    with np.errstate(all="ignore"):
        (turned,) = run_compiled(compiled, graph, [x], builder.read)
    monkeypatch.setattr(matrix_tiles, "_near_bytes", caches_of(1 << 30))
    np.testing.assert_array_equal(turned, result((graph, builder), x, target))
    chain = result((graph, builder), x, DIRECT)
    if edges:
        np.testing.assert_array_equal(turned, chain)
    else:
        np.testing.assert_allclose(turned, chain, 0, 1e-4)


def test_programs_of_parts_that_do_not_belong_together_are_refused() -> None:
    """As many parts of A as of B, in tiles, all of them bf16."""
    graph, _ = product(normal(1, 64, 64), normal(2, 64, 64))
    (program,) = in_tiles(compile_graph(graph, TARGET).programs)
    (statement,) = program.body
    assert isinstance(statement, Contraction)
    assert statement.split is not None
    assert not list(find_loop_problems(program))
    wrong = replace(statement.split, b=(statement.split.plain, *statement.split.b[1:]))
    for other in (
        replace(statement, split=wrong),
        replace(statement, split=replace(wrong, b=())),
        replace(statement, in_matrix_tiles=False),
    ):
        problems = list(find_loop_problems(replace(program, body=(other,))))
        assert any("parts of factors" in problem.rule for problem in problems)


@pytest.mark.parametrize(("precision", "products"), [("f32", 12), ("bf16x3", 6)])
def test_object_code_has_the_products(precision: str, products: int) -> None:
    """``tdpbf16ps`` of two columns of tiles, on any machine that compiles."""
    graph, _ = product(normal(1, 64, 128), normal(2, 128, 64))
    (program,) = in_tiles(compile_graph(graph, TARGET, precision=precision).programs)
    code = compile_object(llvm_text(kernel_module(program, TARGET)), TARGET, verify=True)
    count = sum(code.count(bytes((0xC4, 0xE2, vex, 0x5C))) for vex in (0x62, 0x5A))
    assert count  # of a loop that LLVM may unroll
    assert count % products == 0


@pytest.mark.parametrize("precision", ["f32", "fast", "bf16x3", "bf16"])
def test_products_of_every_shape_are_lowered(precision: str) -> None:
    """Convolutions of one to three axes, in groups, with strides; products of matrices, of batches
    of them, by vectors: where tiles are, whatever is asked for."""
    for rank, groups, stride, channels in product_of_lists((1, 2, 3), (1, 64), (1, 2), (3, 64)):
        if channels % groups:
            continue
        x = normal(1, 1, channels, *(8,) * rank)
        w = normal(2, 64, channels // groups, *(3,) * rank)
        builder = Builder([f32(*x.shape)])
        attributes = window(rank, stride=stride) | {"groups": groups}
        graph = builder.finish([builder.op("conv", 0, builder.constant(w), **attributes)])
        check_lowered(graph, precision)
    for left, right in (
        ((64, 64), (64, 64)), ((2, 64, 64), (64, 64)), ((2, 64, 64), (2, 64, 64)), ((64, 64), (64, 1)),
        ((1, 64), (64, 64)), ((3, 2, 64, 64), (64, 64)),
    ):  # fmt: skip
        builder = Builder([f32(*left)])
        graph = builder.finish([builder.op("matmul", 0, builder.constant(normal(2, *right)))])
        check_lowered(graph, precision)


def check_lowered(graph: Graph, precision: str) -> None:
    """Whether all loops of a graph are well formed."""
    for program in compile_graph(graph, TARGET, precision=precision).programs:
        assert not list(find_loop_problems(program))


@pytest.mark.parametrize("channels", [3, 4])
def test_few_channels_in_bf16(channels: int) -> None:
    """Those that leave one without its pair stay f32, and ask for no parts."""
    x, w = normal(1, 1, channels, 14, 14), normal(2, 64, channels, 7, 7)
    graph, _ = convolution(x, w)
    compiled = compile_graph(graph, TARGET, precision="bf16")
    read = {buffer.dtype for program in compiled.programs for buffer in program.buffers}
    assert ("bf16" in read) == (channels % 2 == 0)


MODEL = make_model(
    [
        node("MatMul", "x w", "a", name="large"),
        node("Relu", "a", "b"),
        node("MatMul", "b v", "y", name="narrow"),
    ],
    [tensor("x", [128, 512])],
    [tensor("y", None)],
    {"w": normal(0, 512, 512), "v": normal(1, 512, 8)},
)
PLAIN = "x86-64-v4+avx512bf16"


def test_a_product_that_gains_nothing_has_no_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short depth, whose results go through memory, and rows that are brought together: of an
    image, and of lines."""
    monkeypatch.undo()
    for sizes, gains in (
        ((128, 768, 768), True),
        ((128, 3072, 768), True),
        ((3136, 64, 64), False),
    ):
        rows, depth, columns = sizes
        graph, _ = product(normal(1, rows, depth), normal(2, depth, columns))
        assert bool(in_tiles(compile_graph(graph, TARGET).programs)) == gains
    graph, _ = convolution(normal(1, 1, 256, 14, 14), normal(2, 256, 256, 3, 3))
    assert not in_tiles(compile_graph(graph, TARGET).programs)
    builder = Builder([f32(1, 256, 400)])
    weights, bias = builder.constant(normal(2, 256, 256, 3)), builder.constant(normal(3, 256))
    lines = builder.finish([builder.op("conv", 0, weights, bias, **window(1, stride=2))])
    assert not in_tiles(compile_graph(lines, TARGET).programs)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("precision", "kind"), [("f32", "matmul_bf16x6"), ("fast", "matmul_bf16x6"), ("bf16x3", "matmul_bf16x3")]
)  # fmt: skip
def test_inspect_names_the_method(
    precision: str, kind: str, tmp_path: Path, capsys: Output
) -> None:
    """Where a target names the tiles, and the product is large."""
    path = tmp_path / "m.ingot"
    ingot.compile(MODEL, targets=f"{PLAIN}+amx-bf16", precision=precision).save(path)
    assert main(["inspect", str(path)]) == 0
    launches = capsys.readouterr().out.split("launches of")[1]
    lines = [line.split() for line in launches.splitlines()]
    kinds = [words[2] for words in lines if len(words) > 2 and "matmul" in words[2]]
    assert set(kinds) == {kind, "matmul"}


def test_other_targets_keep_multiply_adds(tmp_path: Path) -> None:
    """By ``vdpbf16ps`` products of parts take longer; a smaller bundle has no parts, but those of
    ``bf16x3``, which are as large as f32."""
    sizes: dict[tuple[str, str, str], int] = {}
    for case in (
        (PLAIN, "f32", "speed"),
        (PLAIN, "bf16x3", "speed"),
        (f"{PLAIN}+amx-bf16", "f32", "speed"),
        (f"{PLAIN}+amx-bf16", "f32", "size"),
    ):
        target, precision, optimize = case
        path = tmp_path / "m.ingot"
        ingot.compile(MODEL, targets=target, precision=precision, optimize=optimize).save(path)
        sizes[case] = path.read_bytes().count(b"matmul_bf16x")
    assert [bool(count) for count in sizes.values()] == [False, False, True, False]
