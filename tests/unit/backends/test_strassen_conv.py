"""Convolutions by Strassen's algorithm: compiled code against the interpreter and direct ones, their
error against float64, numbers that are not finite, when they are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.harness.chains import chain_product
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import (
    Builder,
    check_graph,
    compile_graph,
    f32,
    normal,
    run_compiled,
)
from tests.unit.kernels.test_strassen import (
    NUMPY_HALVES,
    WIDE,
    never,
    on_wide,
    preferred,
    rms_error,
)

import ingot
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.making.options.tuning_file import tuning_text
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.types import DType
from ingot_compiler.kernels.products import conv_rows
from ingot_compiler.kernels.products import strassen as choose_strassen
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.targets.target import Target, parse_target

__all__ = ["preferred"]  # a fixture
RELATIVE = 1e-5
STRASSEN, DIRECT = "conv_strassen", "conv"
V4 = parse_target("x86-64-v4:znver4")  # where it gains most
Ints = tuple[int, ...]
Geometry = Mapping[str, Ints]
NOTHING: Geometry = {}


def conv(
    builder: Builder,
    weights: int,
    *bias: int,
    rank: int,
    x: int = 0,
    groups: int = 1,
    more: Geometry = NOTHING,
) -> int:
    """A convolution; what is not said is 1, pads are 0."""
    ones, zeros = (1,) * rank, (0,) * rank
    usual = {"strides": ones, "pads_before": zeros, "pads_after": zeros, "dilations": ones}
    return builder.op("conv", x, weights, *bias, groups=groups, **{**usual, **more})


def kinds(builder: Builder, output: int, target: Target = V4) -> set[str]:
    """The kinds of the kernels that a graph becomes."""
    compiled = compile_graph(builder.finish([output]), target)
    return {launch.group.kind for launch in launches_of(compiled.fused)}


def run_conv(
    target: Target, x: Array, weights: Array, kind: str, more: Geometry = NOTHING
) -> Array:
    """The result in machine code: weights that only a run knows make it direct."""
    is_direct = kind == DIRECT
    builder = Builder([f32(*x.shape), *([f32(*weights.shape)] if is_direct else [])])
    given = 1 if is_direct else builder.constant(weights)
    result = conv(builder, given, rank=weights.ndim - 2, more=more)
    graph = builder.finish([result])
    compiled = compile_graph(graph, target)
    assert kind in {launch.group.kind for launch in launches_of(compiled.fused)}
    inputs = [x, weights] if is_direct else [x]
    (found,) = run_compiled(compiled, graph, inputs, builder.read)
    return found


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small convolutions run by the algorithm, too, which are quickly interpreted."""
    for name, value in (
        ("_BLOCK_MIN", 16), ("_DEPTH_MIN", 32), ("direct_cycles", never), ("_SHARE", 2),
    ):  # fmt: skip
        monkeypatch.setattr(choose_strassen, name, value)
    for name in ("_ROWS_CHANNELS_MAX", "_ROWS_PRODUCTS_MAX"):
        monkeypatch.setattr(conv_rows, name, 0)


@pytest.mark.broad
@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize(
    ("image", "weights", "more"),
    [
        ((1, 32, 5, 5), (64, 32, 1, 1), {}),
        ((2, 64, 5, 7), (100, 64, 1, 1), {}),  # rows and columns that fill no tile
        ((1, 64, 9, 8), (64, 64, 1, 1), {"strides": (2, 2)}),
        ((2, 32, 35), (96, 32, 3), {"strides": (2,), "pads_before": (1,), "pads_after": (1,)}),
        ((1, 32, 9, 11), (96, 32, 3, 3), {"strides": (2, 2), "pads_before": (1, 1)}),  # taps
        ((1, 32, 12, 5), (64, 32, 2, 1), {"dilations": (3, 1)}),
        ((1, 32, 4, 18), (64, 32, 1, 3), {"pads_before": (0, 1), "pads_after": (0, 1)}),
    ],
)
def test_results_are_those_of_the_interpreter(image: Ints, weights: Ints, more: Geometry) -> None:
    """Bias and activation in the kernel; every launch is cut into parts that run in another order."""
    builder = Builder([f32(*image)])
    constants = builder.constant(normal(1, *weights)), builder.constant(normal(2, weights[0]))
    result = builder.op("silu", conv(builder, *constants, rank=len(image) - 2, more=more))
    assert STRASSEN in kinds(builder, result)
    check_graph(builder, [result], [normal(3, *image)], RELATIVE, WIDE)


