"""Contractions whose A, B and sums have element types of their own, against numpy, on every level
that the machine runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.codegen_harness import NUMPY, RUNNABLE, Array, interpret, run_program
from tests.unit.kernels_harness import LEVELS, Kernel, aligned, empty, normal
from tests.unit.lowering_harness import Builder, check_graph, compile_graph

from ingot_compiler.backends.host.emit.kernel import kernel_module
from ingot_compiler.backends.host.object import compile_object
from ingot_compiler.backends.host.targets.target import Target, parse_target
from ingot_compiler.backends.host.tiles import lanes_of
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, symbol
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.loops import (
    Buffer,
    Contraction,
    Local,
    LoopProgram,
    PackedPanels,
    RegisterTile,
    Store,
)
from ingot_compiler.lowering.parse_loops import parse_loops
from ingot_compiler.lowering.print_loops import print_loops
from ingot_compiler.lowering.verify_loops import verify_loops

P, M, N, K = symbol("p"), symbol("M"), symbol("N"), symbol("K")
TILE = RegisterTile(3, 2)
SIZES = [(1, 1, 2), (7, 5, 4), (3, 64, 2), (13, 129, 18), (29, 100, 30)]
NARROW: tuple[DType, ...] = ("i8", "u8", "i16")


def program(
    target: Target, sizes: tuple[Dim, Dim, Dim], dtypes: tuple[DType, DType, DType], pairs: bool
) -> LoopProgram:
    """C = A B of A[rows, depth] and B in place, or with pairs in panels."""
    (rows, columns, depth), (a, b, total) = sizes, dtypes
    width, pair = TILE.vectors * lanes_of(total, target), symbol("pair")
    blocks, parts = dim_floordiv(rows + 5, 6), dim_floordiv(columns + width - 1, width)
    start = dim_floordiv(P, blocks) * width
    layout = PackedPanels(16, depth * 16) if pairs else None
    taps: tuple[tuple[str, Dim], ...] = ()
    row = symbol("row") * depth
    a_index, b_index = row + symbol("k"), symbol("k") * columns + symbol("column")
    if pairs:
        taps = (("pair", dim_floordiv(depth, 2)),)
        a_index = row + pair * 2 + symbol("k")
        panel, place = dim_floordiv(symbol("column"), 16), dim_mod(symbol("column"), 16)
        b_index = panel * (depth * 16) + pair * 32 + place * 2 + symbol("k")
    store = Store(2, symbol("row") * columns + symbol("column"), Local("acc", total))
    statement = Contraction(
        "row", rows, dim_mod(P, blocks) * 6, 6, "column", columns, start, taps, "k", 2 if pairs else depth,
        0, a_index, 1, b_index, layout, total, "acc", (store,), TILE,
    )  # fmt: skip
    scalars = tuple(str(size) for size in sizes if not isinstance(size, int))
    buffers = (Buffer(a, written=False), Buffer(b, written=False), Buffer(total, written=True))
    return LoopProgram(buffers, scalars, "p", parts * blocks, 1, (statement,))


def paired(b: Array) -> Array:
    """[panel][k / 2][16][2]; what pads the last panel must not matter."""
    (depth, columns), width = b.shape, 16
    count = -(-columns // width)
    wide = np.full((depth, count * width), -1, b.dtype)
    wide[:, :columns] = b
    return aligned(wide.reshape(depth // 2, 2, count, width).transpose(2, 0, 3, 1), b.dtype)


def drawn(shape: tuple[int, int], dtype: DType, seed: int) -> Array:
    """Integers of the whole range, the least and the greatest often."""
    limits, draw = np.iinfo(NUMPY[dtype]), np.random.default_rng(seed)
    numbers = draw.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)
    edge = np.where(draw.random(shape) < 0.5, limits.min, limits.max).astype(limits.dtype)
    return aligned(np.where(draw.random(shape) < 0.3, edge, numbers), limits.dtype)


def product(a: Array, b: Array, dtype: DType) -> Array:
    """Sums that wrap."""
    wide = np.uint64 if dtype.startswith("u") else np.int64
    with np.errstate(over="ignore"):
        return np.asarray(np.matmul(a.astype(wide), b.astype(wide)).astype(NUMPY[dtype]))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sizes", SIZES)
def test_pairs_are_exact(level: str, sizes: tuple[int, int, int]) -> None:
    """Any i16, the least by the least too, whose pair of products is beyond i32: tails of rows and
    columns, open numbers of rows."""
    target = parse_target(level)
    rows, columns, depth = sizes
    a, b = drawn((rows, depth), "i16", 1), drawn((depth, columns), "i16", 2)
    a[0], b[:, 0] = -(1 << 15), -(1 << 15)
    stored = paired(b)
    for shape in (sizes, (M, columns, depth)):
        c = empty((rows, columns), np.int32)
        kernel = Kernel(program(target, shape, ("i16", "i16", "i32"), pairs=True), target)
        kernel.run([a, stored, c], () if shape is sizes else (rows,), parts=3)
        np.testing.assert_array_equal(c, product(a, b, "i32"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("b_dtype", NARROW)
@pytest.mark.parametrize("a_dtype", NARROW)
def test_narrow_integers_are_widened(level: str, a_dtype: DType, b_dtype: DType) -> None:
    """A and B of any sign and width, B in place: never read past its end."""
    target = parse_target(level)
    for rows, columns, depth in ((7, 5, 3), (13, 129, 17), (1, 64, 1)):
        a, b = drawn((rows, depth), a_dtype, 1), drawn((depth, columns), b_dtype, 2)
        for sizes in ((rows, columns, depth), (M, N, K)):
            c = empty((rows, columns), np.int32)
            kernel = Kernel(program(target, sizes, (a_dtype, b_dtype, "i32"), pairs=False), target)
            kernel.run([a, b, c], () if sizes[0] == rows else (rows, columns, depth))
            np.testing.assert_array_equal(c, product(a, b, "i32"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["i32", "u32", "i64", "u64"])
def test_wide_integers_wrap(level: str, dtype: DType) -> None:
    """Sums of the operands' own type."""
    target = parse_target(level)
    a, b, c = drawn((5, 9), dtype, 1), drawn((9, 37), dtype, 2), empty((5, 37), NUMPY[dtype])
    Kernel(program(target, (5, 37, 9), (dtype, dtype, dtype), pairs=False), target).run([a, b, c])
    np.testing.assert_array_equal(c, product(a, b, dtype))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("a_dtype", "b_dtype"), [("f16", "f32"), ("f32", "f16"), ("f16", "f16")])
