"""Recurrent layers: one kernel walks over time; per step one contraction with the weights, then the
gates in lanes.

In: a group of one ``recurrent``; its results are y, the states, and the workspace of the gates.
Out: its loop programs: units are (direction, block of batch rows), so the weights are read once per
step and block. Not done here: the inputs' share of the gates (a ``matmul`` over all steps at once),
where everything lies (``recurrent_layer``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, symbol
from ingot_compiler.kernels.quantized_rows import (
    QuantizedRows,
    divisor_of,
    integer_of,
    scale_of,
    zero_of,
)
from ingot_compiler.kernels.recurrent_layer import RecurrentLayer
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, choose, one_launch
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.program import finish_program
from ingot_compiler.lowering.loops.loop_values import (
    Apply,
    Compare,
    Constant,
    FromIndex,
    Local,
    Value,
)
from ingot_compiler.lowering.loops.program import (
    For,
    If,
    Let,
    LetIndex,
    LoopProgram,
    Reduce,
    Statement,
)

_FEW_ROWS = 2  # rows of a tile
_FEW_ROWS_MAX = 4  # where a batch of so many is few


def lower_recurrent(group: Group, target: KernelTarget) -> LoweredGroup:
    """One kernel; where the number of rows is open, one for a single row and one for few rows too,
    whose products have registers for more columns instead of rows that are not there."""
    batch = group.results[0].type.shape[2]

    def kernel(rows: Dim) -> LoweredGroup:
        return one_launch(_program(RecurrentLayer(group, target, rows)))

    if isinstance(batch, int):
        return kernel(batch)
    few = choose(batch - 1, kernel(_FEW_ROWS), kernel(1))
    return choose(dim_floordiv(batch - 1, _FEW_ROWS_MAX), kernel(batch), few)


def _program(layer: RecurrentLayer) -> LoopProgram:
    """The initial state is copied into the final one, which every step updates."""
    copies = [layer.store_state(layer.h, layer.state(layer.given["h"]))]
    if layer.c is not None:
        copies.append(layer.store_state(layer.c, layer.state(layer.given["c"])))
    walk = For("t", layer.steps, "serial", _step(layer))
    body = (layer.rows((layer.lanes(*copies),)), walk)
    return finish_program(layer.buffers, body, layer.unit.count, 1)


def _step(layer: RecurrentLayer) -> tuple[Statement, ...]:
    """One step of time for the block's rows."""
    weights = layer.given["weights"]
    if layer.quantized is not None:
        product = layer.product(1, layer.quantized.integers, weights, layer.columns, 0)
        return _quantize(layer, layer.quantized), product, _for_rows(layer, *_lstm(layer))
    product = layer.product(1, layer.h, weights, layer.columns, 0)
    if layer.cell == "lstm":
        return product, _for_rows(layer, *_lstm(layer))
    if layer.cell == "rnn":
        return product, _for_rows(layer, *_finish(layer, layer.math.gate(0, layer.gate(0))))
    return product, *_reset_first(layer), _for_rows(layer, *_gru(layer))


def _quantize(layer: RecurrentLayer, quantized: QuantizedRows) -> For:
    """The state of the block's rows as u8, each by its own range."""
    direction, state = layer.unit.direction, layer.state(layer.h)
    low, high, scale, divisor, zero = (
        Local(name, "f32") for name in ("low", "high", "scale", "divisor", "zero")
    )
    integer = integer_of(state, divisor, zero)
    body = (
        Reduce("least", "min", "j", layer.hidden, "f32", (), state, lanes=True),
        Reduce("greatest", "max", "j", layer.hidden, "f32", (), state, lanes=True),
        Let("low", Apply("min", (Local("least", "f32"), Constant(0.0, "f32")), "f32")),
        Let("high", Apply("max", (Local("greatest", "f32"), Constant(0.0, "f32")), "f32")),
        Let("scale", scale_of(low, high)),
        Let("divisor", divisor_of(scale)),
        Let("zero", zero_of(low, divisor)),
        layer.store(quantized.scale, scale, direction, layer.row),
        layer.store(quantized.zero, Apply("cast", (zero,), "i32"), direction, layer.row),
        layer.lanes(layer.store_state(quantized.integers, integer)),
    )
    return layer.rows(body)


