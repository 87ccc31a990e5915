"""Contractions whose A, B and sums have element types of their own, against numpy, on every level
that the machine runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import (
    DOT_PRODUCTS,
    NUMPY,
    RUNNABLE,
    Array,
    interpret,
    run_program,
)
from tests.harness.kernels_harness import LEVELS, Kernel, aligned, empty, normal
from tests.harness.lowering_harness import Builder, check_graph, compile_graph

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, symbol
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.kernels.tiles import lanes_of, rows_together
from ingot_compiler.lowering.loops.loop_parts import PackedPanels, RegisterTile
from ingot_compiler.lowering.loops.loop_values import Local
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.program import Buffer, Contraction, LoopProgram, Store
from ingot_compiler.lowering.loops.verify_loops import verify_loops
from ingot_compiler.targets.target import Target, parse_target

P, M, N, K = symbol("p"), symbol("M"), symbol("N"), symbol("K")
TILE = RegisterTile(3, 2)
SIZES = [(1, 1, 1), (2, 3, 2), (7, 5, 3), (3, 64, 4), (13, 129, 18), (29, 100, 33)]
BYTES: list[tuple[DType, DType]] = [("u8", "i8"), ("i8", "i8"), ("u8", "u8"), ("i8", "u8")]
TOGETHER: list[tuple[DType, DType]] = [("i16", "i16"), *BYTES]
NARROW: tuple[DType, ...] = ("i8", "u8", "i16")


def program(
    target: Target,
    sizes: tuple[Dim, Dim, Dim],
    dtypes: tuple[DType, DType, DType],
    together: int = 1,
) -> LoopProgram:
    """C = A B of A[rows, depth] and B in place, or in panels with so many of its rows together."""
    (rows, columns, depth), (a, b, total) = sizes, dtypes
    width, k = TILE.vectors * lanes_of(total, target), symbol("k")
    blocks, parts = dim_floordiv(rows + 5, 6), dim_floordiv(columns + width - 1, width)
    start = dim_floordiv(P, blocks) * width
    layout = None
    a_index, b_index = symbol("row") * depth + k, k * columns + symbol("column")
    if together > 1:
        step = dim_floordiv(depth + together - 1, together) * together * 16
        layout = PackedPanels(16, step, together)
        panel, place = dim_floordiv(symbol("column"), 16), dim_mod(symbol("column"), 16)
        within = dim_floordiv(k, together) * (16 * together) + dim_mod(k, together)
        b_index = panel * step + place * together + within
    store = Store(2, symbol("row") * columns + symbol("column"), Local("acc", total))
    statement = Contraction(
        "row", rows, dim_mod(P, blocks) * 6, 6, "column", columns, start, (), "k", depth,
        0, a_index, 1, b_index, layout, total, "acc", (store,), TILE,
    )  # fmt: skip
    scalars = tuple(str(size) for size in sizes if not isinstance(size, int))
    buffers = (Buffer(a, written=False), Buffer(b, written=False), Buffer(total, written=True))
    return LoopProgram(buffers, scalars, "p", parts * blocks, 1, (statement,))


def packed(b: Array, together: int) -> Array:
    """[panel][k / together][16][together]; what pads the last panel must not matter, the depth is
    padded with zeros."""
    (depth, columns), width = b.shape, 16
    count, steps = -(-columns // width), -(-depth // together)
    wide = np.full((steps * together, count * width), 3, b.dtype)
    wide[:, :columns], wide[depth:] = 0, 0
    wide[:depth, :columns] = b
    return aligned(wide.reshape(steps, together, count, width).transpose(2, 0, 3, 1), b.dtype)


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


@pytest.mark.parametrize("target", [*map(parse_target, LEVELS), *DOT_PRODUCTS], ids=str)
@pytest.mark.parametrize(("a_dtype", "b_dtype"), TOGETHER)
@pytest.mark.sweep(24)
def test_products_together_are_exact(target: Target, a_dtype: DType, b_dtype: DType) -> None:
    """Any i16, the least by the least too, whose pair of products is beyond i32, and any bytes:
    tails of rows, columns and depth, open numbers of rows, nothing read beyond a row of A."""
    for sizes in SIZES:
        rows, columns, depth = sizes
        a, b = drawn((rows, depth), a_dtype, 1), drawn((depth, columns), b_dtype, 2)
        a[0], b[:, 0] = np.iinfo(a.dtype).min, np.iinfo(b.dtype).min
        together = 4 // a.dtype.itemsize
        stored = packed(b, together)
        for shape in (sizes, (M, columns, depth)):
            c = empty((rows, columns), np.int32)
            loops = program(target, shape, (a_dtype, b_dtype, "i32"), together)
            Kernel(loops, target).run([a, stored, c], () if shape is sizes else (rows,), parts=3)
            np.testing.assert_array_equal(c, product(a, b, "i32"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("b_dtype", NARROW)
@pytest.mark.parametrize("a_dtype", NARROW)
@pytest.mark.sweep(60)
def test_narrow_integers_are_widened(level: str, a_dtype: DType, b_dtype: DType) -> None:
    """A and B of any sign and width, B in place: never read past its end."""
    target = parse_target(level)
    for rows, columns, depth in ((7, 5, 3), (13, 129, 17), (1, 64, 1)):
        a, b = drawn((rows, depth), a_dtype, 1), drawn((depth, columns), b_dtype, 2)
        for sizes in ((rows, columns, depth), (M, N, K)):
            c = empty((rows, columns), np.int32)
            kernel = Kernel(program(target, sizes, (a_dtype, b_dtype, "i32")), target)
            kernel.run([a, b, c], () if sizes[0] == rows else (rows, columns, depth))
            np.testing.assert_array_equal(c, product(a, b, "i32"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["i32", "u32", "i64", "u64"])
def test_wide_integers_wrap(level: str, dtype: DType) -> None:
    """Sums of the operands' own type."""
    target = parse_target(level)
    a, b, c = drawn((5, 9), dtype, 1), drawn((9, 37), dtype, 2), empty((5, 37), NUMPY[dtype])
    Kernel(program(target, (5, 37, 9), (dtype, dtype, dtype)), target).run([a, b, c])
    np.testing.assert_array_equal(c, product(a, b, dtype))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("a_dtype", "b_dtype"), [("f16", "f32"), ("f32", "f16"), ("f16", "f16")])
