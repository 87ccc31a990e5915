"""Matrix products by Strassen's algorithm: compiled code against the interpreter, their error against
float64, numbers that are not finite, when they are chosen."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from tests.harness.chains import chain_product
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.lowering_harness import (
    Builder,
    check_graph,
    compile_graph,
    f32,
    normal,
    run_compiled,
)

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.precision import F32, FAST
from ingot_compiler.ir.types import DType
from ingot_compiler.kernels.products import strassen as choose_strassen
from ingot_compiler.kernels.products.product_cost import least_loss
from ingot_compiler.kernels.products.strassen import StrassenFacts, strassen_shape
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.lowering.loops.strassen import PRODUCTS, RESULTS
from ingot_compiler.targets.processors import ProcessorClass
from ingot_compiler.targets.target import Target, parse_target

RELATIVE = 1e-5
NUMPY_HALVES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
V4 = parse_target("x86-64-v4:znver4")  # where it gains most
WIDE = (V4,) if any(target.f32_lanes == V4.f32_lanes for target in RUNNABLE) else ()
STRASSEN, DIRECT = "matmul_strassen", "matmul"


def kind_of(builder: Builder, output: int, precision: str = F32) -> str:
    """The kind of the product that a graph has."""
    compiled = compile_graph(builder.finish([output]), V4, precision=precision)
    (kind,) = {launch.group.kind for launch in launches_of(compiled.fused)} & {STRASSEN, DIRECT}
    return kind


def run_product(
    target: Target, x: Array, weights: Array, kind: str = STRASSEN, *, is_open: bool = False
) -> Array:
    """A product in machine code, perhaps of an open number of rows: weights that only a run knows
    make it direct."""
    is_direct, rows = kind == DIRECT, symbol("n") if is_open else x.shape[0]
    builder = Builder([f32(rows, x.shape[1]), *([f32(*weights.shape)] if is_direct else [])])
    result = builder.op("matmul", 0, 1 if is_direct else builder.constant(weights))
    graph = builder.finish([result])
    compiled = compile_graph(graph, target)
    assert kind in {launch.group.kind for launch in launches_of(compiled.fused)}
    (found,) = run_compiled(compiled, graph, [x, weights] if is_direct else [x], builder.read)
    return found


def tile_rows(rows: Dim, target: Target) -> int:
    """Rows of a tile of a product of so many by 768x192."""
    shape = strassen_shape(StrassenFacts(rows, 768, 192, is_dense=False, allows_more=False), target)
    assert shape is not None
    return shape.rows


def never(*_: object) -> float:
    """Return the cost of what nobody chooses."""
    return math.inf


@pytest.fixture
def preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products that the algorithm is precise enough for run by it, whatever it costs."""
    monkeypatch.setattr(choose_strassen, "direct_cycles", never)


def on_wide(test: Callable[..., None]) -> Callable[..., None]:
    """Where there is such a processor, and whatever it costs."""
    marked: Callable[..., None] = pytest.mark.parametrize("target", WIDE, ids=str)(
        pytest.mark.usefixtures("preferred")(test)
    )
    return marked


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Small products run by the algorithm, too, which are quickly interpreted."""
    for name, value in (
        ("_BLOCK_MIN", 16), ("_DEPTH_MIN", 32), ("_ROWS_MIN", 1), ("direct_cycles", never), ("_SHARE", 2),
    ):  # fmt: skip
        monkeypatch.setattr(choose_strassen, name, value)
    return monkeypatch


def test_products_and_results_are_those_of_a_matrix_product() -> None:
    """The seven products, by numbers that are exact."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, (2, 2)) for _ in range(2))

    def summed(side: tuple[tuple[int, int], ...], parts: list[int]) -> int:
        return sum(sign * parts[part] for part, sign in side)

    flat_a, flat_b = ([int(value) for value in each.flat] for each in (a, b))
    products = [summed(left, flat_a) * summed(right, flat_b) for left, right in PRODUCTS]
    assert [summed(side, products) for side in RESULTS] == (a @ b).flatten().tolist()
    assert all(side[0][1] == 1 for sides in PRODUCTS for side in sides)


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "scratch"),
    [
        (24, 32, 64, 1 << 20),  # one tile
        (37, 64, 192, 1 << 20),  # rows that fill no tile, two tiles of columns, two blocks of depth
        (61, 32, 64, 1),  # tiles of two vectors, a unit for each tile of rows
        (40, 32, 97, 1 << 20),  # one column beside a tile
        (
            37,
            64,
            191,
            1,
        ),  # columns that fill no tile: more than half of one, and a part of a vector
    ],
)
def test_results_are_those_of_the_interpreter(
    any_size: pytest.MonkeyPatch, rows: int, depth: int, columns: int, scratch: int
) -> None:
    """Bias, residual and activation in the kernel; every launch is cut into parts that run in
    another order."""
    any_size.setattr(choose_strassen, "_SCRATCH_BYTES_MAX", scratch)
    builder = Builder([f32(rows, depth), f32(rows, columns)])
    weights, bias = (
        builder.constant(normal(1, depth, columns)),
        builder.constant(normal(2, columns)),
    )
    biased = builder.op("add", builder.op("matmul", 0, weights), bias)
    result = builder.op("relu", builder.op("add", biased, 1))
    assert kind_of(builder, result) == STRASSEN
    inputs = [normal(3, rows, depth), normal(4, rows, columns)]
    check_graph(builder, [result], inputs, RELATIVE, WIDE)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("rows", [1, 2, 15, 63, 64, 65, 79, 200])
