"""Single nodes with random attributes and operands: elementwise, movement, reductions, rows,
products, windows.

In: a ``Drawing``. Out: it, one node (and its constants) longer. Not done here: groups of nodes
(``patterns``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper
from tests.fuzz.drawing import Drawing, NotNowError
from tests.fuzz.program import Array

_CURVES = [
    "Abs",
    "Neg",
    "Relu",
    "Sigmoid",
    "Tanh",
    "Erf",
    "Exp",
    "Log",
    "Sqrt",
    "Reciprocal",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Sin",
    "Cos",
    "Tan",
    "Asin",
    "Acos",
    "Atan",
    "Sinh",
    "Cosh",
    "Asinh",
    "Acosh",
    "Atanh",
    "Softplus",
    "Softsign",
    "Elu",
    "Selu",
    "Celu",
    "LeakyRelu",
    "HardSigmoid",
    "HardSwish",
    "Mish",
    "Gelu",
    "ThresholdedRelu",
    "Shrink",
    "Identity",
]
_POSITIVE = ("Log", "Sqrt", "Reciprocal", "Acosh")
_WITHIN_ONE = ("Asin", "Acos", "Atanh")
_ALPHA = ("Elu", "LeakyRelu", "Celu", "ThresholdedRelu")
_COORDINATES = (
    "align_corners",
    "asymmetric",
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
)
_CASTS = (
    "float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
_EXPONENTS = (0, 1, 2, 3, (1 << 24) + 1, (1 << 31) - 1, 1 << 32, (1 << 32) + 1)


def curve(d: Drawing) -> None:
    """A function of one float operand, after making it fit where that helps."""
    x, op = d.pick_float(), d.one_of(_CURVES)
    dtype = d.array(x).dtype
    if op in _POSITIVE and (d.array(x) <= 0).any() and not d.special:
        x = d.add("Add", d.add("Abs", x, keep=False), d.constant(1.25, dtype))
    if op in _WITHIN_ONE and not d.special:
        x = d.add("Mul", d.add("Tanh", x, keep=False), d.constant(0.75, dtype))
    more: dict[str, Any] = (
        {"alpha": round(float(d.random.uniform(0.1, 1.5)), 2)}
        if op in _ALPHA and d.chance(0.5)
        else {}
    )
    if op == "Gelu" and d.chance(0.5):
        more = {"approximate": "tanh"}
    if op == "Shrink":
        more = {"lambd": 0.5, "bias": d.one_of((0.0, 0.25))}
    d.add(op, x, **more)


def clip(d: Drawing) -> None:
    """With both limits, or one."""
    x = d.pick(lambda array: array.dtype.kind in "fi" and array.dtype.itemsize > 1)
    dtype = d.array(x).dtype
    low, high = d.constant(-1, dtype), d.constant(d.integer(0, 3), dtype)
    d.add("Clip", x, *d.one_of(((low,), (low, high), ("", high))))


def partner(d: Drawing, x: str) -> str:
    """A value or constant of the same element type that broadcasts with x."""
    array = d.array(x)

    def fits(other: Array) -> bool:
        pairs = zip(other.shape[::-1], array.shape[::-1], strict=False)
        return other.dtype == array.dtype and all(a == b or 1 in (a, b) for a, b in pairs)

    if d.chance(0.6):
        return d.pick(fits)
    shape = [1 if d.chance(0.3) else size for size in array.shape][
        d.integer(0, array.ndim) if array.ndim else 0 :
    ]
    return d.constant(d.numbers(shape, array.dtype))


def binary(d: Drawing) -> None:
    """Arithmetic of two operands that broadcast."""
    x = d.pick(lambda array: array.dtype.kind in "fiu")
    kind = d.array(x).dtype.kind
    y = partner(d, x)
    op = d.one_of(
        ("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow" if kind == "f" else "Add", "Mod")
    )
    if op == "Pow":
        if d.chance(0.5):
            d.add(op, x, d.constant(d.one_of((2.0, 3.0, 0.5, 1.0, -1.0, 0.0)), d.array(x).dtype))
            return
        x = d.add("Add", d.add("Abs", x, keep=False), d.constant(0.5, d.array(x).dtype))
    more: dict[str, Any] = {"fmod": 1} if op == "Mod" and (kind == "f" or d.chance(0.3)) else {}
    d.add(op, *((x, y) if d.chance(0.6) else (y, x)), **more)


def variadic(d: Drawing) -> None:
    """Max, Min, Sum, Mean of one to four operands."""
    x = d.pick_float()
    d.add(
        d.one_of(("Max", "Min", "Sum", "Mean")), x, *(partner(d, x) for _ in range(d.integer(0, 3)))
    )


def bits(d: Drawing) -> None:
    """Bitwise and logical ops, shifts."""
    x = d.pick(lambda array: array.dtype.kind in "iub")
    dtype = d.array(x).dtype
    if dtype.kind == "b":
        op = d.one_of(("And", "Or", "Xor", "Not"))
        d.add(op, x, *(() if op == "Not" else (partner(d, x),)))
    elif dtype.kind == "u" and d.chance(0.5):
        amounts = d.constant(d.random.integers(0, dtype.itemsize * 8, d.shape(x)).astype(dtype))
        d.add("BitShift", x, amounts, direction=d.one_of(("LEFT", "RIGHT")))
    else:
        op = d.one_of(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"))
        d.add(op, x, *(() if op == "BitwiseNot" else (partner(d, x),)))


def compare(d: Drawing) -> None:
    """A comparison, and a choice by it."""
    x = d.pick(lambda array: array.dtype.kind in "fiu")
    y = partner(d, x)
    c = d.add(d.one_of(("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")), x, y)
    if d.chance(0.6):
        d.add("Where", c, x, y)


def is_number(d: Drawing) -> None:
    """IsNaN and IsInf."""
    x = d.pick(lambda array: array.dtype.kind == "f" and array.dtype.itemsize > 2)
    if d.chance(0.5):
        d.add("IsNaN", x)
    else:
        d.add("IsInf", x, detect_negative=d.integer(0, 1), detect_positive=d.integer(0, 1))


def cast(d: Drawing) -> None:
    """To any element type."""
    d.add("Cast", d.pick(), to=int(helper.np_dtype_to_tensor_dtype(np.dtype(d.one_of(_CASTS)))))


def edge_cast(d: Drawing) -> None:
    """Numbers that do not fit the integers they are cast to, infinities and NaN among them."""
    numbers = [
        np.inf,
        -np.inf,
        np.nan,
        70000.0,
        -70000.0,
        300.0,
        -129.5,
        3e9,
        -3e9,
        1e10,
        2.0**63,
        -1e30,
    ]
    edges = d.constant(d.random.choice(numbers, 6).astype(d.one_of((np.float32, np.float64))))
    kind = np.dtype(d.one_of([name for name in _CASTS if name[0] in "iu"]))
    d.add("Cast", edges, to=int(helper.np_dtype_to_tensor_dtype(kind)))


def zero_later(d: Drawing) -> str:
    """The i64 0, which only the run knows."""
    total = d.add("ReduceSum", d.add("Cast", d.pick(), to=1, keep=False), keepdims=0, keep=False)
    return d.add("Cast", d.add("Less", total, total, keep=False), to=7, keep=False)


def edge_power(d: Drawing) -> None:
    """Integer and float bases, exponents of other types: known, or known when it runs."""
    bases = [1, 2, 3, -1, -2] if d.chance(0.7) else [1, 2, 3]
    base = d.one_of(("float32", "float64", "float16", "int32", "int64"))
    x = d.constant(d.random.choice(bases, 6).astype(base))
    kind: np.dtype[Any] = np.dtype(
        d.one_of(("int32", "int64", "uint64", "int16", "float32", "float64"))
    )
    limit = 3 if kind.kind == "f" else int(np.iinfo(kind).max)
    exponents = d.constant(
        d.random.choice([number for number in _EXPONENTS if number <= limit], 6).astype(kind)
    )
    later = d.add("Cast", zero_later(d), to=int(helper.np_dtype_to_tensor_dtype(kind)), keep=False)
    d.add("Pow", x, exponents if d.chance(0.3) else d.add("Add", exponents, later, keep=False))


def edge_range(d: Drawing) -> None:
    """A few integers, far apart: bounds known, or known when it runs."""
    kind: np.dtype[Any] = np.dtype(d.one_of(("int16", "int32", "int64")))
    far = int(np.iinfo(kind).max) >> (
        12 if kind.itemsize == 8 else 0
    )  # onnx.reference counts in f64
    bounds = [
        d.one_of((-far, far, 0, far - 9)),
        d.one_of((-far, far, 3)),
        d.one_of((far, -far, far // 2, far // 3)),
    ]
    later = d.add("Cast", zero_later(d), to=int(helper.np_dtype_to_tensor_dtype(kind)), keep=False)
    names = [d.constant(number, kind) for number in bounds]
    d.add(
        "Range",
        *(name if d.chance(0.3) else d.add("Add", name, later, keep=False) for name in names),
    )


def edge_unique(d: Drawing) -> None:
    """The different slices, often of nothing."""
    x = d.pick(lambda array: array.ndim > 0 and array.dtype.kind in "iub" and array.size < 200)
    axis = axis_of(d, x)
    if d.chance(0.6):
        x = d.add("Slice", x, d.ints(0), d.ints(d.integer(0, 1)), d.ints(axis_of(d, x)), keep=False)
    # Unsorted, onnx.reference fails along other axes than 0.
    d.add_all("Unique", x, results=4, sorted=1, axis=axis)


def prelu(d: Drawing) -> None:
    """With a slope that broadcasts to x."""
    x = d.pick_float()
    shape = [1 if d.chance(0.4) else size for size in d.shape(x)]
    d.add(
        "PRelu", x, d.weights(shape[d.integer(0, len(shape)) if shape else 0 :], d.array(x).dtype)
    )


# ---- movement ------------------------------------------------------------------------------------


def axis_of(d: Drawing, x: str) -> int:
    """An axis, now and then counted from the end."""
    rank = d.array(x).ndim
    if rank == 0:
        raise NotNowError
    return d.integer(-rank, rank - 1)


def transpose(d: Drawing) -> None:
    """Any permutation."""
    x = d.pick(lambda array: array.ndim > 0)
    d.add("Transpose", x, perm=[int(axis) for axis in d.random.permutation(d.array(x).ndim)])


def reshape(d: Drawing) -> None:
    """Merge or split axes; a size may be -1 or 0 (as it was)."""
    x = d.pick()
    shape = list(d.shape(x))
    if len(shape) > 1 and d.chance(0.5):
        axis = d.integer(0, len(shape) - 2)
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    else:
        axis = d.integer(0, len(shape) - 1) if shape else 0
        size = shape[axis] if shape else 1
        factor = d.one_of([factor for factor in (1, 2, 3, 4, 5) if size % factor == 0])
        shape[axis : axis + 1] = (
            [factor, size // factor] if d.chance(0.5) else [size // factor, factor]
        )
    if 0 not in shape and shape and d.chance(0.5):
        shape[d.integer(0, len(shape) - 1)] = -1
    if shape and d.chance(0.2) and shape[0] == (d.shape(x) or (-2,))[0]:
        shape[0] = 0
    d.add("Reshape", x, d.ints(*shape))


def flatten(d: Drawing) -> None:
    """To rank 2."""
    x = d.pick()
    d.add("Flatten", x, axis=d.integer(0, d.array(x).ndim))


def squeeze(d: Drawing) -> None:
    """Remove or insert axes of size 1."""
    x = d.pick()
    ones = [axis for axis, size in enumerate(d.shape(x)) if size == 1]
    if ones and d.chance(0.5):
        # Without axes, the rank depends on whether a symbolic size is 1: those stay, by our
        # decision.
        d.add(
            "Squeeze",
            x,
            *((d.ints(d.one_of(ones)),) if d.chance(0.7) or d.program.symbols() else ()),
        )
    else:
        d.add("Unsqueeze", x, d.ints(d.integer(0, d.array(x).ndim)))


def slice_(d: Drawing) -> None:
    """Any start, end and step, also negative and beyond the ends; all axes or some."""
    x = d.pick(lambda array: array.ndim > 0)
    axes = sorted({axis_of(d, x) % d.array(x).ndim for _ in range(d.integer(1, 3))})
    starts, ends, steps = list[int](), list[int](), list[int]()
    for axis in axes:
        size = d.shape(x)[axis]
        step = d.one_of((1, 1, 1, 2, -1, -1, -2, 3, -3))
        first, last = sorted((d.integer(-size - 2, size + 2), d.integer(-size - 2, size + 2)))
        if d.chance(0.4):
            first, last = 0, d.one_of((2**31 - 1, 2**62))
            last = -last if step < 0 else last
            first = size if step < 0 else first
        elif step < 0:
            first, last = last, first
        starts.append(first)
        ends.append(last)
        steps.append(step)
    d.add("Slice", x, d.ints(*starts), d.ints(*ends), d.ints(*axes), d.ints(*steps))


def concat(d: Drawing) -> None:
    """Values that agree beside the axis."""
    x = d.pick(lambda array: array.ndim > 0)
    axis = axis_of(d, x)
    array, positive = d.array(x), axis % d.array(x).ndim

    def beside(other: Array) -> bool:
        return other.dtype == array.dtype and other.ndim == array.ndim and all(
            other.shape[i] == array.shape[i] for i in range(array.ndim) if i != positive
        )  # fmt: skip

    d.add("Concat", x, *(d.pick(beside) for _ in range(d.integer(0, 2))), axis=axis)


def split(d: Drawing) -> None:
    """Into two or three parts."""
    x = d.pick(lambda array: array.ndim > 0)
    axis = axis_of(d, x)
    size = d.shape(x)[axis]
    cut = d.integer(0, size)
    d.add_all("Split", x, d.ints(cut, size - cut), results=2, axis=axis)


def expand(d: Drawing) -> None:
    """Axes of size 1 made longer, new leading axes."""
    x = d.pick()
    shape = [
        d.integer(2, 5) if size == 1 and d.chance(0.7) else (1 if d.chance(0.2) else size)
        for size in d.shape(x)
    ]
    d.add("Expand", x, d.ints(*([d.integer(1, 3)] if d.chance(0.3) else []), *shape))


def tile(d: Drawing) -> None:
    """Repeat along axes."""
    x = d.pick()
    d.add("Tile", x, d.ints(*(d.integer(0 if d.chance(0.05) else 1, 2) for _ in d.shape(x))))


def pad(d: Drawing) -> None:
    """Every mode; constant pads may be negative."""
    x = d.pick(lambda array: array.dtype.kind != "b" and array.ndim > 0)
    mode = d.one_of(("constant", "constant", "edge", "reflect", "wrap"))
    low = -1 if mode == "constant" else 0
    pads = [d.integer(low, 2) for _ in range(2 * d.array(x).ndim)]
    value = (
        (d.constant(d.integer(0, 2), d.array(x).dtype),)
        if mode == "constant" and d.chance(0.6)
        else ()
    )
    d.add("Pad", x, d.ints(*pads), *value, mode=mode)


def gather(d: Drawing) -> None:
    """Indices that are constant, some from the end."""
    x = d.pick(lambda array: array.ndim > 0 and array.size > 0)
    axis = axis_of(d, x)
    size = d.shape(x)[axis]
    kind = d.integer(0, 3)
    if kind == 0:
        shape = [
            d.integer(1, 2) if i == axis % d.array(x).ndim else n for i, n in enumerate(d.shape(x))
        ]
        d.add("GatherElements", x, d.constant(d.random.integers(-size, size, shape)), axis=axis)
    elif kind == 1:
        depth = d.integer(1, d.array(x).ndim)
        indices = [
            d.random.integers(-n, n, (d.integer(1, 3),) if i < 0 else (2, 2))
            for i, n in enumerate(d.shape(x)[:depth])
        ]
        d.add("GatherND", x, d.constant(np.stack(indices, -1)))
    else:
        shape = [d.integer(0 if d.chance(0.05) else 1, 3) for _ in range(d.integer(0, 2))]
        d.add(
            "Gather",
            x,
            d.constant(
                d.random.integers(-size, size, shape).astype(d.one_of((np.int64, np.int32)))
            ),
            axis=axis,
        )


def scatter(d: Drawing) -> None:
    """New elements at distinct places."""
    x = d.pick(lambda array: array.ndim > 0 and array.size > 0 and array.dtype.kind != "b")
    shape = d.shape(x)
    if d.chance(0.5):
        rows = d.random.permutation(shape[0])[: d.integer(1, shape[0])]
        d.add(
            "ScatterND",
            x,
            d.constant(rows[:, None].astype(np.int64)),
            d.weights((len(rows), *shape[1:]), d.array(x).dtype),
        )
    else:
        axis = axis_of(d, x) % len(shape)
        part = [d.integer(1, size) for size in shape]
        indices = np.argsort(
            d.random.random([shape[axis] if i == axis else n for i, n in enumerate(part)]),
            axis=axis,
        )
        taken = indices[tuple(slice(0, n) for n in part)]
        how = d.one_of(("none", "add", "max", "min", "mul"))
        d.add(
            "ScatterElements",
            x,
            d.constant(taken),
            d.weights(part, d.array(x).dtype),
            axis=axis,
            reduction=how,
        )


def depth(d: Drawing) -> None:
    """DepthToSpace and SpaceToDepth."""
    x = d.pick(lambda array: array.ndim == 4 and array.size > 0)
    _, c, h, w = d.shape(x)
    if c % 4 == 0 and d.chance(0.6):
        d.add("DepthToSpace", x, blocksize=2, mode=d.one_of(("DCR", "CRD")))
    elif h % 2 == 0 and w % 2 == 0:
        d.add("SpaceToDepth", x, blocksize=2)
    else:
        raise NotNowError


def trilu(d: Drawing) -> None:
    """Upper or lower part."""
    x = d.pick(lambda array: array.ndim > 1)
    k = (d.constant(d.integer(-2, 2), np.int64),) if d.chance(0.6) else ()
    d.add("Trilu", x, *k, upper=d.integer(0, 1))


def one_hot(d: Drawing) -> None:
    """Of small integers."""
    x = d.pick(lambda array: array.dtype == np.int64 and array.ndim < 4)
    d.add(
        "OneHot", x, d.ints(d.integer(2, 5)), d.constant(np.array([0.25, 2.0], np.float32)), axis=-1
    )


# ---- reductions, rows ----------------------------------------------------------------------------


def reduce(d: Drawing) -> None:
    """Every function, any axes, or none."""
    op = d.one_of(
        [
            "ReduceSum",
            "ReduceMean",
            "ReduceMax",
            "ReduceMin",
            "ReduceProd",
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceSumSquare",
        ]
    )
    x = d.pick_float() if op not in ("ReduceSum", "ReduceMax", "ReduceMin") else d.pick(lambda a: a.dtype.kind in "fi" and a.dtype.itemsize > 1)  # fmt: skip
    if d.array(x).size == 0 and op in ("ReduceMax", "ReduceMin", "ReduceMean"):
        raise NotNowError
    rank = d.array(x).ndim
    axes = sorted({d.integer(0, rank - 1) for _ in range(d.integer(1, rank))}) if rank else []
    axes = [axis - rank if d.chance(0.3) else axis for axis in axes]
    operands = (d.ints(*axes),) if axes and d.chance(0.85) else ()
    d.add(op, x, *operands, keepdims=d.integer(0, 1))


def arg(d: Drawing) -> None:
    """Index of the largest or least."""
    x = d.pick(lambda array: array.dtype.kind in "fi" and array.ndim > 0 and array.size > 0)
    more: dict[str, Any] = {
        "axis": axis_of(d, x),
        "keepdims": d.integer(0, 1),
        "select_last_index": d.integer(0, 1),
    }
    d.add(d.one_of(("ArgMax", "ArgMin")), x, **more)


def cumsum(d: Drawing) -> None:
    """Running sums."""
    x = d.pick(
        lambda array: (
            array.dtype.name in ("float32", "float64", "int32", "int64") and array.ndim > 0
        )
    )
    d.add(
        "CumSum",
        x,
        d.constant(axis_of(d, x), np.int64),
        exclusive=d.integer(0, 1),
        reverse=d.integer(0, 1),
    )


def row(d: Drawing) -> None:
    """Softmax and the normalisations of rows."""
    x = d.pick(lambda array: array.dtype.kind == "f" and array.ndim > 0 and array.size > 0)
    axis = axis_of(d, x)
    op = d.one_of(
        ("Softmax", "Softmax", "LogSoftmax", "LayerNormalization", "LpNormalization", "Hardmax")
    )
    if op == "LayerNormalization":
        shape, dtype = d.shape(x)[axis % d.array(x).ndim :], d.array(x).dtype
        bias = (d.weights(shape, dtype),) if d.chance(0.7) else ()
        d.add(op, x, d.weights(shape, dtype), *bias, axis=axis, epsilon=d.one_of((1e-5, 0.01)))
    elif op == "LpNormalization":
        d.add(op, x, axis=axis, p=2)  # onnx.reference sums x, not |x|, for p = 1
    else:
        d.add(op, x, axis=axis)


# ---- products, windows ---------------------------------------------------------------------------


def matmul(d: Drawing) -> None:
    """With a constant, or with another value; batched and vectors too."""
    x = d.pick(lambda array: array.dtype.kind == "f" and array.ndim > 0)
    dtype, inner = d.array(x).dtype, d.shape(x)[-1]
    if d.chance(0.6):
        d.add("MatMul", x, d.weights((inner, d.integer(1, 40)), dtype, 0.5))
        return
    d.add(
        "MatMul",
        x,
        d.pick(
            lambda array: (
                array.dtype == dtype
                and array.ndim > 0
                and array.shape[max(array.ndim - 2, 0)] == inner
            )
        ),
    )


def gemm(d: Drawing) -> None:
    """Every attribute."""
    x = d.pick_float(2)
    dtype, across, up = d.array(x).dtype, d.integer(0, 1), d.integer(0, 1)
    inner, rows = d.shape(x)[0 if across else 1], d.shape(x)[1 if across else 0]
    columns = d.integer(1, 20)
    c = d.one_of(((), (columns,), (1, columns), (rows, 1), (rows, columns)))
    more: dict[str, Any] = {} if d.chance(0.5) else {"alpha": 0.5, "beta": 2.0}
    w = d.weights((columns, inner) if up else (inner, columns), dtype, 0.5)
    d.add(
        "Gemm",
        x,
        w,
        *((d.weights(c, dtype),) if d.chance(0.8) else ()),
        transA=across,
        transB=up,
        **more,
    )


def einsum(d: Drawing) -> None:
    """Some equations of rank 2 and 3."""
    x = d.pick(lambda array: array.dtype.kind == "f" and array.ndim in (2, 3) and array.size > 0)
    dtype, shape = d.array(x).dtype, d.shape(x)
    if len(shape) == 2:
        equation, other = d.one_of(
            (
                ("ij,kj->ik", (3, shape[1])),
                ("ij,j->i", (shape[1],)),
                ("ij,kl->ijkl", (2, 3)),
                ("ij->ji", None),
            )
        )
    else:
        equation, other = d.one_of(
            (
                ("bij,bkj->bik", (shape[0], 3, shape[2])),
                ("bij,jk->bik", (shape[2], 5)),
                ("bij->b", None),
            )
        )
    d.add(
        "Einsum", x, *(() if other is None else (d.weights(other, dtype, 0.5),)), equation=equation
    )


def _window(d: Drawing, rank: int, kernel: int) -> dict[str, Any]:
    more: dict[str, Any] = {"strides": [d.integer(1, 2) for _ in range(rank)]}
    if d.chance(0.2):
        more["auto_pad"] = d.one_of(("SAME_UPPER", "SAME_LOWER", "VALID"))
    else:
        more["pads"] = [d.integer(0, kernel // 2) for _ in range(2 * rank)]
    return more


def image(d: Drawing) -> str:
    """A value of rank 3 or 4 with something in it; one is made where there is none."""
    fitting = [
        name
        for name, value in d.values.items()
        if value.array.dtype.kind == "f" and value.array.ndim in (3, 4) and value.array.size
    ]
    if fitting:
        return d.one_of(fitting)
    x = d.pick(lambda array: array.dtype.kind == "f" and array.size > 0)
    shape = d.shape(x)
    return (
        d.add("Reshape", x, d.ints(*([1] * (4 - len(shape)) + list(shape))[:4]))
        if len(shape) < 4
        else x
    )


def conv(d: Drawing) -> None:
    """Groups, depthwise, strides, dilations, pads."""
    x = image(d)
    channels, rank, dtype = d.shape(x)[1], d.array(x).ndim - 2, d.array(x).dtype
    groups = d.one_of([size for size in (1, 1, 2, channels) if channels % size == 0])
    kernel, filters = d.one_of((1, 2, 3, 3, 5)), groups * d.integer(1, 5)
    w = d.weights((filters, channels // groups, *(kernel,) * rank), dtype, 0.5)
    more = _window(d, rank, kernel)
    if "auto_pad" not in more:
        more["dilations"] = [d.one_of((1, 1, 2)) for _ in range(rank)]
    d.add(
        "Conv",
        x,
        w,
        *((d.weights((filters,), dtype),) if d.chance(0.6) else ()),
        group=groups,
        **more,
    )


def conv_transpose(d: Drawing) -> None:
    """Strides, pads, groups."""
    x = image(d)
    channels, rank, dtype = d.shape(x)[1], d.array(x).ndim - 2, d.array(x).dtype
    kernel, groups = d.integer(1, 4), d.one_of((1, 1, channels))
    w = d.weights((channels, d.integer(1, 3), *(kernel,) * rank), dtype, 0.5)
    d.add(
        "ConvTranspose",
        x,
        w,
        group=groups,
        strides=[d.integer(1, 3) for _ in range(rank)],
        pads=[d.integer(0, kernel // 2)] * (2 * rank),
    )


def pool(d: Drawing) -> None:
    """Max, average and global pools."""
    x = image(d)
    rank, least = d.array(x).ndim - 2, min(d.shape(x)[2:])
    kernel = d.one_of([size for size in (2, 3, 3, 5, 9, 12) if size <= max(3, least + 2)])
    op = d.one_of(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
    if op == "GlobalMaxPool" and rank != 2:
        raise NotNowError  # onnx.reference reduces and inserts other axes than ONNX says
    if op.startswith("Global"):
        d.add(op, x)
        return
    more: dict[str, Any] = {"count_include_pad": d.integer(0, 1)} if op == "AveragePool" else {}
    # onnx.reference mixes up the axes and sides of a MaxPool's pads, and counts windows wrongly
    # with pads and ceil_mode.
    half = kernel // 2
    pads = (
        [d.integer(0, half)] * (2 * rank)
        if op == "MaxPool"
        else [d.integer(0, half) for _ in range(2 * rank)]
    )
    d.add(
        op,
        x,
        kernel_shape=[kernel] * rank,
        strides=[d.integer(1, 2) for _ in range(rank)],
        pads=pads,
        ceil_mode=int(d.chance(0.1) and not (op == "MaxPool" and any(pads))),
        **more,
    )


def channel_norm(d: Drawing) -> None:
    """Batch and instance normalisation, LRN."""
    x = image(d)
    channels, dtype = d.shape(x)[1], d.array(x).dtype
    scale, bias = d.weights((channels,), dtype), d.weights((channels,), dtype)
    op = d.one_of(("BatchNormalization", "BatchNormalization", "InstanceNormalization", "LRN"))
    if op == "BatchNormalization":
        variance = d.constant(np.abs(d.numbers((channels,), dtype)) + dtype.type(0.5))
        d.add(op, x, scale, bias, d.weights((channels,), dtype), variance, epsilon=1e-3)
    elif op == "InstanceNormalization":
        d.add(op, x, scale, bias, epsilon=0.01)
    elif d.shape(x)[0] == channels:  # onnx.reference 1.x counts channels by the size of the batch
        d.add(op, x, size=d.one_of((1, 3)), alpha=0.1)


def resize(d: Drawing) -> None:
    """To any size, those among them whose quotients are whole, and by decimals."""
    dtypes = (np.dtype(np.float32), np.dtype(np.uint8))
    x = d.pick(lambda array: array.dtype in dtypes and array.ndim > 1 and array.size > 0)
    rank, (high, wide) = d.array(x).ndim, d.shape(x)[-2:]
    mode = "nearest" if d.array(x).dtype == np.uint8 or d.chance(0.6) else "linear"
    targets: tuple[str, ...] = ("", d.ints(*d.shape(x)[:-2], d.integer(1, 20), _new_size(d, wide)))
    if d.chance(0.5):
        scales = [
            d.integer(max(100 // size, 30), 250) / d.one_of((10, 100, 100)) for size in (high, wide)
        ]
        factors = np.array([*[1] * (rank - 2), *scales], np.float32)
        targets = (d.input(factors, factors.shape) if d.chance(0.3) else d.constant(factors),)
    d.add(
        "Resize",
        x,
        "",
        *targets,
        mode=mode,
        coordinate_transformation_mode=d.one_of(_COORDINATES),
        nearest_mode=d.one_of(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")),
    )


def _new_size(d: Drawing, size: int) -> int:
    """One that has a common factor with a size, as often as any."""
    return d.integer(1, 20) * d.one_of((1, max(size // 2, 1))) % 61 or 1


EDGES = (edge_cast, edge_power, edge_range, edge_unique)
ELEMENTWISE = (
    curve,
    curve,
    curve,
    clip,
    binary,
    binary,
    binary,
    variadic,
    bits,
    compare,
    is_number,
    cast,
    prelu,
)
MOVEMENT = (
    transpose, reshape, reshape, flatten, squeeze, slice_, slice_, concat, split, expand, tile, pad, gather, scatter, depth,
    trilu, one_hot,
)  # fmt: skip
ROWS = (reduce, reduce, arg, cumsum, row, row)
PRODUCTS = (
    matmul,
    matmul,
    gemm,
    einsum,
    conv,
    conv,
    conv_transpose,
    pool,
    pool,
    channel_norm,
    resize,
)
SAFE_WITH_SPECIAL_NUMBERS = (*ELEMENTWISE, *MOVEMENT)
