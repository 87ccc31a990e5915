"""Runs loop programs one element at a time: slow, obvious, the oracle of code generation.

In: a ``LoopProgram``, flat arrays, scalars. Out: the arrays, changed in place. Not done here:
speed; the order in which compiled code adds (sums of floats are made in f64 here).

Arrays have the dtype of their buffer; bf16 is stored as uint16, bool as bool or uint8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ingot_compiler.ir.dims import evaluate
from ingot_compiler.ir.errors import InternalError, ModelError
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType, dtype_size_bits
from ingot_compiler.lowering.loops.interpret_scalars import Number, apply_function, cast, round_to
from ingot_compiler.lowering.loops.program import (
    Block,
    CallExtern,
    Filter,
    For,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Reduce,
    Require,
    Statement,
    Store,
)
from ingot_compiler.oracles.interpret_blocks import block_results
from ingot_compiler.oracles.interpret_values import Array, Memory, Names, Symbols
from ingot_runtime.lazy_dataclass import dataclass


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
    memory = Memory(buffers, [buffer.dtype for buffer in program.buffers])
    machine, symbols = _Machine(memory, f32_lanes), dict(scalars)
    for index in range(first, evaluate(program.extent, symbols) if last is None else last):
        machine.run(program.body, {**symbols, program.index: index}, {})


@dataclass(frozen=True, slots=True)
class _Machine:
    """The buffers, and how each statement changes them; symbols and locals are passed along."""

    memory: Memory
    f32_lanes: int

    def run(
        self, body: Sequence[Statement], symbols: dict[str, int], names: dict[str, Number]
    ) -> None:
        """Run statements; what they name is added to ``symbols`` and ``names``."""
        for statement in body:
            match statement:
                case Let(name, value):
                    names[name] = self.memory.value(value, symbols, names)
                case LetIndex(name, value, _):
                    symbols[name] = int(self.memory.value(value, symbols, names))
                case Reduce():
                    names[statement.name] = self._reduce(statement, symbols, names)
                case Filter():
                    symbols[statement.name] = self._filter(statement, symbols, names)
                case _:
                    self._execute(statement, symbols, names)

    def _execute(
        self,
        statement: Store | For | If | Require | CallExtern | Block,
        symbols: Symbols,
        names: Names,
    ) -> None:
        """Run a statement that names nothing."""
        match statement:
            case Store(buffer, index, value):
                number = self.memory.value(value, symbols, names)
                self.memory.store(buffer, evaluate(index, symbols), number)
            case For(variable, extent, _, inner):
                for number in range(evaluate(extent, symbols)):
                    self.run(inner, {**symbols, variable: number}, dict(names))
            case If(condition, inner):
                if self.memory.value(condition, symbols, names):
                    self.run(inner, dict(symbols), dict(names))
            case Require(number, condition):
                if not self.memory.value(condition, symbols, names):
                    where = f"requirement {number} of a kernel"
                    raise ModelError("a requirement of the model does not hold", where)
            case CallExtern(symbol, _, _):
                why = "its meaning is that of the composite in the graph"
                raise InternalError("a function of a library has no oracle", symbol, why)
            case _:
                results = block_results(statement, self.memory, self.f32_lanes, symbols, names)
                for place, made in results:
                    self.run(statement.epilogue, dict(place), {**names, **made})

    def _filter(self, statement: Filter, symbols: Symbols, names: Names) -> int:
        at, limit = evaluate(statement.start, symbols), evaluate(statement.limit, symbols)
        for number in range(evaluate(statement.extent, symbols)):
            inside, local = {**symbols, statement.variable: number}, dict(names)
            self.run(statement.body, inside, local)
            if not self.memory.value(statement.condition, inside, local):
                continue
            for store in statement.stores if at < limit else ():
                value = self.memory.value(store.value, inside, local)
                self.memory.store(store.buffer, evaluate(store.index, symbols) + at, value)
            at += 1
        return at

    def _reduce(self, statement: Reduce, symbols: Symbols, names: Names) -> Number:
        total: Number = _identity(statement.function, statement.dtype)
        name = {"sum": "add", "product": "mul"}.get(statement.function, statement.function)
        for number in range(evaluate(statement.extent, symbols)):
            inside, local = {**symbols, statement.variable: number}, dict(names)
            self.run(statement.body, inside, local)
            operand = cast(self.memory.value(statement.value, inside, local), statement.dtype)
            if statement.function == "max_number":
                total = max(total, operand)
            else:
                total = apply_function(name, statement.dtype, (total, operand))
        return round_to(total, statement.dtype)


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
