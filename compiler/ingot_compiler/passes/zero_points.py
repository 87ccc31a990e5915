"""Products of integers less their zero points, by products of the integers alone.

In: a rewriter, two centred operands. Out: i32 values. Not done here: which products become such
(``integer_products``), scales.

``sum (a - p)(b - q) = sum ab - p sum (b - q) - q sum a``: what belongs to constants is folded, so a
product with constant weights whose zero points are 0 adds one number per column. Operands are made
u8 and i8, the signs that processors multiply, by flipping the highest bit, which moves the zero
point by 128.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import DType
from ingot_compiler.passes.quantized_values import Centred, number
from ingot_compiler.passes.rewrite import Rewriter, in_shape
from ingot_runtime.lazy_dataclass import dataclass

_FLIP = 128


@dataclass(frozen=True, slots=True)
class Sums:
    """Emits ops on integers for one node of the model."""

    state: Rewriter
    source: tuple[int, ...]

    def add(
        self, op: OpName, *operands: int, attributes: Mapping[str, Attribute] | None = None
    ) -> int:
        """One op."""
        return self.state.emit(op, operands, attributes, self.source)

    def cast(self, value: int, dtype: DType) -> int:
        """In another element type."""
        if self.state.type_of(value).dtype == dtype:
            return value
        return self.add("cast", value, attributes={"dtype": dtype})

    def known(self, value: int) -> int:
        """A number of i32."""
        return self.state.literal(value, "i32", self.source)

    def sum(self, integers: int, axes: Sequence[int]) -> int:
        """Over ``axes``, which stay with size 1."""
        wide = self.cast(integers, "i32")
        attributes: dict[str, Attribute] = {
            "function": "sum",
            "axes": tuple(axes),
            "keepdims": True,
        }
        return self.add("reduce", wide, attributes=attributes)

    def moved(self, operand: Centred, dtype: DType) -> Centred:
        """The numbers as ``dtype``, u8 or i8, with i32 zero points."""
        zero = None if operand.zero is None else self._zero(operand.zero)
        if self.state.type_of(operand.integers).dtype == dtype:
            return Centred(operand.integers, zero)
        flipped = self.add("bit_cast", operand.integers, attributes={"dtype": dtype})
        highest = self.state.literal(_FLIP if dtype == "u8" else -_FLIP, dtype, self.source)
        move = _FLIP if dtype == "u8" else -_FLIP
        return Centred(self.add("bitwise_xor", flipped, highest), self._plus(zero, move))

    def _zero(self, zero: int) -> int:
        found = number(self.state, zero)
        return self.cast(zero, "i32") if found is None else self.known(int(found))

    def _plus(self, zero: int | None, move: int) -> int | None:
        found = 0 if zero is None else number(self.state, zero)
        if found is None:
            assert zero is not None
            return self.add("add", zero, self.known(move))
        return self.known(int(found) + move) if found + move else None


def integer_matmul(sums: Sums, a: Centred, b: Centred) -> int:
    """``(a - p) @ (b - q)``; zero points are the same along the summed axis."""
    a, b = sums.moved(a, "u8"), sums.moved(b, "i8")
    total = sums.add("matmul_integer", a.integers, b.integers)
    if a.zero is not None:
        columns = sums.sum(b.integers, (sums.state.type_of(b.integers).rank - 2,))
        if b.zero is not None:
            depth = _count(sums, (sums.state.shape_of(a.integers)[-1],))
            columns = sums.add("sub", columns, sums.add("mul", b.zero, depth))
        total = sums.add("sub", total, sums.add("mul", columns, a.zero))
    if b.zero is not None:
        rows = sums.sum(a.integers, (sums.state.type_of(a.integers).rank - 1,))
        total = sums.add("sub", total, sums.add("mul", rows, b.zero))
    return total


@dataclass(frozen=True, slots=True)
class Convolution:
    """``x`` with one zero point, weights with one for each output channel, perhaps a bias of i32;
    the attributes of ``conv``."""

    x: Centred
    w: Centred
    bias: int | None
    attributes: Mapping[str, Attribute]


def integer_conv(sums: Sums, conv: Convolution) -> int:
    """``conv(x - p, w - q) + bias``, zeros around ``x - p``."""
    state = sums.state
    x, w = sums.moved(conv.x, "u8"), sums.moved(conv.w, "i8")
    window = dict(conv.attributes)
    integers = _padded(sums, x, window)
    shape = state.shape_of(w.integers)
    bias = () if conv.bias is None else (conv.bias,)
    if x.zero is not None:
        own = in_shape(state, _centred_sum(sums, w), (shape[0],), sums.source)
        moved = sums.add("mul", own, in_shape(state, x.zero, (), sums.source))
        bias = (sums.add("sub", *bias, moved) if bias else sums.add("neg", moved),)
    total = sums.add("conv", integers, w.integers, *bias, attributes=window)
    if w.zero is None:
        return total
    windows = _window_sums(sums, integers, shape, window)
    channels = (shape[0], *(1,) * (len(shape) - 2))
    zero = w.zero
    if state.type_of(zero).rank:
        zero = in_shape(state, zero, channels, sums.source)
    return sums.add("sub", total, sums.add("mul", windows, zero))


def _padded(sums: Sums, x: Centred, window: dict[str, Attribute]) -> int:
    """The integers of ``x``; ``window`` gets what stands around them. A zero point that is known
    at run time alone is put there by an op of its own."""
    value = 0 if x.zero is None else number(sums.state, x.zero)
    pads = [window["pads_before"], window["pads_after"]]
    none = tuple(0 for _ in sums.state.shape_of(x.integers)[2:])
    if value is not None or pads == [none, none]:
        window["pad_value"] = int(value or 0)
        return x.integers
    assert x.zero is not None
    fill = sums.cast(in_shape(sums.state, x.zero, (), sums.source), "u8")
    before, after = ((0, 0, *pad) for pad in pads if isinstance(pad, tuple))
    window |= {"pads_before": none, "pads_after": none, "pad_value": 0}
    attributes: dict[str, Attribute] = {"before": before, "after": after, "mode": "constant"}
    return sums.add("pad", x.integers, fill, attributes=attributes)


def _centred_sum(sums: Sums, w: Centred) -> int:
    """The sum of ``w - q`` for each output channel."""
    shape = sums.state.shape_of(w.integers)
    total = sums.sum(w.integers, range(1, len(shape)))
    if w.zero is None:
        return total
    return sums.add("sub", total, sums.add("mul", w.zero, _count(sums, shape[1:])))


def _window_sums(
    sums: Sums, integers: int, shape: Sequence[Dim], window: Mapping[str, Attribute]
) -> int:
    """The sum of the integers beneath each window: a convolution with ones, of one channel where
    all channels see the same."""
    outputs = 1 if window["groups"] == 1 else shape[0]
    one = sums.state.literal(1, "i8", sums.source)
    ones = sums.add("broadcast_to", one, attributes={"shape": (outputs, *shape[1:])})
    return sums.add("conv", integers, ones, attributes=window)


def _count(sums: Sums, sizes: Sequence[Dim]) -> int:
    """The product of sizes as a number of i32."""
    count = dim_product(tuple(sizes))
    if isinstance(count, int):
        return sums.known(count)
    vector = sums.add("dim_values", attributes={"values": (count,)})
    return sums.cast(in_shape(sums.state, vector, (), sums.source), "i32")
