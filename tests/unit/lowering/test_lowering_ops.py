"""Each kind of kernel but contractions: compiled code gives what the interpreter gives, at every
level of this machine."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE, Array
from tests.harness.lowering_harness import Builder, check_graph, compile_graph, f32, normal

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, Sum, dim_min, dim_mul, symbol
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.loops.program import For, LetIndex, Transpose

Build = Callable[[Builder], int]
Inputs = Sequence[Array]
DTYPE_OF_ARRAY: dict[str, DType] = {
    "float32": "f32",
    "float64": "f64",
    "int64": "i64",
    "int32": "i32",
    "bool": "bool",
}

NUMPY = {dtype: name for name, dtype in DTYPE_OF_ARRAY.items()}


def check(
    inputs: Inputs, build: Build, dtypes: Mapping[int, DType] | None = None, relative: float = 2e-5
) -> None:
    """Compare one result, at every level that runs here; f32 and i64 inputs by their arrays."""
    types = [
        TensorType((dtypes or {}).get(index, DTYPE_OF_ARRAY[x.dtype.name]), x.shape)
        for index, x in enumerate(inputs)
    ]
    builder = Builder(types)
    check_graph(builder, [build(builder)], inputs, relative, RUNNABLE)


def integers(*values: object) -> Array:
    """Indices."""
    return np.array(values, np.int64)


def test_elementwise_with_broadcasting() -> None:
    """A chain over operands of different rank is one kernel."""
    check([normal(0, 3, 5, 7), normal(1, 7)], lambda b: b.op("mul", b.op("add", 0, 1), 0))


MOVEMENTS: dict[str, tuple[Inputs, Build]] = {
    "transpose": ([normal(0, 3, 5, 7)], lambda b: b.op("add", b.op("transpose", 0, permutation=(2, 0, 1)), b.literal(1.5))),
    "slice": ([normal(0, 4, 6)], lambda b: b.op("slice", 0, starts=(3, 1), sizes=(4, 2), steps=(-1, 2))),
    "concat": ([normal(0, 2, 3), normal(1, 2, 5)], lambda b: b.op("concat", b.op("relu", 0), 1, axis=1)),
    "concat itself": ([normal(0, 2, 3)], lambda b: b.op("concat", *[b.op("relu", 0)] * 3, axis=0)),
    "reshape of a transpose": (
        [normal(0, 4, 6)],
        lambda b: b.op("reshape", b.op("transpose", 0, permutation=(1, 0)), shape=(3, 8)),
    ),
    "broadcast": ([normal(0, 4, 1, 3)], lambda b: b.op("neg", b.op("broadcast_to", 0, shape=(2, 4, 5, 3)))),
    "gather rows": ([normal(0, 10, 5), integers([1, -1, 3], [0, 9, -10])], lambda b: b.op("gather", 0, 1, axis=0)),
    "gather columns": ([normal(0, 3, 10), integers([1, -1, 3], [0, 9, -10])], lambda b: b.op("gather", 0, 1, axis=1)),
    "gather_elements": (
        [normal(0, 3, 4), integers([1, -1], [0, 3], [2, 2])],
        lambda b: b.op("gather_elements", 0, 1, axis=1),
    ),
    "gather_nd": ([normal(0, 3, 4, 5), integers([1, -1], [0, 3])], lambda b: b.op("gather_nd", 0, 1, batch_dims=0)),
    "gather slices": (
        [normal(0, 4, 3, 5, 2), integers([1, -1], [0, 2])],
        lambda b: b.op("gather", 0, 1, axis=1),
    ),
    "gather slices of a transpose": (
        [normal(0, 5, 2, 4), integers(3, 0)],
        lambda b: b.op("neg", b.op("gather", b.op("transpose", 0, permutation=(2, 0, 1)), 1, axis=0)),
    ),
    "gather slices by computed indices": (
        [normal(0, 4, 5, 2), integers(3, 0), normal(1, 2, 5, 2)],
        lambda b: b.op("add", b.op("gather", 0, b.op("sub", 1, b.literal(1, "i64")), axis=0), 2),
    ),
    "gather long slices": (
        [normal(0, 3, 3, 2100), integers(2, 2)],
        lambda b: b.op("gather", 0, 1, axis=0),
    ),
    "gather_elements of slices": (
        [normal(0, 3, 4, 5), np.tile(integers(2, 0)[:, None, None], (1, 4, 5))],
        lambda b: b.op("gather_elements", 0, 1, axis=0),
    ),
    "gather_nd of slices": (
        [normal(0, 3, 4, 5, 2), integers([1], [-1])],
        lambda b: b.op("gather_nd", 0, 1, batch_dims=0),
    ),
    "gather_nd of batches": (
        [normal(0, 2, 4, 5), integers([[1]], [[-1]])],
        lambda b: b.op("gather_nd", 0, 1, batch_dims=1),
    ),
}  # fmt: skip


@pytest.mark.sweep(60)
@pytest.mark.parametrize("name", MOVEMENTS)
def test_movement(name: str) -> None:
    """Views, copies and gathers."""
    check(*MOVEMENTS[name])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pad(mode: str) -> None:
    """Every mode, on both sides of both axes."""
    attributes: dict[str, Attribute] = {"before": (1, 2), "after": (3, 2), "mode": mode}
    check([normal(0, 4, 5)], lambda b: b.op("pad", b.op("relu", 0), b.literal(9.0), **attributes))


@pytest.mark.sweep(60)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("width", [3, 40])
def test_pad_of_rows(mode: str, width: int, is_open: bool) -> None:
    """Rows shorter and longer than a vector, of known and of open size, with something fused
    behind; a tensor of one row; one side alone."""
    open_type = TensorType("f32", (symbol("n"), symbol("w")))
    for shape, before, after in (
        ((3, width), (1, 2), (0, 1)),
        ((3, width), (0, 0), (1, 2)),
        ((1, width), (0, 2), (0, 0)),
    ):
        attributes: dict[str, Attribute] = {"before": before, "after": after, "mode": mode}
        builder = Builder([open_type if is_open else f32(*shape)])
        padded = builder.op("pad", 0, builder.literal(9.0), **attributes)
        result = builder.op("mul", builder.op("neg", padded), padded)
        check_graph(builder, [result], [normal(0, *shape)], targets=RUNNABLE)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
def test_scatter(reduction: str) -> None:
    """Both scatters; repeated indices combine in row-major order, and the scattered tensor itself
    stays as it was."""
    x, rows = normal(0, 3, 4), integers([0, 1, 2, 0], [0, 2, 1, 1])
    builder = Builder(
        [
            f32(3, 4),
            TensorType("i64", (2, 4)),
            f32(2, 4),
            f32(5, 4),
            TensorType("i64", (3, 1)),
            f32(3, 4),
        ]
    )
    copied = builder.op("neg", 0)
    elements = builder.op("scatter_elements", copied, 1, 2, axis=0, reduction=reduction)
    slices = builder.op("scatter_nd", 3, 4, 5, reduction=reduction)
    inputs = [x, rows, normal(1, 2, 4), normal(2, 5, 4), integers([4], [0], [4]), normal(3, 3, 4)]
    check_graph(builder, [elements, slices, builder.op("abs", copied)], inputs, targets=RUNNABLE)


def test_write_rows() -> None:
    """Of each entry its own rows, or of all the same; along the first axis and the last; the last
    of several at one place stays, and what is written into stays as it was."""
    wide, flat = f32(2, 3, 5, 4), f32(5, 4)
    lists = [TensorType("i64", (2, 2)), TensorType("i64", (1, 2))]
    builder = Builder([wide, *lists, f32(2, 3, 2, 4), flat, f32(2, 4), f32(5, 2)])
    copied = builder.op("neg", 0)
    results = [
        builder.op("write_rows", copied, 1, builder.op("abs", 3), axis=2, held=False),
        builder.op("write_rows", copied, 2, 3, axis=2, held=False),
        builder.op("write_rows", 4, 2, 5, axis=0, held=False),
        builder.op("write_rows", 4, 2, 6, axis=1, held=False),
    ]
    places = [integers([4, 0], [-1, 2]), integers([3, 3])]
    inputs = [normal(0, 2, 3, 5, 4), *places, normal(1, 2, 3, 2, 4), normal(2, 5, 4)]
    inputs += [normal(3, 2, 4), normal(4, 5, 2)]
    check_graph(builder, [*results, builder.op("abs", copied)], inputs, targets=RUNNABLE)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("function", ["sum", "max", "min", "product", "mean"])
def test_reduce(function: str) -> None:
    """Every set of axes, with a prologue and an epilogue in the same kernel."""
    for axes in ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)):
        for keepdims in (True, False):
            attributes: dict[str, Attribute] = {
                "function": function,
                "axes": axes,
                "keepdims": keepdims,
            }
            check(
                [normal(0, 3, 5, 17)],
                lambda b: b.op("neg", b.op("reduce", b.op("mul", 0, b.literal(1.1)), **attributes)),  # noqa: B023
            )


@pytest.mark.broad
@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("select_last", [False, True])
def test_argument_reduce(op: str, select_last: bool) -> None:
    """Both axes, the first or the last of equal elements."""
    x = np.round(normal(0, 6, 33))
    for axis in (0, 1):
        check([x], lambda b: b.op(op, 0, axis=axis, select_last=select_last, keepdims=axis == 0))  # noqa: B023


@pytest.mark.broad
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum(exclusive: bool, reverse: bool) -> None:
    """Both axes, of few, some and many lines beside each other, of known and of open sizes, of one
    element and of none."""
    shapes = ((4, 6), (9, 40), (10, 1040), (1, 40), (0, 40), (3, 0))
    for axis, shape in itertools.product((0, 1), shapes):
        x = normal(0, *shape)
        for kind in (f32(*shape), TensorType("f32", (symbol("n"), symbol("m")))):
            builder = Builder([kind])
            y = builder.op("cumsum", 0, axis=axis, exclusive=exclusive, reverse=reverse)
            check_graph(builder, [y], [x], 2e-5, RUNNABLE)


def test_what_rows_of_open_length_share_is_read_once() -> None:
    """The row that is picked is looked up before the loop over its elements, unless it has none."""
    builder = Builder(
        [TensorType("f32", (symbol("n"), symbol("m"))), TensorType("i64", (symbol("k"),))]
    )
    picked = builder.op("gather", 0, 1, axis=0)
    (program,) = compile_graph(builder.finish([picked])).programs
    (once,) = program.body
    assert isinstance(once, For)
    assert (once.extent, once.kind) == (dim_min(1, symbol("m")), "serial")
    assert [type(each) for each in once.body[-2:]] == [LetIndex, For]
    for width in (0, 1, 40):
        x = normal(0, 5, width)
        check_graph(builder, [picked], [x, integers(3, 0, -1)], 0, RUNNABLE)


def test_a_size_as_a_number_is_no_launch_of_its_own() -> None:
    """Kernels are told it; what the model returns is stored."""
    builder = Builder([TensorType("i64", (symbol("n"),))])
    sizes = builder.op("dim_values", values=(symbol("n"),))
    limit = builder.op("reshape", sizes, shape=())
    inside = builder.op("less", 0, limit)
    assert len(compile_graph(builder.finish([inside])).programs) == 1
    check_graph(builder, [inside, limit], [integers(1, 5, 3)], targets=RUNNABLE)


@pytest.mark.parametrize("axis", [0, 1])
def test_lines_in_lanes(axis: int) -> None:
    """More lines beside each other than a unit has, each along an axis that does not lie
    together."""
    x = np.round(normal(0, 3, 2, 1040))
    check([x], lambda b: b.op("cumsum", 0, axis=axis, exclusive=False, reverse=False))
    check([x], lambda b: b.op("argmax", 0, axis=axis, select_last=False, keepdims=False))


@pytest.mark.sweep(5)
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax(op: str, axis: int) -> None:
    """Every axis, with neighbours in the same kernel."""
    check(
        [normal(0, 3, 5, 19)],
        lambda b: b.op("add", b.op(op, b.op("mul", 0, b.literal(2.0)), axis=axis), b.literal(1.0)),
    )


@pytest.mark.broad
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize("shape", [(2, 5, 4, 9), (2, 5, 40, 30), (3, 70, 1, 2), (2, 5, 1, 1)])
def test_softmax_over_channels(op: str, shape: tuple[int, ...]) -> None:
    """Pixels of an image in lanes: fewer than a vector, more than a unit, too few; open sizes; an
    operand that lies otherwise."""
    sizes = (symbol("n"), shape[1], symbol("h"), symbol("w"))
    batch, channels, *image = shape
    for first in (f32(*shape), TensorType("f32", sizes)):
        builder = Builder([first, f32(batch, *image, channels)])
        lies = builder.op("transpose", 1, permutation=(0, 3, 1, 2))
        results = [builder.op(op, x, axis=1) for x in (0, lies)]
        inputs = [normal(0, *shape), normal(1, batch, *image, channels)]
        check_graph(builder, results, inputs, targets=RUNNABLE)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("function", ["sum", "mean", "max", "product"])
@pytest.mark.parametrize("shape", [(3, 7, 7, 7), (2, 3, 40, 30), (2, 3, 1, 5)])
def test_reduce_over_an_image(function: str, shape: tuple[int, ...]) -> None:
    """Axes that lie as one and axes that do not; what is fused before has operands of every shape;
    open sizes."""
    sizes = (symbol("n"), shape[1], symbol("h"), symbol("w"))
    rows = (1, 1, *shape[2:])
    inputs = [normal(0, *shape), normal(1, *rows)]
    for first in (f32(*shape), TensorType("f32", sizes)):
        builder = Builder([first, f32(*rows)])
        attributes: dict[str, Attribute] = {"axes": (2, 3), "function": function, "keepdims": True}
        squares = builder.op("mul", 0, 0)
        joined = builder.op("mul", 0, builder.op("broadcast_to", 1, shape=shape))
        made = [squares] if isinstance(first.shape[0], Sum) else [squares, joined]
        results = [builder.op("reduce", x, **attributes) for x in made]
        check_graph(builder, results, inputs, 1e-4, RUNNABLE, floor=1e-5)


@pytest.mark.parametrize("axis", [1, 2])
def test_layer_norm(axis: int) -> None:
    """Over one axis and over two."""
    shape = (3, 5, 19)[axis:]

    def build(b: Builder) -> int:
        scale, bias = b.constant(normal(1, *shape)), b.constant(normal(2, *shape))
        return b.op("layer_norm", 0, scale, bias, axis=axis, epsilon=1e-5)

    check([normal(0, 3, 5, 19)], build)


def test_other_norms() -> None:
    """RMS, group and batch norm."""
    check(
        [normal(0, 3, 5, 19)],
        lambda b: b.op("rms_norm", 0, b.constant(normal(1, 19)), axis=2, epsilon=1e-5),
    )

    def group(b: Builder) -> int:
        return b.op(
            "group_norm",
            0,
            b.constant(normal(1, 6)),
            b.constant(normal(2, 6)),
            groups=3,
            epsilon=1e-5,
        )

    check([normal(0, 2, 6, 4, 5)], group)

    def batch(b: Builder) -> int:
        parameters = [b.constant(normal(seed, 6)) for seed in (1, 2, 3)]
        return b.op("batch_norm", 0, *parameters, b.constant(np.abs(normal(4, 6))), epsilon=1e-3)

    check([normal(0, 2, 6, 4, 5)], batch)


@pytest.mark.broad
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("channels", "groups"), [(40, 40), (40, 5), (300, 2), (288, 36)])
def test_group_norm_of_channels_that_lie_together(
    channels: int, groups: int, is_open: bool
) -> None:
    """Lanes of all groups side by side: one channel a group, some, more than a unit has; positions
    of several chains; what is fused behind; open sizes."""
    x, other = normal(0, 2, 13, 11, channels) + 3, normal(1, 2, channels, 13, 11)
    open_sizes = (symbol("n"), symbol("h"), 11)
    batch, *sizes = open_sizes if is_open else (2, 13, 11)
    shapes = (batch, *sizes, channels), (batch, channels, *sizes)
    builder = Builder([TensorType("f32", shape) for shape in shapes])
    image = builder.op("transpose", 0, permutation=(0, 3, 1, 2))
    parameters = [builder.constant(normal(seed, channels)) for seed in (2, 3)]
    norm = builder.op("group_norm", image, *parameters, groups=groups, epsilon=1e-5)
    result = builder.op("add", builder.op("relu", norm), 1)
    check_graph(builder, [result], [x, other], 2e-5, RUNNABLE)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("spatial", [(9,), (9, 7), (4, 5, 6)])
@pytest.mark.parametrize("op", ["max_pool", "average_pool"])
def test_pool(op: str, spatial: tuple[int, ...]) -> None:
    """Windows of one, two and three axes, with pads."""
    rank = len(spatial)
    attributes: dict[str, Attribute] = {
        "kernel": (3,) * rank, "strides": (2,) * rank, "pads_before": (1,) * rank, "pads_after": (1,) * rank,
        "dilations": (1,) * rank,
    }  # fmt: skip
    if op == "average_pool":
        for counted in (False, True):
            more: dict[str, Attribute] = {
                "count_include_pad": counted,
                "pads_counted_after": (1,) * rank,
            }
            check([normal(0, 2, 9, *spatial)], lambda b: b.op(op, 0, **attributes, **more))  # noqa: B023
    else:
        check([normal(0, 2, 9, *spatial)], lambda b: b.op(op, 0, **attributes))


@pytest.mark.parametrize("shape", [(8,), (4, 1, 1), (1, 4, 1, 1)])
def test_pool_beside_a_smaller_operand(shape: tuple[int, ...]) -> None:
    """The pool's own operand decides how its result lies, also where what is computed of another
    one stands first."""
    attributes: dict[str, Attribute] = {
        "kernel": (2, 2), "strides": (2, 2), "pads_before": (0, 0), "pads_after": (0, 0),
        "dilations": (1, 1),
    }  # fmt: skip
    arrays = [normal(0, 2, 4, 16, 16), normal(1, *shape)]
    check(arrays, lambda b: b.op("add", b.op("exp", 1), b.op("max_pool", 0, **attributes)))


@pytest.mark.broad
@pytest.mark.parametrize("op", ["max_pool", "average_pool"])
@pytest.mark.parametrize(
    ("spatial", "kernel", "stride", "before", "after", "dilation"),
    [
        ((3, 30), (3, 3), 1, (1, 1), (1, 1), 1),
        ((5, 66), (2, 3), 2, (0, 2), (1, 0), 1),
        ((4, 33), (2, 2), 2, (0, 0), (0, 0), 1),
        ((40,), (3,), 1, (0,), (2,), 2),
        ((2, 3, 25), (2, 1, 3), 1, (1, 0, 1), (0, 0, 1), 1),
        ((6, 128), (3, 4), 4, (1, 0), (1, 3), 1),
        ((9, 30), (5, 5), 1, (2, 2), (2, 2), 1),
        ((9, 30), (9, 9), 1, (4, 4), (4, 4), 1),
        ((24, 40), (9, 11), 1, (0, 0), (0, 0), 1),
        ((40, 17), (11, 3), 3, (5, 1), (5, 1), 1),
        ((70,), (33,), 1, (16,), (16,), 1),
        ((32, 64), (8, 8), 8, (0, 0), (0, 0), 1),
        ((6, 7, 20), (5, 5, 5), 1, (2, 2, 2), (2, 2, 2), 1),
        ((19, 25), (7, 5), 2, (3, 1), (2, 2), 1),
        ((14, 14), (3, 3), 1, (1, 1), (1, 1), 1),
        ((7, 13), (3, 2), 2, (1, 0), (2, 1), 1),
        ((14, 14), (3, 3), 2, (1, 1), (1, 1), 1),
        ((16, 16), (2, 3), 2, (0, 0), (1, 1), 1),
        ((8, 11), (3, 3), 3, (1, 1), (0, 0), 1),
        ((5, 14), (2, 3), 1, (0, 2), (1, 0), 1),
        ((17, 17), (3, 3), 1, (1, 1), (1, 1), 1),
        ((7, 5), (3, 2), 1, (2, 0), (0, 1), 1),
        ((9, 35), (3, 3), 2, (0, 0), (0, 0), 1),
    ],
)
def test_pools_of_rows(
    op: str,
    spatial: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: int,
    before: tuple[int, ...],
    after: tuple[int, ...],
    dilation: int,
) -> None:
    """Images whose rows lie together, with and without windows that reach beyond a row's ends;
    what follows is computed with them."""
    rank = len(spatial)
    attributes: dict[str, Attribute] = {
        "kernel": kernel, "strides": (stride,) * rank, "pads_before": before, "pads_after": after,
        "dilations": (dilation,) * rank,
    }  # fmt: skip
    if op == "average_pool":
        attributes |= {"count_include_pad": stride == 2, "pads_counted_after": after}
    for channels in (3, 1):
        x = normal(0, 2, channels, *spatial)
        x[0, -1, ..., -1] = np.nan
        check([x], lambda b: b.op("relu", b.op(op, 0, **attributes)))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize("inner", [3, 4, 5, 7, 8, 9, 12, 15, 21, 38])
def test_rows_beside_few_others(inner: int, op: str) -> None:
    """Rows in the lanes of a vector that is as wide as they need; what is behind it is not
    written."""
    check([normal(0, 3, 37, inner)], lambda b: b.op(op, b.op("neg", 0), axis=1))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
@pytest.mark.parametrize("rows", [17, 1500, symbol("n")])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_extremes_of_few(length: int, rows: Dim, dtype: DType) -> None:
    """Rows of a few elements are beside each other in lanes, in units of many rows; NaN stays."""
    builder = Builder([TensorType(dtype, (2, rows, length))])
    results = [
        builder.op("reduce", 0, function=function, axes=(2,), keepdims=keepdims)
        for function, keepdims in (("max", False), ("min", True))
    ]
    x = (normal(0, 2, rows if isinstance(rows, int) else 1100, length) * 9).astype(NUMPY[dtype])
    if dtype != "i32":
        x[1, 5, 1] = np.nan
    check_graph(builder, results, [x], 0.0, RUNNABLE)


@pytest.mark.parametrize("columns", [40, symbol("n")])
@pytest.mark.parametrize(("depth", "root"), [(3, False), (20, True)])
def test_pairs_of_rows(columns: Dim, depth: int, *, root: bool) -> None:
    """Distances of all rows of one matrix from those of another: the second one is copied, so that
    neighbours of a result's row are in lanes, and what follows is computed with them."""
    builder = Builder(
        [
            TensorType("f32", (9, 1, depth)),
            TensorType("f32", (1, columns, depth)),
            TensorType("f32", (9, columns)),
        ]
    )
    apart = builder.op("sub", 0, 1)
    squares = builder.op(
        "reduce", builder.op("mul", apart, apart), function="sum", axes=(2,), keepdims=False
    )
    total = builder.op("add", squares, 2)
    result = builder.op("sqrt", builder.op("abs", total)) if root else total
    arrays = [normal(0, 9, 1, depth), normal(1, 1, 40, depth), normal(2, 9, 40)]
    check_graph(builder, [result], arrays, 2e-5, RUNNABLE)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("inner", [2, 3, 20])
