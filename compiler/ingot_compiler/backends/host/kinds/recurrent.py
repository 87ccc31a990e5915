"""Recurrent layers: one kernel walks over time; per step one contraction with the weights, then the
gates in lanes.

In: a group of one ``recurrent``; its results are y, the states, and the workspace of the gates.
Out: its loop program: units are (direction, block of batch rows), so the weights are read once per
step and block.
Not done here: the inputs' share of the gates (a ``matmul`` over all steps at once).
"""

from __future__ import annotations

from ingot_compiler.backends.host.tiles import choose_tile, lanes_of
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mod, dim_mul, symbol
from ingot_compiler.ir.ops.recurrent import CELLS, operand_names
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program
from ingot_compiler.lowering.loops import (
    Apply,
    Compare,
    Constant,
    Contraction,
    For,
    FromIndex,
    If,
    Let,
    LetIndex,
    Load,
    Local,
    LoopProgram,
    Statement,
    Store,
    Value,
)
from ingot_compiler.lowering.space import ceil_div, point, round_up

_BLOCKS_ROWS_MAX = 32


def lower_recurrent(group: Group, target: KernelTarget) -> LoopProgram:
    """The initial state is copied into the final one, which every step updates."""
    return _Recurrent(group, target).program()


class _Recurrent:
    """Builds the statements of one program."""

    def __init__(self, group: Group, target: KernelTarget) -> None:
        self.node = group.nodes[0]
        self.cell = self.node.text("cell")
        self.buffers = GroupBuffers(group)
        by_value = {operand.value: operand for operand in group.operands}
        named = zip(operand_names(self.node.table), self.node.operands, strict=False)
        self.given: dict[str, Operand] = {name: by_value[value] for name, value in named}
        self.y, self.h = group.results[:2]
        self.c = group.results[2] if self.cell == "lstm" else None
        self.gates = group.results[-2] if self.is_reset_first else group.results[-1]
        self.reset = group.results[-1] if self.is_reset_first else None
        self.dtype: DType = self.y.type.dtype
        self.steps, self.directions, self.batch, self.hidden = self.y.type.shape
        self.gate_count = CELLS[self.cell][0]
        self.target = target
        self.counter = 0
        own = 2 if self.is_reset_first else self.gate_count
        self.tile = choose_tile(self.batch, self.hidden * own, target, self.dtype)
        batch = self.batch if isinstance(self.batch, int) else self.tile.rows
        rows = round_up(min(batch, _BLOCKS_ROWS_MAX), self.tile.rows)
        assert isinstance(rows, int)
        self.row_block = rows
        blocks = ceil_div(self.batch, self.row_block)
        self.units = dim_mul(blocks, self.directions)
        self.direction = 0 if self.directions == 1 else dim_floordiv(symbol("p"), blocks)
        self.row_start = dim_mul(
            dim_mod(symbol("p"), blocks) if self.directions != 1 else symbol("p"), self.row_block
        )

    @property
    def is_reset_first(self) -> bool:
        """A GRU that multiplies the state by the reset gate before its second product."""
        return self.cell == "gru" and not self.node.flag("linear_before_reset")

    # ---- places ----------------------------------------------------------------------------------

    def load(self, operand: Operand, *index: Dim) -> Value:
        """An element."""
        return Load(
            self.buffers.number(operand), point(operand.type.shape, index).offset(operand.view)
        )

    def store(self, operand: Operand, value: Value, *index: Dim) -> Store:
        """Write an element."""
        return Store(
            self.buffers.number(operand),
            point(operand.type.shape, index).offset(operand.view),
            value,
        )

    def rows(self, body: tuple[Statement, ...]) -> For:
        """``body`` for every batch row ``b`` of the block."""
        return For("b", dim_min(self.row_block, self.batch - self.row_start), "serial", body)

    @property
    def row(self) -> Dim:
        """The batch row inside ``rows``."""
        return self.row_start + symbol("b")

    def lanes(self, *body: Statement) -> For:
        """``body`` for every hidden unit ``j``."""
        return For("j", self.hidden, "vector", body)

    def own(self, operand: Operand, shift: Dim = 0) -> Value:
        """The hidden unit's element of a vector per direction."""
        return self.load(operand, self.direction, shift + symbol("j"))

    def state(self, operand: Operand) -> Value:
        """The hidden unit's element of a state."""
        return self.load(operand, self.direction, self.row, symbol("j"))

    # ---- arithmetic ------------------------------------------------------------------------------

    def number(self, value: float) -> Value:
        """A constant of the element type."""
        return Constant(float(value), self.dtype)

    def apply(self, function: str, *arguments: Value) -> Value:
        """An elementwise function of values of the element type."""
        return Apply(function, arguments, "bool" if function == "less" else self.dtype)

    def activation(self, position: int, x: Value) -> Value:
        """Activation number ``position`` of a clipped value."""
        alpha, beta = (self.number(self.node.reals(name)[position]) for name in ("alphas", "betas"))
        return self.activated(self.node.texts("activations")[position], alpha, beta, x)

    def activated(self, name: str, alpha: Value, beta: Value, x: Value) -> Value:
        """One of ONNX's activations of recurrent layers."""
        zero, one = self.number(0), self.number(1)
        if name in ("Relu", "Sigmoid", "Softplus", "Tanh"):
            return self.apply(name.lower(), x)
        if name == "Softsign":
            return self.apply("div", x, self.apply("add", one, self.apply("abs", x)))
        if name == "ScaledTanh":
            return self.apply("mul", alpha, self.apply("tanh", self.apply("mul", beta, x)))
        if name == "ThresholdedRelu":
            return self.apply("select", self.apply("less", alpha, x), x, zero)
        if name in ("Affine", "HardSigmoid"):
            line = self.apply("add", self.apply("mul", alpha, x), beta)
            return (
                line if name == "Affine" else self.apply("min", self.apply("max", line, zero), one)
            )
        steep = self.apply("mul", alpha, x)
        if name == "Elu":
            steep = self.apply(
                "mul", alpha, self.apply("sub", self.apply("exp", self.apply("min", x, zero)), one)
            )
        return self.apply("select", self.apply("less", x, zero), steep, x)

    def clipped(self, x: Value) -> Value:
        """Limited by the cell's clip."""
        limit = self.node.real("clip")
        if not limit:
            return x
        return self.apply("min", self.apply("max", x, self.number(-limit)), self.number(limit))

    def gate(self, number: int) -> Value:
        """Inputs' and state's share of a gate."""
        time = symbol("time")
        column = dim_mul(dim_mul(self.direction, self.gate_count) + number, self.hidden) + symbol(
            "j"
        )
        return self.apply(
            "add", self.load(self.given["x"], time, self.row, column), self.share(number)
        )

    def share(self, number: int) -> Value:
        """The state's share of a gate."""
        return self.load(
            self.gates, self.direction, self.row, dim_mul(number, self.hidden) + symbol("j")
        )

    # ---- steps -----------------------------------------------------------------------------------

    def product(self, a: Operand, b: Operand, columns: Dim, first: Dim) -> For:
        """gates[direction, rows, first ..] = a[direction, rows] . b[direction]."""
        self.counter += 1
        row, column, depth, acc = (
            f"{name}{self.counter}" for name in ("row", "column", "k", "acc")
        )
        width = self.tile.vectors * lanes_of(self.dtype, self.target)
        panels = ceil_div(columns, width)
        start = dim_mul(symbol(f"panel{self.counter}"), width)
        k = symbol(depth)
        packed = b.type.rank == 4
        if packed:
            panel = dim_mul(self.direction, panels) + symbol(f"panel{self.counter}")
            b_index = (
                dim_mul(panel, dim_mul(self.hidden, width))
                + dim_mul(k, width)
                + symbol(column)
                - start
            )
        else:
            b_index = point(b.type.shape, (self.direction, k, symbol(column))).offset(b.view)
        a_index = point(a.type.shape, (self.direction, symbol(row), k)).offset(a.view)
        target = self.store(
            self.gates, Local(acc, self.dtype), self.direction, symbol(row), first + symbol(column)
        )
        statement = Contraction(
            row, self.batch, self.row_start, self.row_block, column, columns, start, (), depth, self.hidden,
            self.buffers.number(a), a_index, self.buffers.number(b), b_index, packed, self.dtype, acc, (target,), self.tile,
        )  # fmt: skip
        return For(f"panel{self.counter}", panels, "serial", (statement,))

    def placed(self, *body: Statement) -> tuple[Statement, ...]:
        """``body`` at the time that this step means for the row; behind the row's end y is 0."""
        reverse = self.node.flags("reverse")
        before: list[Statement] = []
        length: Dim = self.steps
        if "lengths" in self.given:
            before.append(LetIndex("length", self.load(self.given["lengths"], self.row)))
            length = dim_max(dim_min(symbol("length"), self.steps), 0)
        t = symbol("t")
        backwards = dim_max(length - 1 - t, 0)
        if len(set(reverse)) == 1:
            time = backwards if reverse[0] else t
        else:
            mirrored = self.direction if reverse[1] else 1 - self.direction
            time = dim_mul(mirrored, backwards) + dim_mul(1 - mirrored, t)
        before.append(LetIndex("time", FromIndex(time, "i64")))
        if "lengths" not in self.given:
            return (*before, *body)
        zero = self.store(self.y, self.number(0), t, self.direction, self.row, symbol("j"))
        inside: Value = Compare("less", t, length)
        outside = Apply("logical_not", (inside,), "bool")
        return (*before, If(inside, body), If(outside, (self.lanes(zero),)))

    def finish(self, h: Value) -> tuple[Statement, ...]:
        """Store a new state."""
        new = Local("new", self.dtype)
        return (
            Let("new", h),
            self.store(self.h, new, self.direction, self.row, symbol("j")),
            self.store(self.y, new, symbol("time"), self.direction, self.row, symbol("j")),
        )

    def lstm(self) -> tuple[Statement, ...]:
        """One row's step; gates lie in the order input, output, forget, cell."""
        assert self.c is not None
        old = self.state(self.c)
        i, o, f, g = (self.gate(number) for number in range(4))
        cell = Local("cell", self.dtype)
        if "peepholes" in self.given:
            p = self.given["peepholes"]
            i = self.apply("add", i, self.apply("mul", self.own(p), old))
            o = self.apply("add", o, self.apply("mul", self.own(p, self.hidden), cell))
            f = self.apply("add", f, self.apply("mul", self.own(p, 2 * self.hidden), old))
        forget = self.activation(0, self.clipped(f))
        if self.node.flag("input_forget"):
            forget = self.apply("sub", self.number(1), Local("input", self.dtype))
        candidate = self.activation(1, self.clipped(g))
        kept = self.apply(
            "add",
            self.apply("mul", forget, old),
            self.apply("mul", Local("input", self.dtype), candidate),
        )
        return (
            Let("input", self.activation(0, self.clipped(i))),
            Let("cell", kept),
            self.store(self.c, cell, self.direction, self.row, symbol("j")),
            *self.finish(
                self.apply("mul", self.activation(0, self.clipped(o)), self.activation(2, cell))
            ),
        )

    def gru(self) -> tuple[Statement, ...]:
        """One row's step, the candidate's share being there; gates lie in the order update, reset,
        candidate."""
        z = Local("update", self.dtype)
        if self.is_reset_first:
            new = self.gate(2)
        else:
            share = self.apply("add", self.share(2), self.own(self.given["bias"]))
            column = dim_mul(dim_mul(self.direction, 3) + 2, self.hidden) + symbol("j")
            inputs = self.load(self.given["x"], symbol("time"), self.row, column)
            reset = self.activation(0, self.clipped(self.gate(1)))
            new = self.apply("add", inputs, self.apply("mul", reset, share))
        candidate = self.activation(1, self.clipped(new))
        kept = self.apply("mul", self.apply("sub", self.number(1), z), candidate)
        return (
            Let("update", self.activation(0, self.clipped(self.gate(0)))),
            *self.finish(self.apply("add", kept, self.apply("mul", z, self.state(self.h)))),
        )

    def step(self) -> tuple[Statement, ...]:
        """One step of time for the block's rows."""
        weights = self.given["weights"]
        own = 2 if self.is_reset_first else self.gate_count
        product = self.product(self.h, weights, dim_mul(own, self.hidden), 0)
        if self.cell == "lstm":
            return product, self.rows(self.placed(self.lanes(*self.lstm())))
        if self.cell == "rnn":
            h = self.activation(0, self.clipped(self.gate(0)))
            return product, self.rows(self.placed(self.lanes(*self.finish(h))))
        update = self.rows(self.placed(self.lanes(*self.gru())))
        if self.reset is None:
            return product, update
        reset = self.apply(
            "mul", self.activation(0, self.clipped(self.gate(1))), self.state(self.h)
        )
        stored = self.store(self.reset, reset, self.direction, self.row, symbol("j"))
        first = self.rows(self.placed(self.lanes(stored)))
        second = self.product(self.reset, self.given["candidate"], self.hidden, 2 * self.hidden)
        return product, first, second, update

    def program(self) -> LoopProgram:
        """Copy the state, then walk over time."""
        states = [(self.h, self.given["h"])]
        if self.c is not None:
            states.append((self.c, self.given["c"]))
        copies = [
            self.store(into, self.state(source), self.direction, self.row, symbol("j"))
            for into, source in states
        ]
        body = (self.rows((self.lanes(*copies),)), For("t", self.steps, "serial", self.step()))
        return finish_program(self.buffers, body, self.units, 1)


RECURRENT = Kind("recurrent", one_kernel(lower_recurrent))