def test_an_open_number_of_rows(any_size: pytest.MonkeyPatch, rows: int) -> None:
    """Few rows, one or some, are a direct product; of more those behind the last tile are."""
    for name, number in (("_ROWS_MIN", 64), ("_SCRATCH_BYTES_MAX", 1)):  # units of one tile
        any_size.setattr(choose_strassen, name, number)
    builder = Builder([f32(symbol("n"), 64), f32(symbol("n"), 192)])
    product = builder.op("matmul", 0, builder.constant(normal(1, 64, 192)))
    result = builder.op("relu", builder.op("add", product, 1))
    assert kind_of(builder, result) == STRASSEN
    check_graph(builder, [result], [normal(2, rows, 64), normal(3, rows, 192)], RELATIVE, WIDE)


@pytest.mark.parametrize(("per_image", "kernels"), [(197, 1), (7, 2)])
def test_an_open_number_of_images_may_be_enough_rows(per_image: int, kernels: int) -> None:
    """Where one image has enough rows, there are no kernels of a direct product."""
    builder = Builder([f32(symbol("n"), per_image, 768)])
    result = builder.op("matmul", 0, builder.constant(normal(1, 768, 192 * 4)))
    compiled = compile_graph(builder.finish([result]), V4)
    products = [launch for launch in launches_of(compiled.fused) if launch.group.kind == STRASSEN]
    assert (len(products) > 1) == (kernels > 1)
    assert len(products) >= kernels


@pytest.mark.broad
@on_wide
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_weights_of_16_bits_are_widened(
    any_size: pytest.MonkeyPatch, target: Target, dtype: DType
) -> None:
    """Weights that are stored in 16 bits are found where they lie, and give the bits of f32."""
    del any_size
    weights = normal(9, 64, 192).astype(NUMPY_HALVES[dtype])
    x, builder = normal(10, 37, 64), Builder([f32(37, 64)])
    wide = builder.op("cast", builder.constant(weights, dtype), dtype="f32")
    result = builder.op("matmul", 0, wide)
    assert kind_of(builder, result) == STRASSEN
    graph = builder.finish([result])
    (found,) = run_compiled(compile_graph(graph, target), graph, [x], builder.read)
    np.testing.assert_array_equal(found, run_product(target, x, weights.astype(np.float32)))


def rms_error(found: Array, exact: Array) -> float:
    """The root of the mean square of the errors."""
    return float(np.sqrt(np.mean((found.astype(np.float64) - exact) ** 2)))


@on_wide
@pytest.mark.sweep(60)
@pytest.mark.parametrize(
    ("depth", "zeros"), [(768, 0.0), (576, 0.8), (672, 0.8), (768, 0.8), (1536, 0.8), (3072, 0.8)]
)
def test_error_is_at_most_that_of_one_chain(target: Target, depth: int, zeros: float) -> None:
    """The contract of ``f32``: also where up to 80 % of the inputs are zero."""
    x, weights = normal(5, 64, depth), normal(6, depth, 192)
    x[np.random.default_rng(6).random(x.shape) < zeros] = 0
    exact = x.astype(np.float64) @ weights.astype(np.float64)
    chain = rms_error(chain_product(x, weights), exact)
    assert 0 < rms_error(run_product(target, x, weights), exact) <= chain