def test_few_columns_are_joined_by_others(inner: int) -> None:
    """What a transposed convolution leaves, phases beside channels, becomes rows of an image."""
    check(
        [normal(0, 3, 11, 2, inner, 19), normal(1, 19, 1, 1, 1, 1)],
        lambda b: b.op("add", b.op("transpose", 0, permutation=(4, 0, 2, 1, 3)), 1),
    )


def test_columns_are_joined_by_no_more_than_make_them_enough() -> None:
    """One axis whose size a run says is: over two, each column would be found by dividing by it."""
    builder = Builder([TensorType("f32", (2, 3, symbol("h"), symbol("w"), 19))])
    turned = builder.op("transpose", 0, permutation=(4, 2, 0, 3, 1))
    compiled = compile_graph(builder.finish([turned]))
    (plane,) = (item for item in compiled.programs[0].body if isinstance(item, Transpose))
    assert plane.columns == 3 * symbol("w")
    check_graph(builder, [turned], [normal(0, 2, 3, 5, 7, 19)], 0)


@pytest.mark.sweep(10)
@pytest.mark.parametrize("dtype", ["f32", "u8"])
@pytest.mark.parametrize("shape", [(70, 150), (33, 300), (300, 128)])
def test_planes_of_several_blocks(shape: tuple[int, int], dtype: DType) -> None:
    """Blocks of rows and of columns, whole ones and the last ones, of known and of open sizes."""
    x = (9 * normal(0, *shape)).astype("u1" if dtype == "u8" else "f4")
    for sizes in (shape, (symbol("n"), symbol("m"))):
        builder = Builder([TensorType(dtype, sizes)])
        turned = builder.op("transpose", 0, permutation=(1, 0))
        check_graph(builder, [builder.op("max", turned, turned)], [x], 0, RUNNABLE)


