"""Convolutions by Winograd's algorithm: compiled code against the interpreter, their error against
float64, numbers that are not finite, when they are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.chains import chain_conv
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.lowering_harness import (
    BEST,
    Builder,
    Compiled,
    check_graph,
    compile_graph,
    f32,
    normal,
    run_compiled,
)

from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.dims import evaluate, symbol
from ingot_compiler.ir.precision import F32, FAST
from ingot_compiler.ir.types import TensorType
from ingot_compiler.kernels.packing.winograd_weights import winograd_weights
from ingot_compiler.kernels.products.tuned import DIRECT, WINOGRAD
from ingot_compiler.kernels.winograd_tiles import WinogradShape
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.targets.target import Target, parse_target

RELATIVE = 1e-5
WIDE = tuple(target for target in RUNNABLE if target.f32_lanes >= 8)  # who have the algorithm
SMALL = (1, 32, 8, 8)  # an image that is quickly compiled


def conv3x3(builder: Builder, x: int, weights: int, *bias: int, stride: int = 1) -> int:
    """A convolution that keeps the size, with 3x3 taps."""
    return same_conv(builder, x, weights, *bias, taps=(3, 3), stride=stride)


def same_conv(
    builder: Builder,
    x: int,
    weights: int,
    *bias: int,
    taps: tuple[int, int],
    stride: int = 1,
    groups: int = 1,
) -> int:
    """A convolution that keeps the size, with odd numbers of taps."""
    pads = (taps[0] // 2, taps[1] // 2)
    return builder.op(
        "conv", x, weights, *bias, strides=(stride, stride), pads_before=pads, pads_after=pads,
        dilations=(1, 1), groups=groups,
    )  # fmt: skip


def weights_of(channels: int, columns: int, taps: tuple[int, int] = (3, 3)) -> Array:
    """Weights of a convolution."""
    return normal(1, columns, channels, *taps)


def kinds(
    builder: Builder,
    outputs: list[int],
    target: Target = BEST,
    precision: str = F32,
    method: str | None = None,
) -> set[str]:
    """The kinds of the kernels that a graph becomes."""
    graph = builder.finish(outputs)
    compiled = compile_graph(graph, target, precision=precision, method=method)
    return {launch.group.kind for launch in launches_of(compiled.fused)}


def run_conv(x: Array, weights: Array, kind: str, precision: str = FAST) -> Array:
    """The result of a convolution in machine code, by a method; weights that only a run knows make
    it direct."""
    is_direct, taps = kind == DIRECT, (weights.shape[2], weights.shape[3])
    builder = Builder([f32(*x.shape), *([f32(*weights.shape)] if is_direct else [])])
    result = same_conv(builder, 0, 1 if is_direct else builder.constant(weights), taps=taps)
    graph = builder.finish([result])
    compiled = compile_graph(graph, precision=precision, method=kind)
    assert kind in {launch.group.kind for launch in launches_of(compiled.fused)}
    inputs = [x, weights] if is_direct else [x]
    (found,) = run_compiled(compiled, graph, inputs, builder.read)
    return found


@pytest.mark.sweep(6)
@pytest.mark.parametrize(
    ("images", "channels", "size", "columns"),
    [
        (1, 32, (8, 8), 16),
        (2, 32, (7, 9), 40),  # odd sizes, columns that fill no panel
        (1, 48, (4, 26), 48),  # three vectors
        (1, 256, (14, 14), 32),  # several blocks
    ],
)
def test_results_are_those_of_the_interpreter(
    images: int, channels: int, size: tuple[int, int], columns: int
) -> None:
    """Bias, residual and activation in the kernel; every launch is cut into parts that run in
    another order, on every level that has the algorithm."""
    builder = Builder([f32(images, channels, *size), f32(images, columns, *size)])
    weights, bias = (
        builder.constant(weights_of(channels, columns)),
        builder.constant(normal(2, columns)),
    )
    total = builder.op("add", conv3x3(builder, 0, weights, bias), 1)
    result = builder.op("relu", total)
    inputs = [normal(3, images, channels, *size), normal(4, images, columns, *size)]
    assert "winograd_2x2" in kinds(builder, [result], method="winograd_2x2")
    check_graph(builder, [result], inputs, RELATIVE, WIDE, method="winograd_2x2")


@pytest.mark.broad
@pytest.mark.parametrize(("channels", "columns"), [(32, 32), (64, 48), (128, 64)])
def test_groups(channels: int, columns: int) -> None:
    """Each has channels of its own, whose tiles are transformed for its columns alone."""
    builder = Builder([f32(2, 3 * channels, 9, 10)])
    weights = builder.constant(weights_of(channels, 3 * columns))
    result = same_conv(builder, 0, weights, taps=(3, 3), groups=3)
    inputs = [normal(3, 2, 3 * channels, 9, 10)]
    inputs[0][1, channels, 4, 4] = np.inf  # computed by the chain of a direct convolution
    kind = "winograd_2x2" if channels < 128 else "winograd_3x3"
    assert kind in kinds(builder, [result])
    check_graph(builder, [result], inputs, RELATIVE, WIDE)


@pytest.mark.parametrize(("channels", "columns"), [(48, 40), (24, 32)])
def test_groups_that_fill_no_panels(channels: int, columns: int) -> None:
    """Channels or columns of a group that are no multiple of 16."""
    builder = Builder([f32(1, 2 * channels, 12, 12)])
    weights = builder.constant(weights_of(channels, 2 * columns))
    found = kinds(builder, [same_conv(builder, 0, weights, taps=(3, 3), groups=2)])
    assert found & {"conv", "conv_rows"}
    assert not any(kind.startswith("winograd") for kind in found)


@pytest.mark.broad
def test_sizes_that_a_call_gives() -> None:
    """Images of any number and size: tiles beyond the end are not stored."""
    builder = Builder([TensorType("f32", (symbol("n"), 32, symbol("h"), symbol("w")))])
    result = conv3x3(builder, 0, builder.constant(weights_of(32, 16)))
    assert "winograd_2x2" in kinds(builder, [result])
    for shape in ((1, 32, 5, 7), (3, 32, 8, 2), (1, 32, 1, 1)):
        check_graph(builder, [result], [normal(1, *shape)], RELATIVE, WIDE)


def test_new_weights_run_the_same_code() -> None:
    """Loops do not depend on weights; the packed constants do, and are made by expressions that
    read these alone."""
    made: list[Compiled] = []
    for scale in (1, 2):
        builder = Builder([f32(*SMALL)])
        result = conv3x3(builder, 0, builder.constant(weights_of(32, 16) * np.float32(scale)))
        made.append(compile_graph(builder.finish([result])))
    assert made[0].programs == made[1].programs
    assert made[0].fused.constants != made[1].fused.constants


def in_f64(x: Array, weights: Array) -> Array:
    """The convolution in float64."""
    (rows, across), taps = x.shape[2:], weights.shape[2:]
    (above, before) = (size // 2 for size in taps)
    padded = np.pad(x, ((0, 0), (0, 0), (above, above), (before, before))).astype(np.float64)
    result = np.zeros((x.shape[0], len(weights), rows, across))
    for y, column in np.ndindex(taps):
        part = padded[:, :, y : y + rows, column : column + across]
        result += np.einsum("ncyx,oc->noyx", part, weights[:, :, y, column].astype(np.float64))
    return result


def rms_error(found: Array, exact: Array) -> float:
    """The root of the mean square of the errors."""
    return float(np.sqrt(np.mean((found.astype(np.float64) - exact) ** 2)))


ALLOWED = {32: "2x2", 64: "2x2", 128: "2x2 2x4 3x3", 512: "2x2 2x4 3x3 3x4"}
"""Channels -> the tiles that are precise enough for any inputs."""
ALLOWED_OF_DENSE = {16: "2x2", 32: "2x2 2x4 3x3", 64: "3x4", 128: "4x4"}
"""The same for dense inputs, without those that any inputs may have."""
ALLOWED_WHERE_LOOSE = {16: "2x2", 32: "2x4 3x3 3x4", 128: "4x4"}


def pairs(table: dict[int, str]) -> list[tuple[int, str]]:
    """Channels and the name of a method, for each tile."""
    return [(size, f"winograd_{tile}") for size, tiles in table.items() for tile in tiles.split()]


@pytest.mark.sweep(30)
@pytest.mark.parametrize("zeros", [0.8, 0.0, 0.5])
@pytest.mark.parametrize(("channels", "kind"), pairs(ALLOWED))
def test_error_is_at_most_that_of_one_chain(channels: int, kind: str, zeros: float) -> None:
    """The contract of ``f32``: also where up to 80 % of the inputs are zero."""
    x, weights = np.abs(normal(5, 1, channels, 20, 20)), weights_of(channels, 32)
    x[np.random.default_rng(6).random(x.shape) < zeros] = 0
    exact = in_f64(x, weights)
    chain = rms_error(chain_conv(x, weights), exact)
    assert 0 < rms_error(run_conv(x, weights, kind, F32), exact) <= chain


ALLOWED_OF_MORE_TAPS = {32: "2x2", 64: "2x4 3x3", 512: "3x4"}
ALLOWED_OF_DENSE_OF_MORE = {16: "2x2", 32: "2x4 3x3 3x4", 64: "4x4"}


@pytest.mark.broad
@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("taps", [5, 7])
def test_error_with_more_taps(taps: int, is_dense: bool) -> None:
    """The contract of ``f32`` for kernels that are cut into blocks of taps."""
    table = ALLOWED_OF_DENSE_OF_MORE if is_dense else ALLOWED_OF_MORE_TAPS
    for channels in [size for size in table if size <= 64]:
        x, weights = normal(5, 1, channels, 13, 13), weights_of(channels, 16, (taps, taps))
        if not is_dense:
            np.abs(x, out=x)[np.random.default_rng(6).random(x.shape) < 0.8] = 0
        exact = in_f64(x, weights)
        chain = rms_error(chain_conv(x, weights), exact)
        for tile in table[channels].split():
            found = run_conv(x, weights, f"winograd_{tile}")
            assert 0 < rms_error(found, exact) <= chain, (channels, tile)


@pytest.mark.sweep(12)
@pytest.mark.parametrize(("channels", "kind"), pairs(ALLOWED_WHERE_LOOSE))
def test_error_where_it_may_grow(channels: int, kind: str) -> None:
    """The contract of ``fast``: 2.5 times that, with as many zeros."""
    x, weights = np.abs(normal(5, 1, channels, 20, 20)), weights_of(channels, 32)
    x[np.random.default_rng(6).random(x.shape) < 0.8] = 0
    exact = in_f64(x, weights)
    chain = rms_error(chain_conv(x, weights), exact)
    assert rms_error(run_conv(x, weights, kind), exact) <= 2.5 * chain


@pytest.mark.broad
@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize(("channels", "kind"), pairs(ALLOWED_OF_DENSE))
def test_error_on_dense_inputs(channels: int, kind: str, activation: str) -> None:
    """The contract of ``f32`` for them."""
    x, weights = normal(8, 1, channels, 20, 20), weights_of(channels, 32)
    if activation == "silu":
        x /= 1 + np.exp(-x)
    exact = in_f64(x, weights)
    chain = rms_error(chain_conv(x, weights), exact)
    assert rms_error(run_conv(x, weights, kind), exact) <= chain


TABLES = {3: (ALLOWED, ALLOWED_OF_DENSE), 5: (ALLOWED_OF_MORE_TAPS, ALLOWED_OF_DENSE_OF_MORE)}


@pytest.mark.sweep(38)
@pytest.mark.parametrize("producer", ["relu", "tanh"])
@pytest.mark.parametrize("channels", [16, 32, 64, 128, 512])
@pytest.mark.parametrize("taps", TABLES)
def test_tiles_are_those_whose_error_is_allowed(taps: int, channels: int, producer: str) -> None:
    """A method that is not precise enough is not used, whoever asks for it."""
    builder = Builder([f32(1, channels, 12, 12)])
    x, weights = builder.op(producer, 0), weights_of(channels, 32, (taps, taps))
    result = same_conv(builder, x, builder.constant(weights), taps=(taps, taps))
    tables = TABLES[taps][: 1 if producer == "relu" else 2]
    wanted = {kind for table in tables for least, kind in pairs(table) if least <= channels}
    found = {kind for kind in WINOGRAD if kind in kinds(builder, [result], method=kind)}
    assert {kind for kind in found if "_1x" not in kind} == wanted


ODD_NUMBERS = [np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40]
TILES = [kind for kind in WINOGRAD if "_1x" not in kind]
BOTH = [(128, kind) for kind in TILES] + [(64, kind) for kind in TILES if kind != "winograd_4x4"]
"""Channels and methods: sums in scratch, sums in registers."""


@pytest.mark.broad
@pytest.mark.parametrize(("channels", "kind"), BOTH)
def test_a_large_image_has_the_bits_of_its_part(channels: int, kind: str) -> None:
    """One that is fetched ahead, beside one that is not; its tiles are in other blocks."""
    x, weights = normal(2, 1, channels, 66, 66), weights_of(channels, 32)
    whole, part = (run_conv(each, weights, kind) for each in (x, x[..., :16, :16]))
    np.testing.assert_array_equal(whole[..., :12, :12], part[..., :12, :12])


@pytest.mark.sweep(60)
@pytest.mark.parametrize("number", ODD_NUMBERS)
@pytest.mark.parametrize("kind", TILES)
def test_numbers_at_the_edge(number: float, kind: str) -> None:
    """A result is finite, infinite or NaN where the direct convolution has one of the same kind;
    results that see a number that is not finite have its bits."""
    channels, taps = (64, (5, 5)) if kind == "winograd_4x4" else (32, (3, 3))
    x, weights = normal(7, 1, channels, 8, 8), weights_of(channels, 16, taps) / 16
    x[0, 3, 4, 4] = x[0, 5, 0, 0] = number
    found, direct = (run_conv(x, weights, each) for each in (kind, "conv"))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(direct))
    odd = ~np.isfinite(direct)
    assert odd.any() == (not np.isfinite(number))
    np.testing.assert_array_equal(found[odd], direct[odd])
    assert np.isfinite(found[~odd]).all()


def test_sums_that_overflow_only_on_the_way() -> None:
    """Pixels whose difference overflows, where no result does: direct sums are used, bit by bit."""
    x, weights = np.full(SMALL, 3e38, np.float32), np.zeros((16, 32, 3, 3), np.float32)
    x[:, :, ::2, ::2] = -3e38
    weights[:, 3, 1, 1] = 0.5
    found, direct = (run_conv(x, weights, kind) for kind in ("winograd_2x2", "conv"))
    assert np.isfinite(direct).all()
    np.testing.assert_array_equal(found, direct)


def test_denormal_numbers_are_kept() -> None:
    """Inputs whose products are denormal come out as from float64, but for the last bits."""
    x, weights = np.full(SMALL, 1e-39, np.float32), np.ones((16, 32, 3, 3), np.float32)
    np.testing.assert_allclose(run_conv(x, weights, "winograd_2x2"), in_f64(x, weights), rtol=1e-5)


def test_it_is_for_targets_with_wide_multiply_adds() -> None:
    """``x86-64-v2`` has none; the others were not measured."""
    builder = Builder([f32(*SMALL)])
    result = conv3x3(builder, 0, builder.constant(weights_of(32, 16)))
    for text in ("x86-64-v2", "aarch64", "riscv64"):
        assert "conv" in kinds(builder, [result], parse_target(text))
    for text in ("x86-64-v3", "x86-64-v4"):
        assert "winograd_2x2" in kinds(builder, [result], parse_target(text))


@pytest.mark.parametrize(
    ("channels", "stride", "size"), [(40, 1, 8), (16, 1, 8), (32, 2, 8), (512, 1, 2)]
)
def test_what_it_is_not_for(channels: int, stride: int, size: int) -> None:
    """Channels that fill no vector or are few, strides, and weights that cost more to read than is saved."""
    builder = Builder([f32(1, channels, size, size)])
    weights = builder.constant(weights_of(channels, 64))
    assert "conv" in kinds(builder, [conv3x3(builder, 0, weights, stride=stride)])


@pytest.mark.parametrize(
    ("producer", "wanted"),
    [("", "2x2"), ("relu", "2x2"), ("silu", "3x4"), ("tanh", "3x4"), ("abs", "2x2")],
)
def test_wide_tiles_are_for_dense_inputs(producer: str, wanted: str) -> None:
    """Behind an activation that gives no zeros; ``fast`` allows them behind all."""
    builder = Builder([f32(1, 64, 24, 24)])
    x = builder.op(producer, 0) if producer else 0
    result = conv3x3(builder, x, builder.constant(weights_of(64, 64)))
    assert f"winograd_{wanted}" in kinds(builder, [result])
    assert "winograd_3x4" in kinds(builder, [result], precision=FAST)


def test_sums_and_products_of_dense_values() -> None:
    """A sum is dense if one side is, a product if both are."""
    for op, other, wanted in (
        ("add", "relu", "3x4"), ("mul", "relu", "2x2"), ("mul", "sigmoid", "3x4"),
    ):  # fmt: skip
        builder = Builder([f32(1, 64, 24, 24)])
        x = builder.op(op, builder.op("tanh", 0), builder.op(other, 0))
        result = conv3x3(builder, x, builder.constant(weights_of(64, 64)))
        assert f"winograd_{wanted}" in kinds(builder, [result]), (op, other)


def test_branches_of_dense_values() -> None:
    """What LeakyRelu chooses from a convolution's results is dense; what a mask leaves is not."""
    for is_leaky, wanted in ((True, "3x4"), (False, "2x2")):
        builder = Builder([f32(1, 64, 24, 24)])
        x = builder.op("tanh", 0)
        zero = builder.constant(np.zeros((), np.float32))
        other = (
            builder.op("mul", x, builder.constant(np.full((), 0.1, np.float32)))
            if is_leaky
            else zero
        )
        chosen = builder.op("select", builder.op("less", x, zero), other, x)
        result = conv3x3(builder, chosen, builder.constant(weights_of(64, 64)))
        assert f"winograd_{wanted}" in kinds(builder, [result])