@on_wide
@pytest.mark.sweep(24)
@pytest.mark.parametrize("depth", [384, 480, 512])
@pytest.mark.parametrize("shift", [0, 3])
def test_error_of_dense_inputs_at_a_short_depth(target: Target, depth: int, shift: int) -> None:
    """The same contract, also where the mean of the inputs is far from 0."""
    x, weights = normal(5, 64, depth) + np.float32(shift), normal(6, depth, 192)
    builder = Builder([f32(64, depth)])
    dense = builder.op("silu", 0)
    result = builder.op("matmul", dense, builder.constant(weights))
    assert kind_of(builder, result) == STRASSEN
    graph = builder.finish([dense, result])
    inputs, found = run_compiled(compile_graph(graph, target), graph, [x], builder.read)
    exact = inputs.astype(np.float64) @ weights.astype(np.float64)
    assert rms_error(found, exact) <= rms_error(chain_product(inputs, weights), exact)


@on_wide
def test_error_beside_rows_that_are_large(target: Target) -> None:
    """Over a tensor it is that of the contract; the row that shares a tile with a large one bears
    its error."""
    x, weights = normal(5, 64, 768), normal(6, 768, 192)
    x[3] *= 1000
    exact = x.astype(np.float64) @ weights.astype(np.float64)
    found, chain = run_product(target, x, weights), chain_product(x, weights)
    assert rms_error(found, exact) <= rms_error(chain, exact)
    others = [row for row in range(64) if row not in (3, 3 + tile_rows(64, target) // 2)]
    assert rms_error(found[others], exact[others]) <= rms_error(chain[others], exact[others])


@on_wide
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40])
def test_numbers_at_the_edge(target: Target, number: float, is_open: bool) -> None:
    """A result is finite, infinite or NaN where the direct product has one of the same kind; results
    that see a number that is not finite have its bits, in a whole tile and in the rows behind."""
    x, weights = normal(7, 89, 768), normal(8, 768, 192) / 64
    whole = 89 - 89 % tile_rows(symbol("n") if is_open else 89, target)
    assert whole < 89
    for row, column in ((3, 5), (8, 700), (40, 64), (88, 1)):
        x[row, column] = number
    found = run_product(target, x, weights, is_open=is_open)
    direct = run_product(target, x, weights, DIRECT)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(direct))
    odd = ~np.isfinite(direct)
    assert odd.any() == (not np.isfinite(number))
    np.testing.assert_array_equal(found[odd], direct[odd])
    assert np.isfinite(found[~odd]).all()
    np.testing.assert_array_equal(found[whole:], direct[whole:])  # they fill no tile


@on_wide
def test_weights_at_the_edge(target: Target) -> None:
    """Weights that are not finite, and those whose sum is not."""
    x, weights = normal(7, 64, 768), normal(8, 768, 192) / 64
    weights[5, 7], weights[400, 100], weights[600, 150], weights[70, 20] = (
        np.inf,
        np.nan,
        3e38,
        3e38,
    )
    weights[70, 68] = 3e38
    found, direct = (run_product(target, x, weights, kind) for kind in (STRASSEN, DIRECT))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(direct))
    odd = ~np.isfinite(direct)
    np.testing.assert_array_equal(found[odd], direct[odd])
    assert np.isfinite(found[~odd]).all()


@on_wide
def test_sums_that_overflow_only_on_the_way(target: Target) -> None:
    """Rows whose sum overflows, where no result does: the direct product is used, bit by bit."""
    x, weights = np.full((64, 768), 3e38, np.float32), np.zeros((768, 128), np.float32)
    weights[3] = 0.5
    found, direct = (run_product(target, x, weights, kind) for kind in (STRASSEN, DIRECT))
    assert np.isfinite(direct).all()
    np.testing.assert_array_equal(found, direct)


@on_wide
def test_denormal_numbers_are_kept(target: Target) -> None:
    """Inputs whose products are denormal come out as from float64, but for the last bits."""
    x, weights = np.full((64, 768), 1e-40, np.float32), np.ones((768, 128), np.float32)
    exact = x.astype(np.float64) @ weights.astype(np.float64)
    np.testing.assert_allclose(run_product(target, x, weights), exact, rtol=1e-5)