def numbers(dtype: DType, *shape: int) -> Array:
    """Some of both signs; truths of both kinds."""
    names = {"f64": "f8", "i64": "i8", "f16": "f2", "u8": "u1"}
    drawn = 9 * normal(0, *shape)
    return drawn > 0 if dtype == "bool" else drawn.astype(names.get(dtype, "f4"))


@pytest.mark.sweep(21)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "f16", "u8", "bool"])
@pytest.mark.parametrize("columns", [2, 3, 5, 6])
def test_rows_of_few_elements_are_interleaved(columns: int, dtype: DType) -> None:
    """Whole tiles of columns, the rows that are left, and what is no copy."""
    x = numbers(dtype, 2, columns, 70)
    builder = Builder([TensorType(dtype, x.shape)])
    turned = builder.op("transpose", 0, permutation=(0, 2, 1))
    check_graph(builder, [turned], [x], 0, RUNNABLE)
    builder = Builder([TensorType(dtype, x.shape)])
    turned = builder.op("transpose", 0, permutation=(0, 2, 1))
    check_graph(builder, [builder.op("equal", turned, turned)], [x], 0, RUNNABLE)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "f16", "u8", "bool"])
@pytest.mark.parametrize("channels", [2, 3, 4, 5, 6, 7])
def test_pixels_of_few_channels_are_separated(channels: int, dtype: DType) -> None:
    """Whole tiles of pixels, those that are left, of a known and an open number; a conversion on
    the way."""
    x = numbers(dtype, 2, 7, 11, channels)
    for height in (7, symbol("h")):
        builder = Builder([TensorType(dtype, (2, height, 11, channels))])
        planes = builder.op("transpose", 0, permutation=(0, 3, 1, 2))
        check_graph(builder, [planes], [x], 0, RUNNABLE)
        builder = Builder([TensorType(dtype, (2, height, 11, channels))])
        planes = builder.op("transpose", 0, permutation=(0, 3, 1, 2))
        check_graph(builder, [builder.op("cast", planes, dtype="f32")], [x], 0, RUNNABLE)


