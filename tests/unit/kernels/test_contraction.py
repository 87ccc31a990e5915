"""Contraction kernels against float64 matrix products, on every level that the machine runs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.kernels_harness import BEST, LEVELS, Array, Kernel, aligned, empty, normal

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, symbol
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.types import DType
from ingot_compiler.kernels.tiles import (
    choose_row_block,
    choose_tile,
    lanes_of,
    lanes_of_rest,
    panel_columns,
)
from ingot_compiler.lowering.loops.loop_blocks import is_turned_whole, turned_elements
from ingot_compiler.lowering.loops.loop_parts import PackedPanels, RegisterTile
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Local, Value
from ingot_compiler.lowering.loops.program import Buffer, Contraction, LoopProgram, Store
from ingot_compiler.targets.target import Target, parse_target

P, M, N, K = symbol("p"), symbol("m"), symbol("n"), symbol("k")
NUMPY: dict[DType, str] = {"f32": "float32", "f64": "float64"}
EPSILON: dict[DType, float] = {"f32": 2.0**-24, "f64": 2.0**-53}


def ceil_div(left: Dim, right: int) -> Dim:
    """left / right, rounded up."""
    return dim_floordiv(left + right - 1, right)


def product_program(
    target: Target,
    rows: Dim,
    columns: Dim,
    depth: Dim,
    tile: RegisterTile,
    *,
    row_block: int = 0,
    dtype: DType = "f32",
    packed: bool = True,
    a_strides: tuple[Dim, Dim] | None = None,
    epilogue: Value | None = None,
) -> LoopProgram:
    """C[m, n] = sum of A * B; buffers A, B, C, bias[n], residual[m, n]; scalars M, N, K where
    symbolic."""
    width = tile.vectors * lanes_of(dtype, target)
    block = row_block or tile.rows * 2
    blocks, parts = ceil_div(rows, block), ceil_div(columns, width)
    part = dim_floordiv(P, blocks)
    row_pitch, depth_pitch = a_strides or (depth, 1)
    layout = packed_panels(depth, dtype) if packed else None
    b_index = panel_index(layout, K) if layout else K * columns + N
    value = epilogue or Local("acc", dtype)
    statement = Contraction(
        "m", rows, dim_mod(P, blocks) * block, block, "n", columns, part * width, (), "k", depth,
        0, M * row_pitch + K * depth_pitch, 1, b_index, layout, dtype, "acc", (Store(2, M * columns + N, value),), tile,
    )  # fmt: skip
    buffers = tuple(Buffer(dtype, number == 2) for number in range(5))
    scalars = tuple(
        name
        for name, size in (("M", rows), ("N", columns), ("K", depth))
        if not isinstance(size, int)
    )
    return LoopProgram(buffers, scalars, "p", parts * blocks, 1, (statement,))


def packed_panels(depth: Dim, dtype: DType = "f32") -> PackedPanels:
    """Panels of B with ``depth`` rows."""
    width = panel_columns(dtype)
    return PackedPanels(width, depth * width)


def panel_index(layout: PackedPanels, depth: Dim) -> Dim:
    """Where the element of column ``n`` at ``depth`` lies."""
    width = layout.columns
    return dim_floordiv(N, width) * layout.step + dim_mod(N, width) + depth * width


def panels(b: Array) -> Array:
    """[panel][k][width]; what pads the last panel must not matter, so it is NaN."""
    depth, columns = b.shape
    width = 64 // b.itemsize
    count = -(-columns // width)
    wide = np.full((depth, count * width), np.nan, b.dtype)
    wide[:, :columns] = b
    return aligned(wide.reshape(depth, count, width).transpose(1, 0, 2), b.dtype)


def assert_near(got: Array, a: Array, b: Array, dtype: DType, extra: Array | float = 0.0) -> None:
    """Each element is as near as a chain of K rounded operations is for certain."""
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    bound = (
        (a.shape[1] + 3)
        * EPSILON[dtype]
        * (np.abs(a).astype(np.longdouble) @ np.abs(b) + np.abs(extra))
        * 2
    )
    assert (np.abs(got - (exact + extra)) <= bound).all()


@pytest.mark.sweep(3)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [
        (1, 1, 1),
        (7, 5, 3),
        (12, 128, 16),
        (13, 129, 17),
        (29, 100, 21),
        (5, 33, 4),
        (1, 300, 30),
        (3, 64, 2),
        (50, 16, 8),
    ],
)
def test_products_of_all_tails(level: str, rows: int, columns: int, depth: int) -> None:
    """Rows, columns and depth that no tile divides give every element of C and nothing else."""
    target = parse_target(level)
    tile = choose_tile(rows, columns, target)
    program = product_program(
        target,
        rows,
        columns,
        depth,
        tile,
        epilogue=Apply("relu", (Apply("add", (Local("acc", "f32"), Load(3, N)), "f32"),), "f32"),
    )
    a, b, bias = normal((rows, depth), 1), normal((depth, columns), 2), normal((columns,), 3)
    c = empty((rows, columns))
    Kernel(program, target).run([a, panels(b), c, bias, bias])
    exact = a.astype(np.float64) @ b.astype(np.float64) + bias
    assert np.abs(c - np.maximum(exact, 0)).max() <= 1e-4


@pytest.mark.broad
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("packed", [True, False])
def test_symbolic_sizes(level: str, packed: bool) -> None:
    """One kernel serves any number of rows, columns and depth; B may be read in place, never past
    its end."""
    target, tile = parse_target(level), RegisterTile(4, 2)
    kernel = Kernel(
        product_program(target, symbol("M"), symbol("N"), symbol("K"), tile, packed=packed), target
    )
    for rows, columns, depth in (
        (1, 1, 1),
        (4, 32, 8),
        (9, 37, 5),
        (17, 8, 0),
        (3, 70, 11),
        (0, 3, 4),
    ):
        a, b, c = normal((rows, depth), 1), normal((depth, columns), 2), empty((rows, columns))
        stored = panels(b) if packed else b
        kernel.run([a, stored, c, c, c], (rows, columns, depth))
        assert_near(c, a, b, "f32")


@pytest.mark.sweep(7)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("height", "heights"), [(4, (4, 3, 2)), (6, (6, 5, 4, 3, 2)), (8, (8, 6, 5, 4, 3, 2))]
)
def test_few_rows_of_an_open_number(level: str, height: int, heights: tuple[int, ...]) -> None:
    """Lower tiles take what is left of a tile, few rows one of their own: nothing but the rows
    there are is written, with the bits of a known number of rows."""
    target, tile, columns, depth = parse_target(level), RegisterTile(height, 1), 37, 5
    sizes = symbol("M"), symbol("N"), symbol("K")
    kernel = Kernel(product_program(target, *sizes, tile, row_block=16), target)
    a, b = normal((19, depth), 1), normal((depth, columns), 2)
    stored, whole, rest = panels(b), empty((19, columns)), np.full((1, columns), 7, np.float32)
    multiply_adds = len(re.findall("= call .*fma", kernel.text))  # as many for each row of a tile
    assert multiply_adds % sum(heights) == 0
    known = product_program(target, 19, columns, depth, RegisterTile(1, 1))
    Kernel(known, target).run([a, stored, whole, whole, whole])
    for rows in range(1, 20):
        c = np.concatenate([empty((rows, columns)), rest])
        kernel.run([a[:rows], stored, c, c, c], (rows, columns, depth))
        assert c[:rows].tobytes() == whole[:rows].tobytes()
        assert (c[rows:] == rest).all()


@pytest.mark.parametrize("level", LEVELS)
def test_f64(level: str) -> None:
    """f64 products have half the lanes and their own precision."""
    target, tile = parse_target(level), RegisterTile(4, 2)
    rows, columns, depth = 11, 43, 19
    a, b, c = (
        normal((rows, depth), 1, "f8"),
        normal((depth, columns), 2, "f8"),
        empty((rows, columns), "f8"),
    )
    program = product_program(target, rows, columns, depth, tile, dtype="f64")
    Kernel(program, target).run([a, panels(b), c, c, c])
    assert_near(c, a, b, "f64")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_strided_a(level: str, symbolic: bool) -> None:
    """A may be transposed or spread out: any pitch of row and depth, constant or not."""
    target, tile = parse_target(level), RegisterTile(4, 2)
    rows, columns, depth = 10, 20, 14
    sizes: tuple[Dim, Dim, Dim] = (
        (symbol("M"), symbol("N"), symbol("K")) if symbolic else (rows, columns, depth)
    )
    a, b, c = normal((depth, rows), 1), normal((depth, columns), 2), empty((rows, columns))
    program = product_program(target, *sizes, tile, a_strides=(1, sizes[0]))
    scalars = (rows, columns, depth) if symbolic else ()
    Kernel(program, target).run([a, panels(b), c, c, c], scalars)
    assert_near(c, a.T, b, "f32")


@pytest.mark.broad
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("depth", [3, 40])
def test_bits_do_not_depend_on_tile_block_or_threads(level: str, depth: int) -> None:
    """Each element is one chain: tiles, row blocks, symbolic sizes and cuts of the range give equal
    bits."""
    target = parse_target(level)
    rows, columns = 23, 150
    a, b = normal((rows, depth), 1), normal((depth, columns), 2)
    results: set[bytes] = set()
    for tile, block, parts in (
        (RegisterTile(6, 2), 12, 1),
        (RegisterTile(1, 1), 5, 3),
        (RegisterTile(4, 3), 24, 7),
        (RegisterTile(6, 1), 6, 2),
    ):
        stored = panels(b)
        known: tuple[Dim, Dim, Dim] = (rows, columns, depth)
        for sizes in (known, (symbol("M"), symbol("N"), symbol("K"))):
            c = empty((rows, columns))
            kernel = Kernel(product_program(target, *sizes, tile, row_block=block), target)
            kernel.run(
                [a, stored, c, c, c], (rows, columns, depth) if sizes[0] != rows else (), parts
            )
            results.add(c.tobytes())
    assert len(results) == 1


@pytest.mark.sweep(60)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("columns", [3, 8, 24, 37])
@pytest.mark.parametrize("packed", [True, False])
def test_last_columns_in_half_a_vector(
    level: str, dtype: DType, columns: int, packed: bool
) -> None:
    """Where half a vector of 512 bits holds the last columns, sums are the bits of whole vectors,
    and nothing past the end of B is read."""
    target, rows, depth = parse_target(level), 17, 11
    tile = choose_tile(rows, columns, target, dtype)
    a, b = normal((rows, depth), 1, NUMPY[dtype]), normal((depth, columns), 2, NUMPY[dtype])
    results: set[bytes] = set()
    stored = panels(b) if packed else b
    known: tuple[Dim, Dim, Dim] = (rows, columns, depth)
    for sizes in (known, (symbol("M"), symbol("N"), symbol("K"))):
        c = empty((rows, columns), NUMPY[dtype])
        program = product_program(target, *sizes, tile, dtype=dtype, packed=packed)
        kernel = Kernel(program, target)
        scalars = (rows, columns, depth) if program.scalars else ()
        kernel.run([a, stored, c, c, c], scalars)
        assert_near(c, a, b, dtype)
        results.add(c.tobytes())
        if not program.scalars:
            halved = lanes_of_rest(columns, dtype, 1, target)
            assert f"fma.v{halved}" in kernel.text or not target.has_fma
    assert len(results) == 1


@pytest.mark.sweep(4)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("tile", "depth"), [((4, 2), 512), ((6, 1), 515), ((3, 3), 520)])
@pytest.mark.parametrize("is_open", [True, False])
def test_tiles_fetch_the_panel_behind_theirs(
    level: str, tile: tuple[int, int], depth: int, is_open: bool
) -> None:
    """Several tiles above one another share it; the bits are those of one row after the other."""
    target, columns = parse_target(level), 576
    a, b = normal((29, depth), 1), normal((depth, columns), 2)
    stored, wanted = panels(b), empty((29, columns))
    single = product_program(target, 29, columns, depth, RegisterTile(1, 1))
    Kernel(single, target).run([a, stored, wanted, wanted, wanted])
    for rows in (29, 4 * tile[0], tile[0], 1):
        known: Dim = symbol("M") if is_open else rows
        program = product_program(target, known, columns, depth, RegisterTile(*tile))
        kernel, c = Kernel(program, target), empty((rows, columns))
        kernel.run([a[:rows], stored, c, c, c], (rows,) if is_open else ())
        assert c.tobytes() == wanted[:rows].tobytes()
        into_l2 = kernel.text.count("i32 0, i32 2, i32 1)")
        is_fetched = depth % 4 == 0 and (is_open or rows > tile[0])
        assert bool(into_l2) == (is_fetched or (rows == 1 and not is_open))


def test_weights_of_one_row_are_prefetched() -> None:
    """Into the second cache, where they are too many to stay there; several rows read them
    again."""
    target = parse_target(BEST)
    for rows, depth, is_prefetched in ((1, 1000, True), (1, 100, False), (2, 100, False)):
        tile = choose_tile(rows, 1024, target)
        text = llvm_text(kernel_module(product_program(target, rows, 1024, depth, tile), target))
        assert ("i32 0, i32 2, i32 1)" in text) == is_prefetched


@pytest.mark.sweep(15)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("columns", [32, 45])
@pytest.mark.parametrize("symbolic", [False, True])
def test_heavy_epilogues_equal_light_ones(level: str, columns: int, symbolic: bool) -> None:
    """An epilogue with gelu and a residual sees the right row, column, accumulator and neighbour
    tensor."""
    target = parse_target(level)
    rows, depth = 14, 9
    tile = choose_tile(rows, columns, target)
    a, b, bias = normal((rows, depth), 1), normal((depth, columns), 2), normal((columns,), 3)
    residual, c = normal((rows, columns), 4), empty((rows, columns))
    sizes: tuple[Dim, Dim, Dim] = (
        (symbol("M"), symbol("N"), symbol("K")) if symbolic else (rows, columns, depth)
    )
    biased = Apply("add", (Local("acc", "f32"), Load(3, N)), "f32")
    value = Apply("add", (Apply("gelu_none", (biased,), "f32"), Load(4, M * sizes[1] + N)), "f32")
    program = product_program(target, *sizes, tile, epilogue=value)
    arrays = [a, panels(b), c, bias, residual]
    Kernel(program, target).run(arrays, (rows, columns, depth) if symbolic else ())
    x = a.astype(np.float64) @ b.astype(np.float64) + bias
    erf = np.vectorize(__import__("math").erf)
    assert np.abs(c - (0.5 * x * (1 + erf(x / np.sqrt(2))) + residual)).max() < 2e-5


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("stride", "channels", "kernel"), [(1, 5, 3), (2, 3, 7), (2, 16, 3), (1, 20, 1)]
)
def test_convolution_over_a_haloed_image(
    level: str, stride: int, channels: int, kernel: int
) -> None:
    """Taps over an image with a halo make a convolution, also where a row of C crosses rows of the
    image."""
    target = parse_target(level)
    size, outputs = 9, 21
    radius, out = kernel // 2, -(-9 // stride)
    pitch = (size + 2 * radius) * channels
    tile = choose_tile(out * out, outputs, target)
    layout = packed_panels(kernel * kernel * channels)
    width = tile.vectors * target.f32_lanes
    ky, kx, count = symbol("ky"), symbol("kx"), -(-outputs // width)
    a_index = dim_floordiv(M, out) * (stride * pitch) + dim_mod(M, out) * (stride * channels)
    a_index = a_index + ky * pitch + kx * channels + K
    depth = (ky * kernel + kx) * channels + K
    block = choose_row_block(out * out, outputs, tile, target)
    blocks = ceil_div(out * out, block)
    panel = dim_floordiv(P, blocks)
    statement = Contraction(
        "m", out * out, dim_mod(P, blocks) * block, block, "n", outputs, panel * width, (("ky", kernel), ("kx", kernel)),
        "k", channels, 0, a_index, 1, panel_index(layout, depth), layout,
        "f32", "acc", (Store(2, M * outputs + N, Local("acc", "f32")),), tile,
    )  # fmt: skip
    buffers = (
        Buffer("f32", written=False),
        Buffer("f32", written=False),
        Buffer("f32", written=True),
    )
    image = normal((size + 2 * radius, size + 2 * radius, channels), 1)
    weights, c = normal((kernel * kernel * channels, outputs), 2), empty((out * out, outputs))
    Kernel(LoopProgram(buffers, (), "p", blocks * count, 1, (statement,)), target).run(
        [image, panels(weights), c]
    )
    places = [(y * stride, x * stride) for y in range(out) for x in range(out)]
    patches = np.stack([image[y : y + kernel, x : x + kernel].reshape(-1) for y, x in places])
    assert_near(c, patches, weights, "f32")


@pytest.mark.parametrize("level", LEVELS)
def test_infinities_and_nan_pass(level: str) -> None:
    """A row of A with NaN or inf spoils its own row of C, no other."""
    target, tile = parse_target(level), RegisterTile(4, 2)
    a, b, c = normal((9, 7), 1), np.abs(normal((7, 30), 2)) + 0.1, empty((9, 30))
    a[2, 3], a[8, 0] = np.nan, np.inf
    Kernel(product_program(target, 9, 30, 7, tile), target).run([a, panels(b), c, c, c])
    assert np.isnan(c[2]).all()
    assert (c[8] == np.inf).all()
    assert np.isfinite(np.delete(c, (2, 8), axis=0)).all()


@pytest.mark.parametrize("rows", [1, 2, 5, 7, 49, 128, 197, 3136, symbol("rows")])
@pytest.mark.parametrize("columns", [1, 10, 24, 64, 768, 50257, symbol("columns")])
def test_tiles_fit_the_registers(rows: Dim, columns: Dim) -> None:
    """A chosen tile fits the register file of every target, and row blocks are whole tiles."""
    for name in ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "riscv64"):
        target = parse_target(name)
        tile = choose_tile(rows, columns, target)
        assert tile.rows * tile.vectors + tile.vectors + 1 <= target.vector_register_count
        assert not isinstance(rows, int) or tile.rows <= rows
        assert choose_row_block(rows, columns, tile, target) % tile.rows == 0


def test_panels_without_whole_vectors_are_refused() -> None:
    """A vector of eight columns that would read two panels of twelve: an error of the compiler."""
    target = parse_target("x86-64-v3")
    program = product_program(target, 8, 48, 4, RegisterTile(4, 3))
    (statement,) = program.body
    assert isinstance(statement, Contraction)
    narrow = replace(statement, b_panels=PackedPanels(12, 48))
    with pytest.raises(InternalError, match="holds no whole vectors"):
        kernel_module(replace(program, body=(narrow,)), target)


def test_foreign_targets_compile() -> None:
    """Kernels for machines that are not this one become objects."""
    for name in ("aarch64", "riscv64"):
        target = parse_target(name)
        module = kernel_module(product_program(target, 13, 70, 9, RegisterTile(4, 2)), target)
        assert compile_object(llvm_text(module), target, verify=True)[:4] == b"\x7fELF"


def test_no_block_is_long() -> None:
    """LLVM is quadratic in the length of a block: none of the usual tiles passes 600
    instructions."""
    target = parse_target(BEST)
    for rows, columns in ((128, 768), (196, 256), (49, 512), (1, 1000), (784, 24), (128, 80)):
        tile = choose_tile(rows, columns, target)
        text = llvm_text(
            kernel_module(
                product_program(target, rows, columns, 768, tile, row_block=tile.rows * 4), target
            )
        )
        lengths = [block.count("\n") for block in text.split(":\n")]
        assert max(lengths) <= 600


def turned_program(
    target: Target, rows: Dim, columns: Dim, depth: Dim, tile: RegisterTile
) -> LoopProgram:
    """The program of a product by a B whose columns lie together."""
    plain = product_program(target, rows, columns, depth, tile, packed=False)
    (statement,) = plain.body
    assert isinstance(statement, Contraction)
    turned = replace(statement, b_index=N * depth + K, turned=True)
    elements = turned_elements(turned, lanes_of("f32", target))
    scratch_bytes = dim_mul(elements, 4) if is_turned_whole(turned) else 0
    return replace(plain, body=(turned,), scratch_bytes=scratch_bytes)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("depth", [1, 5, 16, 37, 250, 600, 1000])
@pytest.mark.parametrize("is_open", [False, True])
def test_turned_factor_gives_the_bits_of_one_in_rows(
    level: str, depth: int, *, is_open: bool
) -> None:
    """Columns of any number, whole vectors and not, a depth that is no multiple of the lanes and
    one of several blocks: the sums have one order, whether blocks are turned for one tile of rows
    or all of the depth for several."""
    target = parse_target(level)
    for rows, columns in ((1, 37), (3, 21), (9, 5)):
        sizes: tuple[Dim, Dim, Dim] = (rows, columns, depth)
        if is_open:
            sizes = symbol("M"), symbol("N"), symbol("K")
        tile = RegisterTile(min(rows, 4), 1 + (rows == 1))
        a, b = normal((rows, depth), 0), normal((depth, columns), 1)
        found: list[Array] = []
        for program, factor in (
            (product_program(target, *sizes, tile, packed=False), b),
            (turned_program(target, *sizes, tile), aligned(b.T)),
        ):
            result = empty((rows, columns))
            kernel = Kernel(program, target)
            arrays = [a, factor, result, result, result]
            kernel.run(arrays, (rows, columns, depth) if is_open else ())
            found.append(result)
        assert found[0].tobytes() == found[1].tobytes()
