"""Random graphs over many ops, for hypothesis: chains of views, fusion around every kind of kernel,
symbolic sizes.

In: draws. Out: ``Builder`` with a graph, types of its inputs. Not done here: running them
(``test_lowering_random``).

Two kinds: *exact* graphs, whose numbers are small integers in any element type, so that compiled
code must agree to the last bit; *smooth* graphs over f32, where it must agree closely, made of ops
that do not amplify a rounding error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import Builder, normal

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import (
    Dim,
    Sum,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mul,
    dim_product,
    substitute,
    symbol,
    symbols_of,
)
from ingot_compiler.ir.types import DType, TensorType

SYMBOLS = ("s0", "s1")
SIZES = (0, 1, 2, 3, 5, 8, 17, 33)  # of symbols at run time
_STATIC = (1, 1, 2, 3, 4, 5, 8, 16, 19)
_LARGEST = 33
_ELEMENTS_MAX = 8192
_RANK_MAX = 5
_NUMBERS: tuple[DType, ...] = ("f32", "i64", "i32", "u8")


class Drawing:
    """A graph being drawn: every value can become an operand."""

    def __init__(self, draw: st.DrawFn, types: Sequence[TensorType]) -> None:
        self.draw = draw
        self.builder = Builder(types)
        self.values = list(range(len(types)))

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return self.draw(st.integers(low, high))

    def one_of(self, *choices: object) -> object:
        """One of some objects."""
        return self.draw(st.sampled_from(choices))

    def type(self, value: int) -> TensorType:
        """The type of a value."""
        return self.builder.types[value]

    def pick(self, wanted: Callable[[TensorType], bool] = lambda _: True) -> int | None:
        """A value of a wanted type, late ones more often; None if there is none."""
        fitting = [value for value in self.values if wanted(self.type(value))]
        if not fitting:
            return None
        return (
            fitting[-1 - min(self.integer(0, 3), len(fitting) - 1)]
            if self.draw(st.booleans())
            else self.draw(st.sampled_from(fitting))
        )

    def keep(self, value: int) -> None:
        """Make a new value available, if it is not too large."""
        kind = self.type(value)
        if kind.rank <= _RANK_MAX and largest(kind.element_count) <= _ELEMENTS_MAX:
            self.values.append(value)

    # ---- movement --------------------------------------------------------------------------------

    def transpose(self, x: int) -> int:
        """Any permutation."""
        if self.type(x).rank < 2:
            return x
        permutation = self.draw(st.permutations(range(self.type(x).rank)))
        return self.builder.op("transpose", x, permutation=tuple(permutation))

    def slice(self, x: int) -> int:
        """Any start and size of fixed axes; of symbolic ones the whole, reversed, every other
        element or a part."""
        entries = [self._slice_axis(dim) for dim in self.type(x).shape]
        starts, sizes, steps = ([entry[part] for entry in entries] for part in range(3))
        return self.builder.op(
            "slice",
            x,
            starts=tuple(starts),
            sizes=tuple(sizes),
            steps=tuple(map(int, map(str, steps))),
        )

    def _slice_axis(self, dim: Dim) -> tuple[Dim, Dim, int]:
        step = int(str(self.one_of(1, 1, -1, 2, -2, 3)))
        if isinstance(dim, int):
            if dim == 0 or self.integer(0, 9) == 0:
                return 0, 0, 1
            start = self.integer(0, dim - 1)
            most = (dim - 1 - start) // step + 1 if step > 0 else start // -step + 1
            return start, self.integer(1, most), step
        kind = self.integer(0, 3)
        if kind == 0:
            return 0, dim, 1
        if kind == 1:
            return dim - 1, dim, -1
        if kind == 2:
            return 0, dim_floordiv(dim + 1, 2), 2
        return dim_max(dim - 2, 0), dim_min(dim, 2), 1

    def reshape(self, x: int) -> int:
        """Merge, split, flatten, insert and remove axes."""
        shape = list(self.type(x).shape)
        kind = self.integer(0, 4)
        if kind == 0:
            shape = [dim_product(tuple(shape))]
        elif kind == 1 and len(shape) > 1:
            axis = self.integer(0, len(shape) - 2)
            shape[axis : axis + 2] = [dim_mul(shape[axis], shape[axis + 1])]
        elif kind == 2:
            shape.insert(self.integer(0, len(shape)), 1)
        elif kind == 3 and 1 in shape:
            shape.remove(1)
        else:
            options = [(axis, factor) for axis, dim in enumerate(shape) for factor in factors(dim)]
            if options:
                axis, factor = self.draw(st.sampled_from(options))
                parts = [factor, dim_floordiv(shape[axis], factor)]
                shape[axis : axis + 1] = parts if self.draw(st.booleans()) else parts[::-1]
        return self.builder.op("reshape", x, shape=tuple(shape))

    def broadcast(self, x: int) -> int:
        """New leading axes, and axes of size 1 made longer."""
        lengths: tuple[Dim, ...] = (2, 5, 17, symbol(self.draw(st.sampled_from(SYMBOLS))))
        shape = [
            self.draw(st.sampled_from(lengths)) if dim == 1 else dim for dim in self.type(x).shape
        ]
        if self.draw(st.booleans()):
            shape.insert(0, self.integer(1, 3))
        return self.builder.op("broadcast_to", x, shape=tuple(shape))

    def concat(self, x: int) -> int:
        """A value with itself or its like, along any axis."""
        kind = self.type(x)
        if kind.rank == 0:
            return x
        axis = self.integer(0, kind.rank - 1)

        def beside(other: TensorType) -> bool:
            return other.dtype == kind.dtype and other.rank == kind.rank and all(
                other.shape[i] == kind.shape[i] for i in range(kind.rank) if i != axis
            )  # fmt: skip

        others = [self.pick(beside) for _ in range(self.integer(0, 2))]
        return self.builder.op(
            "concat", *(other for other in (x, *others) if other is not None), axis=axis
        )

    def pad(self, x: int) -> int:
        """With a constant on any side."""
        kind = self.type(x)
        before = tuple(self.integer(0, 2) for _ in kind.shape)
        after = tuple(self.integer(0, 2) for _ in kind.shape)
        number: bool | int | float = {"bool": True, "f32": 3.0}.get(kind.dtype, 3)
        value = self.builder.add(
            "literal", (), {"dtype": kind.dtype, "shape": (), "value": (number,)}
        )
        fixed = all(isinstance(dim, int) and dim > 2 for dim in kind.shape)
        mode = str(self.one_of("constant", "edge", "reflect", "wrap")) if fixed else "constant"
        return self.builder.op("pad", x, value, before=before, after=after, mode=mode)

    def gather(self, x: int) -> int:
        """Fixed indices along an axis of fixed size."""
        axes = [
            axis for axis, dim in enumerate(self.type(x).shape) if isinstance(dim, int) and dim > 0
        ]
        if not axes:
            return x
        axis = self.draw(st.sampled_from(axes))
        size = int(str(self.type(x).shape[axis]))
        rows, columns = self.integer(1, 2), self.integer(1, 3)
        indices = tuple(self.integer(-size, size - 1) for _ in range(rows * columns))
        picked = self.builder.add(
            "literal", (), {"dtype": "i64", "shape": (rows, columns), "value": indices}
        )
        return self.builder.op("gather", x, picked, axis=axis)

    def move(self) -> None:
        """One to three movements in a row; the values between can be used again."""
        x = self.pick()
        assert x is not None
        for _ in range(self.integer(1, 3)):
            rule = self.draw(
                st.sampled_from(
                    (
                        self.transpose,
                        self.slice,
                        self.reshape,
                        self.broadcast,
                        self.concat,
                        self.pad,
                        self.gather,
                    )
                )
            )
            moved = rule(x)
            if (
                largest(self.type(moved).element_count) > _ELEMENTS_MAX
                or self.type(moved).rank > _RANK_MAX
            ):
                return
            x = moved
            self.keep(x)

    # ---- arithmetic ------------------------------------------------------------------------------

    def like(self, x: int) -> int:
        """A value that x can be combined with: same type, or one that broadcasts to it, or a
        reduction of it."""
        kind = self.type(x)

        def fits(other: TensorType) -> bool:
            missing = kind.rank - other.rank
            return other.dtype == kind.dtype and missing >= 0 and all(
                size in (1, kind.shape[missing + axis]) for axis, size in enumerate(other.shape)
            )  # fmt: skip

        other = self.pick(fits)
        return x if other is None else other

    def exact(self) -> None:
        """One op whose result on small integers has no rounding, or the same in any order."""
        rules = (
            self._arithmetic,
            self._arithmetic,
            self._compare,
            self._cast,
            self._exact_reduce,
            self._scan,
        )
        value = self.draw(st.sampled_from(rules))()
        if value is not None:
            self.keep(value)

    def _arithmetic(self) -> int | None:
        x = self.pick()
        assert x is not None
        if self.type(x).dtype == "bool":
            if self.integer(0, 2) == 0:
                return self.builder.op("logical_not", x)
            return self.builder.op(
                str(self.one_of("logical_and", "logical_or", "logical_xor")), x, self.like(x)
            )
        if self.integer(0, 2) == 0:
            return self.builder.op(str(self.one_of("neg", "abs", "sign")), x)
        if self.integer(0, 3) == 0 and self.type(x).dtype == "f32":
            return self.builder.op("mul", x, self.builder.literal(float(self.integer(-2, 2))))
        operands = (x, self.like(x))
        return self.builder.op(
            str(self.one_of("add", "sub", "mul", "min", "max")),
            *(operands if self.draw(st.booleans()) else operands[::-1]),
        )

    def _compare(self) -> int | None:
        x = self.pick(lambda kind: kind.dtype != "bool")
        if x is None:
            return None
        y = self.like(x)
        condition = self.builder.op(str(self.one_of("equal", "less", "less_equal")), x, y)
        self.keep(condition)
        return self.builder.op("select", condition, x, y)

    def _cast(self) -> int | None:
        x = self.pick()
        assert x is not None
        kinds = ("bool", "f64", "f32") if self.type(x).dtype == "f32" else (*_NUMBERS, "bool")
        value = self.builder.op("cast", x, dtype=self.draw(st.sampled_from(kinds)))
        # f64 comes back at once: nothing else here works on it.
        return (
            self.builder.op("cast", value, dtype="f32")
            if self.type(value).dtype == "f64"
            else value
        )

    def _axes(self, x: int) -> tuple[int, ...]:
        rank = self.type(x).rank
        return (
            tuple(sorted(self.draw(st.sets(st.integers(0, rank - 1), min_size=1)))) if rank else ()
        )

    def _exact_reduce(self) -> int | None:
        x = self.pick()
        assert x is not None
        functions = (
            ("max", "min")
            if self.type(x).dtype in ("f32", "bool")
            else ("max", "min", "sum", "product")
        )
        function = self.draw(st.sampled_from(functions))
        return self.builder.op(
            "reduce", x, function=function, axes=self._axes(x), keepdims=self.draw(st.booleans())
        )

    def _scan(self) -> int | None:
        x = self.pick(lambda kind: kind.dtype in ("i64", "i32", "u8") and kind.rank > 0)
        if x is None:
            return None
        shape = self.type(x).shape
        axis = self.integer(0, len(shape) - 1)
        kind = self.integer(0, 3)
        if kind == 0:
            return self.builder.op(
                "cumsum",
                x,
                axis=axis,
                exclusive=self.draw(st.booleans()),
                reverse=self.draw(st.booleans()),
            )
        if kind == 1 and is_fixed(shape[axis]):
            op = str(self.one_of("argmax", "argmin"))
            last, keep = self.draw(st.booleans()), self.draw(st.booleans())
            return self.builder.op(op, x, axis=axis, select_last=last, keepdims=keep)
        if kind == 2 and len(shape) >= 2:
            order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
            return self.builder.op("matmul", x, self.builder.op("transpose", x, permutation=order))
        dim = self.type(x).shape[-1]
        return self.builder.op(
            "add", x, self.builder.op("iota", dtype=self.type(x).dtype, length=dim)
        )

    def smooth(self) -> None:
        """One op of f32 that amplifies no rounding error."""
        value = self.draw(
            st.sampled_from(
                (self._curve, self._curve, self._mean, self._row, self._product, self._image)
            )
        )()
        if value is not None:
            self.keep(value)

    def _curve(self) -> int | None:
        x = self.pick()
        assert x is not None
        kind = self.integer(0, 3)
        if kind == 0:
            return self.builder.op(
                str(self.one_of("tanh", "sigmoid", "relu", "neg", "erf", "silu")), x
            )
        if kind == 1:
            return self.builder.op("mul", x, self.builder.literal(float(self.integer(-2, 2)) / 2))
        if kind == 2 and self.type(x).rank and is_fixed(self.type(x).shape[-1]):
            return self.builder.op("add", x, self.weights(self.type(x).shape[-1]))
        return self.builder.op(
            str(self.one_of("add", "sub", "max")), self.builder.op("tanh", x), self.like(x)
        )

    def weights(self, *shape: Dim) -> int:
        """A constant of normally distributed numbers."""
        sizes = [int(str(dim)) for dim in shape]
        return self.builder.constant(normal(self.integer(0, 3), *sizes))

    def _mean(self) -> int | None:
        x = self.pick()
        assert x is not None
        function = str(self.one_of("mean", "mean", "max"))
        return self.builder.op(
            "reduce", x, function=function, axes=self._axes(x), keepdims=self.draw(st.booleans())
        )

    def _row(self) -> int | None:
        x = self.pick(lambda kind: kind.rank > 0)
        assert x is not None
        shape = self.type(x).shape
        axis = self.integer(0, len(shape) - 1)
        kind = self.integer(0, 3)
        if kind < 2 or not all(map(is_fixed, shape[axis:])):
            return self.builder.op("softmax", x, axis=axis)
        scale = self.weights(*shape[axis:])
        if kind == 2:
            return self.builder.op("rms_norm", x, scale, axis=axis, epsilon=0.1)
        return self.builder.op(
            "layer_norm", x, scale, self.weights(*shape[axis:]), axis=axis, epsilon=0.1
        )

    def _scaled(self, x: int) -> int:
        return self.builder.op("mul", x, self.builder.literal(0.0625))

    def _product(self) -> int | None:
        x = self.pick(lambda kind: kind.rank > 1)
        assert x is not None
        shape = self.type(x).shape
        kind = self.integer(0, 2)
        if kind == 0 and is_fixed(shape[-1]):
            return self._scaled(
                self.builder.op("matmul", x, self.weights(shape[-1], self.integer(1, 40)))
            )
        if kind == 1 and len(shape) == 4 and is_fixed(shape[3]) and shape[1] != 0:
            other = self.builder.op("tanh", x)
            operands = self.draw(st.permutations([x, other, x]))
            causal = self.draw(st.booleans())
            return self.builder.op(
                "attention", *operands, scale=0.25, causal=causal, nan_to_zero=True
            )
        order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
        operands = [x, self.builder.op("transpose", x, permutation=order)]
        return self._scaled(
            self.builder.op("matmul", *(operands if self.draw(st.booleans()) else operands[::-1]))
        )

    def _image(self) -> int | None:
        x = self.pick(lambda kind: kind.rank in (3, 4) and is_fixed(kind.shape[1]))
        if x is None:
            return None
        channels = int(str(self.type(x).shape[1]))
        rank = self.type(x).rank - 2
        strides = self.integer(1, 2)
        window: dict[str, Attribute] = {
            "strides": (strides,) * rank, "pads_before": (1,) * rank, "pads_after": (1,) * rank, "dilations": (1,) * rank,
        }  # fmt: skip
        kind = self.integer(0, 4)
        if kind == 0:
            return self.builder.op("max_pool", x, kernel=(3,) * rank, **window)
        if kind == 1:
            more: dict[str, Attribute] = {
                "count_include_pad": self.draw(st.booleans()),
                "pads_counted_after": (1,) * rank,
            }
            return self.builder.op("average_pool", x, kernel=(3,) * rank, **window, **more)
        if kind == 2:
            groups = channels if self.draw(st.booleans()) else 1
            scale, bias = self.weights(channels), self.weights(channels)
            return self.builder.op("group_norm", x, scale, bias, groups=groups, epsilon=0.1)
        groups = self.draw(
            st.sampled_from([size for size in (1, 2, channels) if channels % size == 0])
        )
        filters = groups * self.integer(1, 3)
        w = self.weights(filters, channels // groups, *(3,) * rank)
        operands = (x, w, self.weights(filters)) if self.draw(st.booleans()) else (x, w)
        return self._scaled(self.builder.op("conv", *operands, groups=groups, **window))


def largest(dim: Dim) -> int:
    """The value when every symbol is large."""
    value = substitute(dim, dict.fromkeys(symbols_of(dim), _LARGEST))
    assert isinstance(value, int)
    return value


def factors(dim: Dim) -> list[int]:
    """Divisors > 1 that an expression surely has."""
    if isinstance(dim, int):
        return [factor for factor in (2, 3, 4, 5) if dim > factor and dim % factor == 0]
    return [factor for factor in (2, 3) if all(scale % factor == 0 for _, scale in dim.terms)]


@st.composite
def input_types(draw: st.DrawFn, dtypes: Sequence[DType]) -> list[TensorType]:
    """One to three inputs of rank 0 to 4; most axes fixed. The first one binds every symbol."""
    types = [TensorType(draw(st.sampled_from(dtypes)), (symbol("s0"), symbol("s1")))]
    dims: tuple[Dim, ...] = (*_STATIC, *_STATIC, *map(symbol, SYMBOLS))
    for _ in range(draw(st.integers(1, 3))):
        shape = tuple(draw(st.lists(st.sampled_from(dims), max_size=4)))
        if largest(dim_product(shape)) > _ELEMENTS_MAX:
            shape = shape[:2]
        types.append(TensorType(draw(st.sampled_from(dtypes)), shape))
    return types


@st.composite
def image_types(draw: st.DrawFn) -> list[TensorType]:
    """Inputs of smooth graphs: one that binds the symbols, a row, an image."""
    sizes: tuple[Dim, ...] = (4, 7, *map(symbol, SYMBOLS))
    image: tuple[Dim, ...] = (
        draw(st.integers(1, 2)),
        draw(st.sampled_from((1, 3, 4, 8))),
        *(draw(st.sampled_from(sizes)) for _ in range(2)),
    )
    lengths: tuple[Dim, ...] = (*_STATIC, symbol("s0"))
    row = tuple(draw(st.lists(st.sampled_from(lengths), min_size=1, max_size=3)))
    return [TensorType("f32", shape) for shape in ((symbol("s0"), symbol("s1")), row, image)]


@st.composite
def graphs(
    draw: st.DrawFn, *, smooth: bool, steps: tuple[int, int] = (2, 10)
) -> tuple[Builder, list[TensorType], tuple[int, ...]]:
    """(builder, types of the inputs, outputs) of a graph made in least to most ``steps``."""
    types = draw(image_types()) if smooth else draw(input_types((*_NUMBERS, "bool")))
    drawing = Drawing(draw, types)
    for _ in range(draw(st.integers(*steps))):
        step = draw(st.sampled_from((drawing.move, drawing.smooth if smooth else drawing.exact)))
        step()
    more = draw(st.lists(st.sampled_from(drawing.values), max_size=3))
    return drawing.builder, types, (drawing.values[-1], *more)


@st.composite
def bindings(draw: st.DrawFn) -> dict[str, int]:
    """Sizes of the symbols."""
    return {name: draw(st.sampled_from(SIZES)) for name in SYMBOLS}


def inputs_for(types: Sequence[TensorType], sizes: dict[str, int], seed: int) -> list[Array]:
    """Small integers in every element type."""
    draw = np.random.default_rng(seed)
    names = {"f32": "float32", "i64": "int64", "i32": "int32", "u8": "uint8", "bool": "bool"}
    result: list[Array] = []
    for kind in types:
        shape = tuple(int(str(substitute(dim, dict(sizes)))) for dim in kind.shape)
        low = 0 if kind.dtype in ("u8", "bool") else -4
        result.append(
            draw.integers(low, 2 if kind.dtype == "bool" else 5, shape).astype(names[kind.dtype])
        )
    return result


def is_float(kind: TensorType) -> bool:
    """f32."""
    return kind.dtype == "f32"


def is_fixed(dim: Dim) -> bool:
    """Whether a size is known, and not 0."""
    return not isinstance(dim, Sum) and dim > 0