@pytest.mark.parametrize("dtype", ["f32", "i64", "u8"])
def test_few_columns_are_picked_row_by_row(dtype: DType) -> None:
    """Without lanes, of as many rows as a call says, by indices that are clamped."""
    names = {"i64": "i8", "u8": "u1"}
    at = integers([1, -1, 3], [0, 9, -10])
    builder = Builder([TensorType(dtype, (symbol("n"), 3, 10)), TensorType("i64", at.shape)])
    picked = builder.op("gather", 0, 1, axis=2)
    compiled = compile_graph(builder.finish([picked]))
    (loop,) = compiled.programs[0].body
    assert isinstance(loop, For)
    assert loop.kind == "serial"
    for rows in (0, 1, 16, 200):
        x = (9 * normal(0, rows, 3, 10)).astype(names.get(dtype, "f4"))
        check_graph(builder, [picked], [x, at], 0, RUNNABLE)


def test_truths_are_turned_in_blocks() -> None:
    """As bytes are, also through what is computed of them."""
    builder = Builder([TensorType("bool", (37, 70)), TensorType("bool", (70, 37))])
    both = builder.op("logical_and", builder.op("transpose", 0, permutation=(1, 0)), 1)
    compiled = compile_graph(builder.finish([both]))
    assert any(isinstance(item, Transpose) for item in compiled.programs[0].body)
    check_graph(builder, [both], [normal(0, 37, 70) > 0, normal(1, 70, 37) > 0], 0, RUNNABLE)


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "dilation"),
    [((5, 5), 1, 2, 1), ((13, 4), 1, 6, 1), ((31,), 1, 9, 1), ((16,), 2, 3, 2), ((5, 5), 3, 1, 1)],
)
def test_large_windows_are_divided(
    kernel: tuple[int, ...], stride: int, pad: int, dilation: int
) -> None:
    """Along one axis after the other, and into windows of windows, also where some see nothing."""
    rank = len(kernel)
    attributes: dict[str, Attribute] = {
        "kernel": kernel, "strides": (stride,) * rank, "pads_before": (pad,) * rank,
        "pads_after": (pad,) * rank, "dilations": (dilation,) * rank,
    }  # fmt: skip
    x = normal(0, 2, 3, *((17, 12) if rank == 2 else (40,)))
    x[0, 0].flat[5] = np.nan
    check([x], lambda b: b.op("neg", b.op("max_pool", 0, **attributes)))
    for counted in (False, True):
        more: dict[str, Attribute] = {
            "count_include_pad": counted,
            "pads_counted_after": (pad,) * rank,
        }
        if pad < min(kernel):
            check([x], lambda b: b.op("neg", b.op("average_pool", 0, **attributes, **more)))  # noqa: B023


INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.sweep(16)
def test_integers_wrap(dtype: DType) -> None:
    """Sums, products and casts of any width, over values near the limits."""
    limits = np.iinfo(
        dtype.replace("u", "uint").replace("i", "int") if dtype[0] == "i" else "uint" + dtype[1:]
    )
    draw = np.random.default_rng(0)
    x, y = (
        draw.integers(limits.min, limits.max, (3, 40), limits.dtype, endpoint=True)
        for _ in range(2)
    )
    builder = Builder([TensorType(dtype, (3, 40))] * 2)
    outputs = [builder.op(op, 0, 1) for op in ("add", "mul", "sub", "min", "max", "equal", "less")]
    outputs += [builder.op("cast", 0, dtype=other) for other in (*INTEGERS, "f32", "f64", "bool")]
    outputs += [
        builder.op("reduce", 0, function=name, axes=(1,), keepdims=False)
        for name in ("sum", "product", "max")
    ]
    check_graph(builder, outputs, [x, y], 0.0, RUNNABLE)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f64"])
def test_other_floats(dtype: DType) -> None:
    """A row kernel, a reduction and a product in half and double precision."""
    x, y = normal(0, 6, 33), normal(1, 33, 9)
    builder = Builder([f32(6, 33), f32(33, 9)])
    a, b = (builder.op("cast", value, dtype=dtype) for value in (0, 1))
    outputs = [
        builder.op("softmax", builder.op("mul", a, a), axis=1),
        builder.op("reduce", builder.op("tanh", a), function="mean", axes=(0,), keepdims=True),
        builder.op("matmul", a, b),
    ]
    back = [builder.op("cast", value, dtype="f32") for value in outputs]
    check_graph(builder, back, [x, y], {"f16": 2e-3, "bf16": 2e-2, "f64": 1e-6}[dtype], RUNNABLE)