def chosen(
    rows: Dim, depth: Dim, columns: Dim, target: str = "x86-64-v4:znver4", **more: bool
) -> bool:
    """Whether a product of such sizes runs by the algorithm."""
    facts = StrassenFacts(
        rows, depth, columns, more.get("is_dense", False), more.get("allows_more", False)
    )
    return strassen_shape(facts, parse_target(target)) is not None


@pytest.mark.parametrize(
    "sizes", [(128, 768, 768), (197, 3072, 768), (1500, 2048, 512), (24, 768, 50257)]
)
def test_what_it_is_for(sizes: tuple[int, int, int]) -> None:
    """Many rows, a long depth, many columns; the levels that were measured."""
    assert chosen(*sizes)
    assert not any(chosen(*sizes, target) for target in ("x86-64-v2", "x86-64-v3", "aarch64"))


@pytest.mark.parametrize(
    "sizes",
    [
        (15, 768, 768),  # no tiles
        (128, 512, 768),  # one chain is nearer to the truth
        (128, 768, 60),  # no tiles
        (128, 768, 127),  # half of the columns fill no tile
        (128, 6144, 64),  # sums of rows that are far, for few columns
        (47, 768, 64),  # most rows fill no tile
        (128, 800, 768),  # no blocks of the depth
        (symbol("n"), 768, 60), (128, symbol("k"), 768),
    ],
)  # fmt: skip
def test_what_it_is_not_for(sizes: tuple[Dim, Dim, Dim]) -> None:
    """Sizes at which it loses, or is not precise enough."""
    assert not chosen(*sizes)


def test_how_many_of_an_open_number_of_rows_gain() -> None:
    """From the number that a shape says on, every fixed number of rows has the algorithm, too; few
    columns need more rows."""
    for depth, columns, least in ((768, 768, 84), (1024, 2816, 84), (2048, 256, 84)):
        facts = StrassenFacts(symbol("n"), depth, columns, is_dense=False, allows_more=False)
        shape = strassen_shape(facts, V4)
        assert shape is not None
        assert shape.rows_min == least
        assert all(chosen(rows, depth, columns) for rows in range(least, 600))


@pytest.mark.parametrize(
    ("sizes", "has_few_weights"),
    [((128, 768, 768), False), ((197, 768, 3072), False), ((784, 512, 512), True)],
)
def test_classes_of_processors_decide(sizes: tuple[int, int, int], has_few_weights: bool) -> None:
    """Where additions share the ports of multiply-adds, it gains nothing, and where two of them
    begin in a cycle only beside few weights, for which it waits; code for any processor of a level
    takes what loses least on the worst of them."""
    rows, depth, columns = sizes
    expected = {
        ":znver4": True,
        ":znver5": has_few_weights,
        ":sapphirerapids": False,
        "": has_few_weights,
    }
    for tuning, gains in expected.items():
        assert chosen(rows, depth, columns, f"x86-64-v4{tuning}", is_dense=True) == gains
    assert not chosen(rows, 3072, columns, "x86-64-v4", is_dense=True)


def test_the_least_loss_is_of_the_class_for_which_a_choice_is_worst() -> None:
    """A fastest choice of one class that is far slower on another is none for both."""
    cycles = {"a": (1.0, 2.0), "b": (1.5, 1.4), "c": (1.2, 1.2)}
    zen4, zen5 = (parse_target(f"x86-64-v4:{name}").processors[0] for name in ("znver4", "znver5"))

    def cost(choice: str, processor: ProcessorClass) -> float:
        return cycles[choice][processor is zen5]

    assert least_loss(("a", "b", "c"), (zen4,), cost) == "a"
    assert least_loss(("a", "b", "c"), (zen4, zen5), cost) == "c"


def test_inputs_and_precision_decide_at_a_short_depth() -> None:
    """Dense inputs are allowed less depth, and so is everything with ``fast``."""
    assert chosen(128, 384, 768, is_dense=True)
    assert not chosen(128, 384, 768)
    assert not chosen(128, 352, 768, is_dense=True)
    assert chosen(128, 384, 768, allows_more=True)
    for producer, precision, wanted in (
        ("relu", F32, DIRECT), ("silu", F32, STRASSEN), ("relu", FAST, STRASSEN),
    ):  # fmt: skip
        builder = Builder([f32(128, 384)])
        weights = builder.constant(normal(1, 384, 192))
        result = builder.op("matmul", builder.op(producer, 0), weights)
        assert kind_of(builder, result, precision) == wanted, (producer, precision)