@pytest.mark.usefixtures("any_size")
def test_a_residual_is_added_in_the_kernel() -> None:
    """Of an image of two, whose pixels are no multiple of a tile."""
    builder = Builder([f32(2, 128, 5, 5), f32(2, 128, 5, 5)])
    result = conv(builder, builder.constant(normal(1, 128, 128, 1, 1)), rank=2)
    result = builder.op("relu", builder.op("add", result, 1))
    assert STRASSEN in kinds(builder, result)
    check_graph(
        builder, [result], [normal(2, 2, 128, 5, 5), normal(3, 2, 128, 5, 5)], RELATIVE, WIDE
    )


@pytest.mark.sweep(60)
@on_wide
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_weights_of_16_bits_give_the_bits_of_f32(target: Target, dtype: DType) -> None:
    """They are widened where they lie, or when the model is compiled."""
    weights = normal(9, 192, 768, 1, 1).astype(NUMPY_HALVES[dtype])
    x, builder = normal(10, 1, 768, 9, 8), Builder([f32(1, 768, 9, 8)])
    wide = builder.op("cast", builder.constant(weights, dtype), dtype="f32")
    result = conv(builder, wide, rank=2)
    assert STRASSEN in kinds(builder, result, target)
    graph = builder.finish([result])
    (found,) = run_compiled(compile_graph(graph, target), graph, [x], builder.read)
    wanted = run_conv(target, x, weights.astype(np.float32), STRASSEN)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.broad
@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("images", [0, 1, 3])
def test_an_open_number_of_images(images: int) -> None:
    """A call that has an image has enough pixels."""
    builder = Builder([f32(symbol("n"), 64, 16, 16)])
    made = conv(builder, builder.constant(normal(1, 64, 64, 1, 1)), rank=2)
    result = conv(builder, builder.constant(normal(1, 256, 64, 1, 1)), rank=2, x=made)
    assert STRASSEN in kinds(builder, result)
    check_graph(builder, [result], [normal(2, images, 64, 16, 16)], RELATIVE, WIDE)


@on_wide
@pytest.mark.sweep(60)
@pytest.mark.parametrize(("kernel", "channels"), [(1, 640), (3, 192), (3, 256)])
@pytest.mark.parametrize("zeros", [0.0, 0.8])
def test_error_is_at_most_that_of_one_chain(
    target: Target, kernel: int, channels: int, zeros: float
) -> None:
    """The contract of ``f32``: also where up to 80 % of the inputs are zero."""
    x, weights = normal(5, 1, channels, 129), normal(6, 192, channels, kernel)
    x[np.random.default_rng(6).random(x.shape) < zeros] = 0
    found = run_conv(target, x, weights, STRASSEN, {"strides": (2,)})
    windows = np.lib.stride_tricks.sliding_window_view(x[0].T, kernel, axis=0)[::2]
    rows = np.ascontiguousarray(windows.transpose(0, 2, 1).reshape(len(windows), -1))
    matrix = np.ascontiguousarray(weights.transpose(2, 1, 0).reshape(-1, 192))
    exact = rows.astype(np.float64) @ matrix.astype(np.float64)
    assert 0 < rms_error(found[0].T, exact) <= rms_error(chain_product(rows, matrix), exact)