@pytest.mark.parametrize("op", ["gather", "gather_elements", "gather_nd"])
def test_a_slice_is_one_run_of_elements(op: str) -> None:
    """However many axes it has: loops over the last one alone took three times as long."""
    shape = (3, 30, 3) if op == "gather_elements" else (3, 1) if op == "gather_nd" else (3,)
    builder = Builder([TensorType("f32", (9, 30, 3)), TensorType("i64", shape)])
    attribute = {"batch_dims": 0} if op == "gather_nd" else {"axis": 0}
    compiled = compile_graph(builder.finish([builder.op(op, 0, 1, **attribute)]))
    (loop,) = (item for item in compiled.programs[0].body if isinstance(item, For))
    assert loop.extent == 90


def _tiled(builder: Builder, shape: tuple[Dim, ...], repeats: tuple[int, ...]) -> int:
    """As ONNX Tile is composed."""
    split = [part for size in shape for part in (1, size)]
    wide = [part for pair in zip(repeats, shape, strict=True) for part in pair]
    x = builder.op("broadcast_to", builder.op("reshape", 0, shape=tuple(split)), shape=tuple(wide))
    sizes = [dim_mul(*pair) for pair in zip(repeats, shape, strict=True)]
    return builder.op("reshape", x, shape=tuple(sizes))


