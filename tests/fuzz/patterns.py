"""Chains of nodes that passes and fusion know: each becomes, or must not become, one kernel.

In: a ``Drawing``. Out: it, with the chain. Not done here: single nodes (``single_ops``).
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from tests.fuzz.drawing import Drawing, NotNowError
from tests.fuzz.single_ops import image


def activation(d: Drawing, x: str) -> str:
    """One of the usual ones, as exporters write them."""
    kind, dtype = d.integer(0, 6), d.array(x).dtype
    if kind == 0:
        return x
    if kind == 1:
        return d.add("Clip", x, d.constant(0, dtype), d.constant(6, dtype))
    if kind == 2:
        return d.add("Mul", x, d.add("Sigmoid", x))
    if kind == 3:
        return d.add("Mul", x, d.add("HardSigmoid", x, alpha=1 / 6, beta=0.5))
    return d.add(d.one_of(("Relu", "Relu", "HardSwish", "LeakyRelu", "Tanh")), x)


def conv_block(d: Drawing) -> None:
    """Convolution, batch normalisation, activation, residual, activation."""
    x = image(d)
    n, dtype = d.shape(x)[1], d.array(x).dtype
    rank = d.array(x).ndim - 2
    depthwise = d.chance(0.3)
    kernel = d.one_of((1, 3))
    w = d.weights((n, 1 if depthwise else n, *(kernel,) * rank), dtype, 0.5)
    y = d.add(
        "Conv",
        x,
        w,
        *((d.weights((n,), dtype),) if d.chance(0.5) else ()),
        pads=[kernel // 2] * (2 * rank),
        group=n if depthwise else 1,
    )
    if d.chance(0.6):
        variance = d.constant(np.abs(d.numbers((n,), dtype)) + dtype.type(0.5))
        y = d.add(
            "BatchNormalization",
            y,
            d.weights((n,), dtype),
            d.weights((n,), dtype),
            d.weights((n,), dtype),
            variance,
        )
    y = activation(d, y)
    if d.chance(0.6):
        y = d.add("Add", *((x, y) if d.chance(0.5) else (y, x)))
        y = activation(d, y)
    if d.chance(0.3):
        squeeze_excite(d, y)


def squeeze_excite(d: Drawing, x: str) -> None:
    """A factor for each channel from their means."""
    n, dtype, rank = d.shape(x)[1], d.array(x).dtype, d.array(x).ndim
    y = d.add("GlobalAveragePool", x)
    y = d.add("Relu", d.add("Conv", y, d.weights((2, n, *(1,) * (rank - 2)), dtype)))
    y = d.add(
        d.one_of(("Sigmoid", "HardSigmoid")),
        d.add("Conv", y, d.weights((n, 2, *(1,) * (rank - 2)), dtype)),
    )
    d.add("Mul", x, y)


def gelu(d: Drawing, x: str) -> str:
    """By erf or tanh, in one of the orders that exporters use."""
    dtype = d.array(x).dtype
    half, one = d.constant(0.5, dtype), d.constant(1.0, dtype)
    kind = d.integer(0, 3)
    if kind == 0:
        return d.add("Gelu", x, approximate=d.one_of(("none", "tanh")))
    if kind == 1:
        inner = d.add("Erf", d.add("Div", x, d.constant(1.4142135623730951, dtype)))
        return d.add("Mul", d.add("Mul", x, d.add("Add", inner, one)), half)
    if kind == 2:
        inner = d.add("Erf", d.add("Mul", x, d.constant(0.7071067811865476, dtype)))
        return d.add("Mul", d.add("Mul", half, x), d.add("Add", one, inner))
    cube = d.add("Pow", x, d.constant(3.0, dtype))
    inner = d.add("Add", x, d.add("Mul", d.constant(0.044715, dtype), cube))
    inner = d.add("Tanh", d.add("Mul", d.constant(0.7978845608028654, dtype), inner))
    return d.add("Mul", d.add("Mul", half, x), d.add("Add", one, inner))


def linear(d: Drawing) -> None:
    """Matrix product, bias, gelu or activation, residual."""
    x = d.pick(lambda array: array.dtype.kind == "f" and array.ndim >= 2)
    inner, dtype = d.shape(x)[-1], d.array(x).dtype
    columns = inner if d.chance(0.5) else d.integer(1, 40)
    y = d.add("MatMul", x, d.weights((inner, columns), dtype, 0.5))
    bias = d.weights((columns,), dtype)
    y = d.add("Add", *((y, bias) if d.chance(0.5) else (bias, y)))
    y = gelu(d, y) if d.chance(0.5) else activation(d, y)
    if columns == inner and d.chance(0.6):
        d.add("Add", x, y)


def layer_norm(d: Drawing) -> None:
    """Layer normalisation in single steps, with and without its mean (RMS)."""
    x = d.pick(lambda array: array.dtype.kind == "f" and array.ndim >= 1 and array.size > 0)
    dtype, inner = d.array(x).dtype, d.shape(x)[-1]
    y = x if d.chance(0.4) else d.add("Sub", x, d.add("ReduceMean", x, d.ints(-1)))
    square = d.add("Pow", y, d.constant(2, dtype)) if d.chance(0.5) else d.add("Mul", y, y)
    deviation = d.add(
        "Sqrt",
        d.add(
            "Add",
            d.add("ReduceMean", square, d.ints(-1)),
            d.constant(d.one_of((1e-5, 0.01)), dtype),
        ),
    )
    y = (
        d.add("Div", y, deviation)
        if d.chance(0.6)
        else d.add("Mul", y, d.add("Reciprocal", deviation))
    )
    if d.chance(0.8):
        y = d.add("Mul", y, d.weights((inner,), dtype))
    if d.chance(0.6):
        d.add("Add", y, d.weights((inner,), dtype))


def softmax(d: Drawing) -> None:
    """Softmax in single steps."""
    x = d.pick(lambda array: array.dtype.kind == "f" and array.ndim >= 1 and array.size > 0)
    axis = d.ints(d.integer(0, d.array(x).ndim - 1))
    y = d.add("Exp", d.add("Sub", x, d.add("ReduceMax", x, axis)))
    d.add("Div", y, d.add("ReduceSum", y, axis))


def attention(d: Drawing) -> None:
    """Projections, heads, scores, mask, softmax, values, merged heads."""
    x = d.pick(lambda array: array.dtype.kind == "f" and array.ndim == 3 and 0 < array.size <= 512)
    batch, length, width = d.shape(x)
    dtype = d.array(x).dtype
    heads, size = d.integer(1, 3), d.one_of((2, 4, 5, 8))
    keys = (
        x
        if d.chance(0.7)
        else d.pick(
            lambda array: (
                array.dtype == dtype
                and array.ndim == 3
                and array.shape[0] == batch
                and array.size > 0
            )
        )
    )

    def project(source: str, order: tuple[int, ...]) -> str:
        y = d.add("MatMul", source, d.weights((d.shape(source)[-1], heads * size), dtype, 0.4))
        y = d.add("Reshape", y, d.ints(0, 0 if d.chance(0.5) else d.shape(source)[1], heads, size))
        return d.add("Transpose", y, perm=list(order))

    q, v = project(x, (0, 2, 1, 3)), project(keys, (0, 2, 1, 3))
    k = (
        project(keys, (0, 2, 3, 1))
        if d.chance(0.6)
        else d.add("Transpose", project(keys, (0, 2, 1, 3)), perm=[0, 1, 3, 2])
    )
    scale = d.constant(size**-0.5, dtype)
    if d.chance(0.3):
        q = d.add("Mul", q, scale)
        scores = d.add("MatMul", q, k)
    else:
        scores = d.add("Mul" if d.chance(0.6) else "Div", d.add("MatMul", q, k), scale)
    other = d.shape(keys)[1]
    if d.chance(0.6):
        low = -1e4 if dtype == np.float16 else d.one_of((-1e9, -1e4))
        allowed = (
            np.tri(length, other, dtype=bool)
            if d.chance(0.6)
            else d.random.random((batch, 1, 1, other)) < 0.7
        )
        if d.chance(0.5):
            scores = d.add("Add", scores, d.constant(np.where(allowed, 0, low), dtype))
        else:
            scores = d.add("Where", d.constant(allowed), scores, d.constant(low, dtype))
    y = d.add("MatMul", d.add("Softmax", scores, axis=-1), v)
    y = d.add("Transpose", y, perm=[0, 2, 1, 3])
    y = d.add(
        "Reshape",
        y,
        d.ints(0, -1, heads * size) if d.chance(0.5) else d.ints(batch, length, heads * size),
    )
    if d.chance(0.5):
        y = d.add("MatMul", y, d.weights((heads * size, width), dtype, 0.4))
        d.add("Add", x, y)


def rotary(d: Drawing) -> None:
    """Halves exchanged, multiplied by cosine and sine."""
    x = d.pick(
        lambda array: (
            array.dtype.kind == "f"
            and array.ndim >= 2
            and array.shape[-1] % 2 == 0
            and array.size > 0
        )
    )
    half, dtype = d.shape(x)[-1] // 2, d.array(x).dtype
    first = d.add("Slice", x, d.ints(0), d.ints(half), d.ints(-1))
    second = d.add("Slice", x, d.ints(half), d.ints(2**31 - 1), d.ints(-1))
    turned = d.add("Concat", d.add("Neg", second), first, axis=-1)
    angles = d.random.uniform(0, 3, d.shape(x)[-2:])
    cosine, sine = d.constant(np.cos(angles), dtype), d.constant(np.sin(angles), dtype)
    d.add("Add", d.add("Mul", x, cosine), d.add("Mul", turned, sine))


def shuffle(d: Drawing) -> None:
    """Pixel shuffle, channel shuffle, window partition: reshape, transpose, reshape."""
    x = d.pick(lambda array: array.ndim == 4 and array.size > 0)
    n, c, h, w = d.shape(x)
    if c % 4 == 0 and d.chance(0.5):
        y = d.add(
            "Transpose", d.add("Reshape", x, d.ints(n, c // 4, 2, 2, h, w)), perm=[0, 1, 4, 2, 5, 3]
        )
        d.add("Reshape", y, d.ints(n, c // 4, 2 * h, 2 * w))
    elif c % 2 == 0 and d.chance(0.5):
        y = d.add(
            "Transpose", d.add("Reshape", x, d.ints(0, 2, c // 2, h, w)), perm=[0, 2, 1, 3, 4]
        )
        d.add("Reshape", y, d.ints(n, c, h, w))
    elif h % 2 == 0 and w % 2 == 0:
        y = d.add(
            "Transpose",
            d.add("Reshape", x, d.ints(n, c, h // 2, 2, w // 2, 2)),
            perm=[0, 2, 4, 3, 5, 1],
        )
        d.add("Reshape", y, d.ints(-1, 4, c))
    else:
        raise NotNowError


def shapes(d: Drawing) -> None:
    """Sizes computed at run time: Shape, Gather, Concat, then Reshape, Expand, ConstantOfShape,
    Range or Slice."""
    x = d.pick(lambda array: array.ndim >= 1)
    rank = d.array(x).ndim
    shape = d.add("Shape", x)
    kind = d.integer(0, 4)
    if kind == 0:
        first = d.add("Gather", shape, d.ints(0))
        d.add("Reshape", x, d.add("Concat", first, d.ints(-1), axis=0))
    elif kind == 1:
        last = d.add("Unsqueeze", d.add("Gather", shape, d.constant(rank - 1, np.int64)), d.ints(0))
        product = d.add(
            "ReduceProd", d.add("Slice", shape, d.ints(0), d.ints(rank - 1), d.ints(0)), keepdims=1
        )
        d.add("Reshape", x, d.add("Concat", product, last, axis=0))
    elif kind == 2:
        y = d.add("Expand", d.constant(0.5, np.float32), shape)
        if d.array(x).dtype == np.float32:
            d.add("Add", x, y)
    elif kind == 3:
        size = d.add("Gather", shape, d.constant(-1, np.int64))
        y = d.add("Range", d.constant(0, np.int64), size, d.constant(1, np.int64))
        if d.array(x).dtype == np.int64:
            d.add("Add", x, y)
    else:
        half = d.add("Div", d.add("Gather", shape, d.ints(rank - 1)), d.ints(2))
        d.add("Slice", x, d.ints(0), half, d.ints(-1))


def narrow_chain(d: Drawing) -> None:
    """Numbers made narrow, an op or two, and wide again: one kernel that rounds every value."""
    x = d.pick(lambda array: array.dtype == np.float32)
    kind = d.one_of((TensorProto.FLOAT16, TensorProto.BFLOAT16))
    d.rough = True
    try:
        y = d.add("Cast", x, keep=False, to=kind)
        for _ in range(d.integer(1, 2)):
            op = d.one_of(("Exp", "Tanh", "Sin", "Cos", "Sqrt", "Log", "Neg", "Abs", "Relu"))
            if d.chance(0.4):
                other = d.add("Cast", d.constant(d.numbers((1,), np.float32)), keep=False, to=kind)
                y = d.add(d.one_of(("Add", "Mul", "Sub", "Div")), y, other, keep=False)
            else:
                y = d.add(op, y, keep=False)
        d.add("Cast", y, to=d.one_of((TensorProto.FLOAT, TensorProto.DOUBLE)))
    finally:
        d.rough = False


def many_parts(d: Drawing) -> None:
    """More parts than a kernel is given sizes of, joined, changed, and perhaps taken apart again."""
    dtype = d.one_of((np.float32, np.float32, np.int32))
    parts = [
        d.input(d.numbers((d.integer(0, 5), 3), dtype), [f"part{at}", 3])
        for at in range(d.integer(9, 12))
    ]
    joined = d.add(d.one_of(("Neg", "Abs")), d.add("Concat", *parts, axis=0))
    if d.chance(0.5):
        shapes = [d.add("Shape", part, keep=False, start=0, end=1) for part in parts]
        sizes = d.add("Concat", *shapes, axis=0)
        d.add("Split", joined, sizes, results=len(parts), axis=0)


PATTERNS = (
    narrow_chain, many_parts,
    conv_block, conv_block, linear, linear, layer_norm, softmax, attention, attention, rotary, shuffle, shapes, shapes,
)  # fmt: skip