@on_wide
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40])
def test_numbers_at_the_edge(target: Target, number: float) -> None:
    """A result is finite, infinite or NaN where the direct convolution has one of the same kind."""
    x, weights = normal(7, 1, 768, 9, 8), normal(8, 192, 768, 1, 1) / 64
    for row, column in ((3, 5), (8, 1), (5, 5)):
        x[0, 50 * row, row, column] = number
    found = run_conv(target, x, weights, STRASSEN)
    direct = run_conv(target, x, weights, DIRECT)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(direct))
    odd = ~np.isfinite(direct)
    assert odd.any() == (not np.isfinite(number))
    np.testing.assert_array_equal(found[odd], direct[odd])
    assert np.isfinite(found[~odd]).all()


def test_open_sizes_of_images_are_direct() -> None:
    """They may have one pixel."""
    builder = Builder([f32(1, 1024, symbol("h"), symbol("w"))])
    result = conv(builder, builder.constant(normal(1, 256, 1024, 1, 1)), rank=2)
    assert STRASSEN not in kinds(builder, result)


def is_chosen(
    channels: int, columns: int, *kernel: int, groups: int = 1, strides: Ints | None = None
) -> bool:
    """Whether a convolution of an image of 14 pixels a side runs by the algorithm."""
    builder = Builder([f32(1, channels, *(14,) * len(kernel))])
    weights = builder.constant(normal(1, columns, channels // groups, *kernel))
    more = {} if strides is None else {"strides": strides}
    result = conv(builder, weights, rank=len(kernel), groups=groups, more=more)
    return STRASSEN in kinds(builder, result)


def test_what_it_is_for() -> None:
    """Many input channels, or taps that lie beside each other, and many columns."""
    assert is_chosen(1024, 256, 1, 1)
    assert is_chosen(128, 256, 3, 3, strides=(2, 2))
    assert not is_chosen(256, 1024, 1, 1)  # one chain is nearer to the truth
    assert not is_chosen(1024, 48, 1, 1)  # no tiles
    assert not is_chosen(2048, 512, 1, 1, groups=2)
    assert not is_chosen(96, 256, 3, 3, 3)  # two loops of taps


def kinds_of(
    model: onnx.ModelProto, folder: Path, method: str | None = None, optimize: str = "speed"
) -> dict[str, str]:
    """The kinds of the kernels of a model's nodes by their names; ``method``: ``"node=method"``."""
    if method is not None:
        name, _, kind = method.partition("=")
        (folder / "m.tune").write_text(tuning_text(str(V4), "", [(name, kind, "")]))
    path, tuning = str(folder / "m.ingot"), folder / "m.tune" if method else None
    ingot.compile(model, targets=str(V4), optimize=optimize, tuning=tuning).save(path)
    (launches,) = describe_bundle(path)["debug"]["launches"].values()
    return {name: launch["kind"] for launch in launches for name, _ in launch["nodes"]}


def two_layers() -> onnx.ModelProto:
    """``first`` is for the algorithm, ``second`` is not."""
    weights = {"w": normal(1, 256, 1024, 1, 1), "v": normal(2, 24, 256, 1, 1)}
    nodes = [
        node("Conv", "x w", "y", name="first"),
        node("Conv", "y v", "z", name="second"),
    ]
    return make_model(nodes, [tensor("x", (1, 1024, 14, 14))], [tensor("z", None)], weights)


@pytest.mark.broad
def test_options_rule_it_out_or_ask_for_it(tmp_path: Path) -> None:
    """``--optimize size`` has no room for its code; a tuning file names a method of a layer."""
    model = two_layers()
    assert kinds_of(model, tmp_path)["first"] == STRASSEN
    assert kinds_of(model, tmp_path, optimize="size")["first"] == DIRECT
    assert kinds_of(model, tmp_path, method=f"first={DIRECT}")["first"] == DIRECT
    assert kinds_of(model, tmp_path, method=f"first={STRASSEN}")["first"] == STRASSEN


def test_a_layer_that_cannot_run_by_it_is_named(tmp_path: Path) -> None:
    """As with every other method."""
    with pytest.raises(UserError, match="'conv_strassen' is not for this layer") as raised:
        kinds_of(two_layers(), tmp_path, method=f"second={STRASSEN}")
    assert "second" in str(raised.value.where)