@pytest.mark.parametrize(
    ("shape", "repeats", "kernels"),
    [
        ((3, 16, 9, 3), (1, 3, 3, 5), 2),
        ((2, 5, 40), (3, 1, 2), 2),
        ((1, 30, 5), (7, 1, 1), 1),
        ((30, 2), (3, 2), 2),
        ((30, 2), (3, 1), 1),
        ((5, 70), (3, 2), 1),
        ((4, 3), (1, 5), 1),
    ],
)
def test_short_rows_are_repeated_once(
    shape: tuple[int, ...], repeats: tuple[int, ...], kernels: int
) -> None:
    """And copied in long runs; of open sizes a call decides."""
    builder = Builder([TensorType("f32", shape)])
    result = _tiled(builder, shape, repeats)
    assert len(compile_graph(builder.finish([result])).programs) == kernels
    check_graph(builder, [result], [normal(0, *shape)], 0, RUNNABLE)


def test_rows_of_open_length_are_repeated() -> None:
    """Short and long ones."""
    shape = (symbol("m"), symbol("n"))
    builder = Builder([TensorType("f32", shape)])
    result = _tiled(builder, shape, (3, 2))
    for rows, columns in ((30, 3), (2, 63), (2, 64), (0, 5), (5, 0)):
        check_graph(builder, [result], [normal(0, rows, columns)], 0, RUNNABLE)