def _for_rows(layer: RecurrentLayer, *body: Statement) -> For:
    """``body`` for each hidden unit of the rows, at the time that this step means for the row;
    behind the row's end y is 0."""
    lanes = layer.lanes(*body)
    if "lengths" not in layer.given:
        return layer.rows((_let_time(layer, layer.steps), lanes))
    length = LetIndex("length", layer.load(layer.given["lengths"], layer.row))
    end = dim_max(dim_min(symbol("length"), layer.steps), 0)
    zero = layer.store_y(symbol("t"), layer.math.number(0))
    inside: Value = Compare("less", symbol("t"), end)
    outside = If(Apply("logical_not", (inside,), "bool"), (layer.lanes(zero),))
    return layer.rows((length, _let_time(layer, end), If(inside, (lanes,)), outside))


def _let_time(layer: RecurrentLayer, length: Dim) -> LetIndex:
    return LetIndex("time", FromIndex(layer.time(length), "i64"))


def _finish(layer: RecurrentLayer, h: Value) -> tuple[Statement, ...]:
    """Store a new state."""
    new = Local("new", layer.dtype)
    return Let("new", h), layer.store_state(layer.h, new), layer.store_y(symbol("time"), new)


def _lstm(layer: RecurrentLayer) -> tuple[Statement, ...]:
    """One row's step; gates lie in the order input, output, forget, cell."""
    assert layer.c is not None
    math, old = layer.math, layer.state(layer.c)
    i, o, f, g = (layer.gate(number) for number in range(4))
    input_gate, cell = Local("input", layer.dtype), Local("cell", layer.dtype)
    if "peepholes" in layer.given:
        p = layer.given["peepholes"]
        i = math.add(i, math.mul(layer.own(p), old))
        o = math.add(o, math.mul(layer.own(p, layer.hidden), cell))
        f = math.add(f, math.mul(layer.own(p, 2 * layer.hidden), old))
    forget = math.gate(0, f)
    if layer.node.flag("input_forget"):
        forget = math.apply("sub", math.number(1), input_gate)
    kept = math.add(math.mul(forget, old), math.mul(input_gate, math.gate(1, g)))
    return (
        Let("input", math.gate(0, i)),
        Let("cell", kept),
        layer.store_state(layer.c, cell),
        *_finish(layer, math.mul(math.gate(0, o), math.activation(2, cell))),
    )


def _gru(layer: RecurrentLayer) -> tuple[Statement, ...]:
    """One row's step, the candidate's share being there; gates lie in the order update, reset,
    candidate."""
    math, z = layer.math, Local("update", layer.dtype)
    if layer.is_reset_first:
        new = layer.gate(2)
    else:
        share = math.add(layer.share(2), layer.own(layer.given["bias"]))
        new = math.add(layer.inputs(2), math.mul(math.gate(0, layer.gate(1)), share))
    kept = math.mul(math.apply("sub", math.number(1), z), math.gate(1, new))
    state = math.add(kept, math.mul(z, layer.state(layer.h)))
    return Let("update", math.gate(0, layer.gate(0))), *_finish(layer, state)


def _reset_first(layer: RecurrentLayer) -> tuple[Statement, ...]:
    """The candidate's share of a GRU that multiplies the state by the reset gate first."""
    if layer.reset is None:
        return ()
    reset = layer.math.mul(layer.math.gate(0, layer.gate(1)), layer.state(layer.h))
    stored = _for_rows(layer, layer.store_state(layer.reset, reset))
    candidate, hidden = layer.given["candidate"], layer.hidden
    return stored, layer.product(2, layer.reset, candidate, hidden, 2 * hidden)


RECURRENT = Kind("recurrent", lower_recurrent)