def test_halves_are_summed_in_f32(level: str, a_dtype: DType, b_dtype: DType) -> None:
    """Either operand, or both, may be f16: the bits of a product of what they widen to."""
    target = parse_target(level)
    a, b = normal((5, 9), 1, NUMPY[a_dtype]), normal((9, 37), 2, NUMPY[b_dtype])
    c, same = empty((5, 37)), empty((5, 37))
    Kernel(program(target, (5, 37, 9), (a_dtype, b_dtype, "f32")), target).run([a, b, c])
    wide = [aligned(a.astype(np.float32)), aligned(b.astype(np.float32)), same]
    Kernel(program(target, (5, 37, 9), ("f32", "f32", "f32")), target).run(wide)
    np.testing.assert_array_equal(c, same)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize(
    ("dtypes", "together"),
    [
        (("i16", "i16", "i32"), 2),
        (("i8", "u8", "i32"), 4),
        (("u8", "i8", "i32"), 1),
        (("i64", "i64", "i64"), 1),
    ],
)
def test_code_equals_the_interpreter(
    target: Target, dtypes: tuple[DType, DType, DType], together: int
) -> None:
    """The interpreter of loops widens, adds and wraps as the machine does; the text form reads
    back, and is verified."""
    a, b = drawn((4, 6), dtypes[0], 1), drawn((6, 19), dtypes[1], 2)
    stored = packed(b, together) if together > 1 else b
    loops = program(target, (4, 19, 6), dtypes, together)
    verify_loops(loops)
    assert parse_loops(print_loops(loops)) == loops
    c, expected = empty((4, 19), NUMPY[dtypes[2]]), empty((4, 19), NUMPY[dtypes[2]])
    run_program(loops, target, [a, stored, c])
    interpret(loops, target, [a.ravel(), stored.ravel(), expected.ravel()], {})
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(c, product(a, b, dtypes[2]))


@pytest.mark.parametrize(
    ("name", "dtypes", "instruction"),
    [
        ("aarch64", ("i16", "i16", "i32"), "ashr"),
        ("riscv64", ("i16", "i16", "i32"), "ashr"),
        ("riscv64", ("u8", "i8", "i32"), "ashr"),
        ("x86-64-v3+avx512f", ("i16", "i16", "i32"), "ashr"),
        ("x86-64-v3", ("u8", "i8", "i32"), "avx2.pmadd.wd"),
        ("x86-64-v3+avxvnni", ("u8", "i8", "i32"), "vpdpbusd.256"),
        ("x86-64-v4+avx512vnni", ("i8", "u8", "i32"), "vpdpbusd.512"),
        ("aarch64+asimddp", ("i8", "i8", "i32"), "sdot"),
        ("aarch64+asimddp", ("i8", "u8", "i32"), "udot"),
        ("aarch64+asimddp+i8mm", ("i8", "u8", "i32"), "usdot"),
    ],
)
def test_each_machine_multiplies_as_it_can(
    name: str, dtypes: tuple[DType, DType, DType], instruction: str
) -> None:
    """Four bytes by one instruction, or two pairs; pairs by one, or half by half."""
    target, together = parse_target(name), rows_together(dtypes[0])
    text = llvm_text(kernel_module(program(target, (7, 40, 7), dtypes, together), target))
    assert instruction in text
    assert compile_object(text, target, verify=True)[:4] == b"\x7fELF"