PIXELS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "images whose channels lie together": ((2, 7, 9, 3), (0, 2, 1, 0), (0, 1, 2, 0)),
    "of one row": ((1, 1, 9, 5), (0, 0, 3, 0), (0, 0, 0, 0)),
    "two axes inside": ((4, 6, 2, 3), (0, 1, 0, 0), (0, 2, 0, 0)),
    "one long row inside": ((3, 4, 70), (0, 1, 0), (0, 1, 0)),
    "the first axis": ((5, 4, 6), (1, 0, 0), (2, 0, 0)),
    "further than it is long": ((3, 2, 4), (0, 5, 0), (0, 3, 0)),
}


@pytest.mark.sweep(31)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("case", PIXELS)
@pytest.mark.parametrize("is_open", [False, True])
def test_pads_around_short_rows(mode: str, case: str, *, is_open: bool) -> None:
    """Rows of a tensor that is only padded are one run between the pads."""
    shape, before, after = PIXELS[case]
    known = (None, *(symbol(f"n{axis}") for axis in range(1, len(shape) - 1)), None)
    sizes = [
        size if not is_open or name is None else name
        for size, name in zip(shape, known, strict=True)
    ]
    builder = Builder([TensorType("f32", tuple(sizes))])
    zero = builder.literal(0.5)
    padded = builder.op("pad", 0, zero, before=before, after=after, mode=mode)
    check_graph(builder, [padded], [normal(0, *shape)], 0, RUNNABLE)
    builder = Builder([TensorType("f32", tuple(sizes))])
    zero = builder.literal(0.5)
    padded = builder.op("pad", 0, zero, before=before, after=after, mode=mode)
    check_graph(builder, [builder.op("neg", padded)], [normal(0, *shape)], 0, RUNNABLE)


def test_rows_between_pads_are_one_run() -> None:
    """Pixels of three channels took ten times as long one by one."""
    builder = Builder([TensorType("f32", (2, 7, 9, 3))])
    padded = builder.op(
        "pad", 0, builder.literal(0.5), before=(0, 2, 1, 0), after=(0, 1, 2, 0), mode="reflect"
    )
    loops = compile_graph(builder.finish([padded])).programs[0].body
    assert [loop.extent for loop in loops if isinstance(loop, For)] == [3, 27, 6]