@pytest.mark.broad
@pytest.mark.parametrize(
    ("producer", "tile", "taps"),
    [("relu", "1x2", 3), *(("tanh", "1x4", taps) for taps in (3, 5, 7, 11))],
)
def test_convolutions_along_one_axis(producer: str, tile: str, taps: int) -> None:
    """Blocks of three taps along one axis: tiles of one row, some beyond the end."""
    builder = Builder([f32(2, 128, 63)])
    x, weights = builder.op(producer, 0), builder.constant(normal(1, 32, 128, taps))
    pad = (taps // 2,)
    result = builder.op(
        "conv", x, weights, builder.constant(normal(2, 32)), strides=(1,), pads_before=pad,
        pads_after=pad, dilations=(1,), groups=1,
    )  # fmt: skip
    assert f"winograd_{tile}" in kinds(builder, [result])
    check_graph(builder, [result], [normal(1, 2, 128, 63)], RELATIVE, WIDE)


@pytest.mark.sweep(30)
@pytest.mark.parametrize(("channels", "kind"), BOTH)
@pytest.mark.parametrize("size", [(12, 12), (7, 9)])
def test_wide_tiles_are_right(channels: int, kind: str, size: tuple[int, int]) -> None:
    """Tiles that fit, and that reach beyond the image."""
    check_taps((3, 3), channels, kind, size)


@pytest.mark.sweep(58)
@pytest.mark.parametrize("kind", TILES)
@pytest.mark.parametrize("taps", [(5, 5), (7, 7), (5, 7)])
@pytest.mark.parametrize("size", [(12, 12), (5, 7)])
def test_more_taps_are_right(taps: tuple[int, int], kind: str, size: tuple[int, int]) -> None:
    """Kernels in blocks of taps, whose last ones reach beyond what surrounds the image."""
    check_taps(taps, 64, kind, size)


def check_taps(taps: tuple[int, int], channels: int, kind: str, size: tuple[int, int]) -> None:
    """A convolution by a method is what the interpreter computes."""
    builder = Builder([f32(2, channels, *size)])
    weights = builder.constant(weights_of(channels, 32, taps))
    result = same_conv(builder, 0, weights, builder.constant(normal(2, 32)), taps=taps)
    assert kind in kinds(builder, [result], precision=FAST, method=kind)
    inputs = [normal(1, 2, channels, *size)]
    check_graph(builder, [result], inputs, RELATIVE, WIDE, precision=FAST, method=kind)


def test_transformed_weights_are_made_in_parts() -> None:
    """No value in f64 is larger than the weights themselves, so that the build needs hardly more
    memory than for the result."""
    weights = TensorType("f32", (32, 64, 3, 3))
    builder = GraphBuilder(())
    leaf = builder.add("constant", [], {"weight": "0", "dtype": "f32", "shape": weights.shape})
    made = winograd_weights(builder.finish((leaf,)), WinogradShape((3, 3), (2, 4)))
    wide = [evaluate(kind.size_bytes, {}) for kind in made.types if kind.dtype == "f64"]
    assert max(wide) == 2 * evaluate(weights.size_bytes, {})
    assert made.types[made.outputs[0]] == TensorType("f32", (2, 24, 64, 16))
