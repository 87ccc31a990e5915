"""Runs loop programs one element at a time: slow, obvious, the oracle of code generation.

In: a ``LoopProgram``, flat arrays, scalars. Out: the arrays, changed in place. Not done here:
speed; the order in which compiled code adds (sums of floats are made in f64 here).

Arrays have the dtype of their buffer; bf16 is stored as uint16, bool as bool or uint8.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.dims import Dim, evaluate
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType, dtype_size_bits
from ingot_compiler.lowering.interpret_scalars import (
    Number,
    apply_function,
    bf16_bits,
    bf16_number,
    cast,
    round_to,
)
from ingot_compiler.lowering.loops import (
    Apply,
    Attention,
    Compare,
    Constant,
    Contraction,
    Depthwise,
    DepthwisePlane,
    For,
    FromIndex,
    If,
    Let,
    LetIndex,
    Load,
    Local,
    LoopProgram,
    Reduce,
    Require,
    Statement,
    Store,
    Transpose,
    Value,
)  # fmt: skip

Array = npt.NDArray[Any]


def interpret_loops(
    program: LoopProgram,
    buffers: Sequence[Array],
    scalars: Mapping[str, int],
    *,
    f32_lanes: int,
    first: int = 0,
    last: int | None = None,
) -> None:
    """Run the body for every index in [first, last) (by default the whole extent) on flat
    ``buffers``, in place.

    ``f32_lanes`` is the target's, for which the program's tiles were chosen. An access outside of a
    buffer is an IndexError, a requirement that does not hold a ModelError.
    """
    machine = _Machine(program, buffers, f32_lanes)
    symbols = dict(scalars)
    for index in range(first, evaluate(program.extent, symbols) if last is None else last):
        machine.run(program.body, {**symbols, program.index: index}, {})


class _Machine:
    """The buffers, and how each statement changes them; symbols and locals are passed along."""

    def __init__(self, program: LoopProgram, buffers: Sequence[Array], f32_lanes: int) -> None:
        self._dtypes: list[DType] = [buffer.dtype for buffer in program.buffers]
        self._buffers = buffers
        self._f32_lanes = f32_lanes

    def run(
        self, body: Sequence[Statement], symbols: dict[str, int], names: dict[str, Number]
    ) -> None:
        """Run statements; what they name is added to ``symbols`` and ``names``."""
        for statement in body:
            match statement:
                case Let(name, value):
                    names[name] = self.value(value, symbols, names)
                case LetIndex(name, value):
                    symbols[name] = int(self.value(value, symbols, names))
                case Store(buffer, index, value):
                    number = self.value(value, symbols, names)
                    self._store(
                        buffer, evaluate(index, symbols), cast(number, self._dtypes[buffer])
                    )
                case For(variable, extent, _, inner):
                    for number in range(evaluate(extent, symbols)):
                        self.run(inner, {**symbols, variable: number}, dict(names))
                case If(condition, inner):
                    if self.value(condition, symbols, names):
                        self.run(inner, dict(symbols), dict(names))
                case Require(number, condition):
                    if not self.value(condition, symbols, names):
                        raise ModelError(
                            "a requirement of the model does not hold",
                            f"requirement {number} of a kernel",
                        )
                case Reduce():
                    names[statement.name] = self._reduce(statement, symbols, names)
                case Contraction():
                    self._contraction(statement, symbols, names)
                case Depthwise():
                    self._depthwise(statement, symbols, names)
                case DepthwisePlane():
                    self._depthwise_plane(statement, symbols, names)
                case Attention():
                    self._attention(statement, symbols, names)
                case Transpose():
                    self._transpose(statement, symbols, names)

    # ---- values ----------------------------------------------------------------------------------

    def value(
        self, value: Value, symbols: Mapping[str, int], names: Mapping[str, Number]
    ) -> Number:
        """Evaluate; only the chosen arm of a ``select`` is evaluated, so it may guard a load."""
        match value:
            case Load(buffer, index):
                return self._load(buffer, evaluate(index, symbols))
            case Constant(number, dtype):
                return cast(number, dtype)
            case FromIndex(index, dtype):
                return cast(evaluate(index, symbols), dtype)
            case Compare(function, left, right):
                return apply_function(
                    function, "i64", (evaluate(left, symbols), evaluate(right, symbols))
                )
            case Local(name, _):
                return names[name]
            case Apply("select", (condition, left, right), _):
                return self.value(
                    left if self.value(condition, symbols, names) else right, symbols, names
                )
            case Apply():
                return self._apply(
                    value, [self.value(argument, symbols, names) for argument in value.arguments]
                )

    def _apply(self, value: Apply, numbers: Sequence[Number]) -> Number:
        if value.function == "cast":
            return cast(numbers[0], value.dtype)
        return round_to(
            apply_function(value.function, self._dtype(value.arguments[0]), numbers), value.dtype
        )

    def _dtype(self, value: Value) -> DType:
        match value:
            case Load():
                return self._dtypes[value.buffer]
            case Compare():
                return "bool"
            case _:
                return value.dtype

    def _load(self, buffer: int, index: int) -> Number:
        if index < 0:
            raise IndexError(f"element {index} of buffer {buffer}")
        number: Number = self._buffers[buffer][index].item()
        return bf16_number(int(number)) if self._dtypes[buffer] == "bf16" else number

    def _store(self, buffer: int, index: int, number: Number) -> None:
        if index < 0:
            raise IndexError(f"element {index} of buffer {buffer}")
        self._buffers[buffer][index] = (
            bf16_bits(number) if self._dtypes[buffer] == "bf16" else number
        )

    # ---- reductions ------------------------------------------------------------------------------

    def _reduce(
        self, statement: Reduce, symbols: Mapping[str, int], names: Mapping[str, Number]
    ) -> Number:
        total: Number = _identity(statement.function, statement.dtype)
        name = {"sum": "add", "product": "mul"}.get(statement.function, statement.function)
        for number in range(evaluate(statement.extent, symbols)):
            inside, local = {**symbols, statement.variable: number}, dict(names)
            self.run(statement.body, inside, local)
            operand = cast(self.value(statement.value, inside, local), statement.dtype)
            if statement.function == "max_number":
                total = max(total, operand)
            else:
                total = apply_function(name, statement.dtype, (total, operand))
        return round_to(total, statement.dtype)

    def _sum(
        self,
        ranges: Sequence[tuple[str, Dim]],
        symbols: Mapping[str, int],
        left: tuple[int, Dim],
        right: tuple[int, Dim],
    ) -> Number:
        total: Number = 0
        for point in _points(ranges, symbols):
            a, b = (self._load(buffer, evaluate(index, point)) for buffer, index in (left, right))
            total += a * b
        return total

    def _contraction(
        self, s: Contraction, symbols: Mapping[str, int], names: Mapping[str, Number]
    ) -> None:
        start, first = evaluate(s.row_start, symbols), evaluate(s.column_start, symbols)
        lanes = self._f32_lanes * 32 // dtype_size_bits(s.dtype)
        ranges = (*s.taps, (s.depth, s.depth_extent))
        for row in range(start, min(start + s.row_block, evaluate(s.rows, symbols))):
            for column in range(
                first, min(first + s.tile.vectors * lanes, evaluate(s.columns, symbols))
            ):
                inside = {**symbols, s.row: row, s.column: column}
                total = self._sum(ranges, inside, (s.a, s.a_index), (s.b, s.b_index))
                self.run(s.epilogue, inside, {**names, s.accumulator: round_to(total, s.dtype)})

    def _depthwise(
        self, s: Depthwise, symbols: Mapping[str, int], names: Mapping[str, Number]
    ) -> None:
        for x in range(evaluate(s.x_extent, symbols)):
            for channel in range(evaluate(s.channels, symbols)):
                inside = {**symbols, s.x: x, s.channel: channel}
                total = self._sum(s.taps, inside, (s.a, s.a_index), (s.w, s.w_index))
                self.run(s.epilogue, inside, {**names, s.accumulator: round_to(total, s.dtype)})

    def _depthwise_plane(
        self, s: DepthwisePlane, symbols: Mapping[str, int], names: Mapping[str, Number]
    ) -> None:
        for y, x in np.ndindex(s.extents):
            total = 0.0
            for point in _points(s.taps, {**symbols, s.y: y, s.x: x}):
                taps = (point[s.taps[0][0]], point[s.taps[1][0]])
                row, column = (
                    at * stride + tap * dilation - pad
                    for at, stride, tap, dilation, pad in zip(
                        (y, x), s.strides, taps, s.dilations, s.pads, strict=True
                    )
                )
                if 0 <= row < s.image[0] and 0 <= column < s.image[1]:
                    pixel = evaluate(s.a_index, {**point, s.row: row, s.column: column})
                    total += self._load(s.a, pixel) * self._load(s.w, evaluate(s.w_index, point))
            self.run(
                s.epilogue,
                {**symbols, s.y: y, s.x: x},
                {**names, s.accumulator: round_to(total, s.dtype)},
            )

    def _transpose(
        self, s: Transpose, symbols: Mapping[str, int], names: Mapping[str, Number]
    ) -> None:
        start, first = evaluate(s.row_start, symbols), evaluate(s.column_start, symbols)
        for row in range(start, min(start + s.row_block, evaluate(s.rows, symbols))):
            for column in range(first, min(first + s.column_block, evaluate(s.columns, symbols))):
                inside = {**symbols, s.row: row, s.column: column}
                read = {
                    name: self._load(buffer, evaluate(index, inside))
                    for name, buffer, index in s.values
                }
                self.run(s.epilogue, inside, {**names, **read})

    # ---- attention -------------------------------------------------------------------------------

    def _attention(
        self, s: Attention, symbols: Mapping[str, int], names: Mapping[str, Number]
    ) -> None:
        start = evaluate(s.query_start, symbols)
        for query in range(start, min(start + s.query_block, evaluate(s.queries, symbols))):
            inside = {**symbols, s.query: query}
            weights = self._attention_weights(s, inside, names)
            for column in range(s.value_extent):
                total = 0.0
                for key, weight in enumerate(weights):
                    point = {**inside, s.key: key, s.value: column}
                    total += weight * self._load(s.v, evaluate(s.v_index, point))
                self.run(
                    s.epilogue,
                    {**inside, s.value: column},
                    {**names, s.accumulator: round_to(total, "f32")},
                )

    def _attention_weights(
        self, s: Attention, symbols: Mapping[str, int], names: Mapping[str, Number]
    ) -> list[float]:
        """The softmax of one query's scores; empty where every key is masked and NaN is to become
        0."""
        scores: list[float] = []
        offset = evaluate(s.causal_offset, symbols)
        for key in range(evaluate(s.keys, symbols)):
            point = {**symbols, s.key: key}
            if s.causal and key > symbols[s.query] + offset:
                scores.append(-math.inf)
                continue
            score = s.scale * self._sum(
                ((s.depth, s.depth_extent),), point, (s.q, s.q_index), (s.k, s.k_index)
            )
            scores.append(score if s.mask is None else score + self.value(s.mask, point, names))
        if s.nan_to_zero and all(score == -math.inf for score in scores):
            return []
        with np.errstate(all="ignore"):
            table = np.array(scores, np.float64)
            powers = np.exp(table - np.max(table, initial=-np.inf))
            weights: list[float] = (powers / np.sum(powers)).tolist()
        return weights


def _identity(function: str, dtype: DType) -> Number:
    if function in ("sum", "product"):
        return round_to(0 if function == "sum" else 1, dtype)
    if dtype in FLOATS:
        return -math.inf if function in ("max", "max_number") else math.inf
    if dtype == "bool":
        return function == "min"
    bits = dtype_size_bits(dtype) - (0 if dtype in UNSIGNED else 1)
    least = 0 if dtype in UNSIGNED else -(1 << bits)
    return least if function == "max" else (1 << bits) - 1


def _points(
    ranges: Sequence[tuple[str, Dim]], symbols: Mapping[str, int]
) -> Iterator[Mapping[str, int]]:
    """Every point of nested ranges, the last one fastest."""
    if not ranges:
        yield symbols
        return
    (name, extent), *rest = ranges
    for number in range(evaluate(extent, symbols)):
        yield from _points(rest, {**symbols, name: number})
