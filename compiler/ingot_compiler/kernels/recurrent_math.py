"""Arithmetic of recurrent layers: values of the layer's element type, ONNX's activations.

In: a ``recurrent`` node, values. Out: values. Not done here: where they come from
(``recurrent_layer``), the cells (``kinds.recurrent``). Source: ONNX LSTM-22, "activations".
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Value


class RecurrentMath:
    """Elementwise functions of values, as one layer computes them."""

    def __init__(self, node: Node, dtype: DType) -> None:
        self._node = node
        self._dtype: DType = dtype

    def number(self, value: float) -> Value:
        """A constant of the element type."""
        return Constant(float(value), self._dtype)

    def apply(self, function: str, *arguments: Value) -> Value:
        """An elementwise function of values of the element type."""
        return Apply(function, arguments, "bool" if function == "less" else self._dtype)

    def add(self, left: Value, right: Value) -> Value:
        """A sum."""
        return self.apply("add", left, right)

    def mul(self, left: Value, right: Value) -> Value:
        """A product."""
        return self.apply("mul", left, right)

    def gate(self, position: int, x: Value) -> Value:
        """Activation number ``position`` of a value within the cell's clip."""
        limit = self._node.real("clip")
        if limit:
            x = self.apply("min", self.apply("max", x, self.number(-limit)), self.number(limit))
        return self.activation(position, x)

    def activation(self, position: int, x: Value) -> Value:
        """Activation number ``position`` of a value."""
        alpha, beta = (
            self.number(self._node.reals(name)[position]) for name in ("alphas", "betas")
        )
        return _ACTIVATIONS[self._node.texts("activations")[position]](self, x, alpha, beta)


_Activation = Callable[[RecurrentMath, Value, Value, Value], Value]
"""(math, x, alpha, beta) -> value."""


def _plain(function: str) -> _Activation:
    def activation(math: RecurrentMath, x: Value, _alpha: Value, _beta: Value) -> Value:
        return math.apply(function, x)

    return activation


def _affine(math: RecurrentMath, x: Value, alpha: Value, beta: Value) -> Value:
    return math.add(math.mul(alpha, x), beta)


def _hard_sigmoid(math: RecurrentMath, x: Value, alpha: Value, beta: Value) -> Value:
    line = _affine(math, x, alpha, beta)
    return math.apply("min", math.apply("max", line, math.number(0)), math.number(1))


def _scaled_tanh(math: RecurrentMath, x: Value, alpha: Value, beta: Value) -> Value:
    return math.mul(alpha, math.apply("tanh", math.mul(beta, x)))


def _softsign(math: RecurrentMath, x: Value, _alpha: Value, _beta: Value) -> Value:
    return math.apply("div", x, math.add(math.number(1), math.apply("abs", x)))


def _thresholded_relu(math: RecurrentMath, x: Value, alpha: Value, _beta: Value) -> Value:
    return math.apply("select", math.apply("less", alpha, x), x, math.number(0))


def _elu(math: RecurrentMath, x: Value, alpha: Value, _beta: Value) -> Value:
    grown = math.apply("exp", math.apply("min", x, math.number(0)))
    return _below_zero(math, x, math.mul(alpha, math.apply("sub", grown, math.number(1))))


def _leaky_relu(math: RecurrentMath, x: Value, alpha: Value, _beta: Value) -> Value:
    return _below_zero(math, x, math.mul(alpha, x))


def _below_zero(math: RecurrentMath, x: Value, value: Value) -> Value:
    """``value`` where x < 0, else x."""
    return math.apply("select", math.apply("less", x, math.number(0)), value, x)


_ACTIVATIONS: dict[str, _Activation] = {
    "Affine": _affine,
    "Elu": _elu,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": _leaky_relu,
    "Relu": _plain("relu"),
    "ScaledTanh": _scaled_tanh,
    "Sigmoid": _plain("sigmoid"),
    "Softplus": _plain("softplus"),
    "Softsign": _softsign,
    "Tanh": _plain("tanh"),
    "ThresholdedRelu": _thresholded_relu,
}