def test_products_that_lie_apart_are_refused() -> None:
    """A contraction that contradicts itself is an error of the compiler, not another sum."""
    target = parse_target("x86-64-v3")
    pairs: list[tuple[DType, DType]] = [("i8", "i16"), ("i8", "i8"), ("f32", "f32")]
    for a, b in pairs:
        wrong = program(target, (4, 8, 4), (a, b, "i32"), 2)
        with pytest.raises(InternalError, match="together"):
            kernel_module(wrong, target)


@pytest.mark.parametrize("depth", [8, 9])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("a_dtype", "b_dtype"), [("u8", "i8"), ("i8", "i8"), ("i16", "u8")])
@pytest.mark.sweep(36)
def test_the_op_becomes_tiles(depth: int, constant: bool, a_dtype: DType, b_dtype: DType) -> None:
    """``matmul_integer`` of narrow integers, a known and a made B, any depth, with what follows
    fused: exact."""
    a, b = drawn((11, depth), a_dtype, 1), drawn((depth, 37), b_dtype, 2)
    builder = Builder(
        [TensorType(a_dtype, a.shape), *([] if constant else [TensorType(b_dtype, b.shape)])]
    )
    right = builder.constant(b, b_dtype) if constant else 1
    total = builder.op("matmul_integer", 0, right)
    outputs = [total, builder.op("cast", builder.op("add", total, total), dtype="f32")]
    targets = [*RUNNABLE, *DOT_PRODUCTS]
    check_graph(builder, outputs, [a] if constant else [a, b], 0.0, targets)
    programs = compile_graph(builder.finish(outputs)).programs
    (tiles,) = [item for one in programs for item in one.body if isinstance(item, Contraction)]
    assert tiles.taps == ()
    assert (tiles.b_panels is not None) == (constant or "i16" not in (a_dtype, b_dtype))
    if tiles.b_panels:
        assert tiles.b_panels.together == (2 if "i16" in (a_dtype, b_dtype) else 4)


@pytest.mark.sweep(18)
@pytest.mark.parametrize(
    ("a_shape", "b_shape", "together"),
    [
        ((2, 3, 9, 8), (2, 3, 8, 32), 4),
        ((9, 12), (12, 16), 4),
        ((2, 3, 9, 8), (3, 8, 32), 1),
        ((2, 2, 8), (2, 8, 16), 1),
        ((9, 8), (8, 20), 4),
        ((2, 9, 7), (2, 7, 19), 4),
        ((9, 3), (3, 16), 4),
    ],
)
def test_bytes_made_at_run_time_are_packed(
    a_shape: tuple[int, ...], b_shape: tuple[int, ...], together: int
) -> None:
    """Where a B for each product has rows enough that read it, and with zeros behind its rest;
    else B is read in place: exact, also where B is a transposed view."""
    a, b = drawn_any(a_shape, "u8", 1), drawn_any(b_shape, "i8", 2)
    flipped = b.swapaxes(-1, -2).copy()
    builder = Builder([TensorType("u8", a.shape), TensorType("i8", flipped.shape)])
    order = (*range(b.ndim - 2), b.ndim - 1, b.ndim - 2)
    made = builder.op("max", 1, 1)
    straight = builder.op("transpose", made, permutation=order)
    outputs = [builder.op("matmul_integer", 0, straight)]
    check_graph(builder, outputs, [a, flipped], 0.0, [*RUNNABLE, *DOT_PRODUCTS])
    programs = compile_graph(builder.finish(outputs)).programs
    (tiles,) = [item for one in programs for item in one.body if isinstance(item, Contraction)]
    assert (tiles.b_panels.together if tiles.b_panels else 1) == together


@pytest.mark.broad
def test_open_sizes_of_bytes_made_at_run_time() -> None:
    """Rows of A and columns of B that are known at run time: of a product of queries and keys."""
    a, b = drawn_any((2, 9, 8), "i8", 1), drawn_any((2, 8, 21), "i8", 2)
    builder = Builder([TensorType("i8", (2, M, 8)), TensorType("i8", (2, 8, N))])
    outputs = [builder.op("matmul_integer", 0, builder.op("max", 1, 1))]
    check_graph(builder, outputs, [a, b], 0.0, [*RUNNABLE, *DOT_PRODUCTS])
    (tiles,) = [
        item
        for one in compile_graph(builder.finish(outputs)).programs
        for item in one.body
        if isinstance(item, Contraction)
    ]
    assert tiles.b_panels


def drawn_any(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """`drawn`, of any rank."""
    return drawn((int(np.prod(shape[:-1])), shape[-1]), dtype, seed).reshape(shape)


@pytest.mark.sweep(6)
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