def test_halves_are_summed_in_f32(level: str, a_dtype: DType, b_dtype: DType) -> None:
    """Either operand, or both, may be f16: the bits of a product of what they widen to."""
    target = parse_target(level)
    a, b = normal((5, 9), 1, NUMPY[a_dtype]), normal((9, 37), 2, NUMPY[b_dtype])
    c, same = empty((5, 37)), empty((5, 37))
    Kernel(program(target, (5, 37, 9), (a_dtype, b_dtype, "f32"), pairs=False), target).run(
        [a, b, c]
    )
    wide = [aligned(a.astype(np.float32)), aligned(b.astype(np.float32)), same]
    Kernel(program(target, (5, 37, 9), ("f32", "f32", "f32"), pairs=False), target).run(wide)
    np.testing.assert_array_equal(c, same)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize(
    ("dtypes", "pairs"),
    [(("i16", "i16", "i32"), True), (("u8", "i8", "i32"), False), (("i64", "i64", "i64"), False)],
)
def test_code_equals_the_interpreter(
    target: Target, dtypes: tuple[DType, DType, DType], pairs: bool
) -> None:
    """The interpreter of loops widens, adds and wraps as the machine does; the text form reads
    back, and is verified."""
    a, b = drawn((4, 6), dtypes[0], 1), drawn((6, 19), dtypes[1], 2)
    stored = paired(b) if pairs else b
    loops = program(target, (4, 19, 6), dtypes, pairs)
    verify_loops(loops)
    assert parse_loops(print_loops(loops)) == loops
    c, expected = empty((4, 19), NUMPY[dtypes[2]]), empty((4, 19), NUMPY[dtypes[2]])
    run_program(loops, target, [a, stored, c])
    interpret(loops, target, [a.ravel(), stored.ravel(), expected.ravel()], {})
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(c, product(a, b, dtypes[2]))


def test_other_machines_have_pairs() -> None:
    """Where no instruction multiplies pairs, they are multiplied half by half."""
    for name in ("aarch64", "riscv64", "x86-64-v3+avx512f"):
        target = parse_target(name)
        text = kernel_module(
            program(target, (7, 40, 6), ("i16", "i16", "i32"), pairs=True), target
        ).text
        assert "ashr" in text
        assert compile_object(text, target, verify=True)[:4] == b"\x7fELF"


def test_pairs_that_lie_apart_are_refused() -> None:
    """A contraction that contradicts itself is an error of the compiler, not another sum."""
    wrong = program(parse_target("x86-64-v3"), (4, 8, 4), ("i8", "i16", "i32"), pairs=True)
    with pytest.raises(InternalError, match="pairs"):
        kernel_module(wrong, parse_target("x86-64-v3"))


@pytest.mark.parametrize("depth", [8, 9])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("a_dtype", "b_dtype"), [("u8", "i8"), ("i8", "i8"), ("i16", "u8")])
def test_the_op_becomes_tiles(depth: int, constant: bool, a_dtype: DType, b_dtype: DType) -> None:
    """``matmul_integer`` of narrow integers, a known and a made B, even and odd depth, with what
    follows fused: exact."""
    a, b = drawn((11, depth), a_dtype, 1), drawn((depth, 37), b_dtype, 2)
    builder = Builder(
        [TensorType(a_dtype, a.shape), *([] if constant else [TensorType(b_dtype, b.shape)])]
    )
    right = builder.constant(b, b_dtype) if constant else 1
    total = builder.op("matmul_integer", 0, right)
    outputs = [total, builder.op("cast", builder.op("add", total, total), dtype="f32")]
    check_graph(builder, outputs, [a] if constant else [a, b], 0.0, RUNNABLE)
    programs = compile_graph(builder.finish(outputs)).programs
    (tiles,) = [item for one in programs for item in one.body if isinstance(item, Contraction)]
    assert bool(tiles.taps) == (constant and depth % 2 == 0)


@pytest.mark.parametrize("dtype", ["i8", "u16", "i32", "u64"])
def test_products_of_integers_have_tiles(dtype: DType) -> None:
    """``matmul`` of any integers is a contraction, whose sums wrap in the operands' type; batches
    broadcast."""
    a, b = drawn((6, 5), dtype, 1).reshape(2, 3, 5), drawn((5, 21), dtype, 2)
    builder = Builder([TensorType(dtype, a.shape)])
    outputs = [builder.op("matmul", 0, builder.constant(b, dtype))]
    check_graph(builder, outputs, [a], 0.0, RUNNABLE)
    programs = compile_graph(builder.finish(outputs)).programs
    for one in programs:
        verify_loops(one)
    assert any(isinstance(item, Contraction) for one in programs for item in one.body)
