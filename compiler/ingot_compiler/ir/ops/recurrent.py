"""``recurrent(x, weights, ..){cell, ..}``: an LSTM, GRU or RNN over time (ONNX LSTM-22, GRU-22,
RNN-22).

In: x[T, B, D*G*H], the inputs' share of the gates, biases included (D directions, G gates);
weights[D, H, G*H]; initial_h[D, B, H]; then, where the cell or an attribute says so: initial_c[D,
B, H] (lstm), candidate weights[D, H, H] (gru without ``linear_before_reset``; ``weights`` then has
two gates), recurrent bias[D, H] (gru with it), lengths i64[B] (``has_lengths``), peepholes[D, 3*H]
(``has_peepholes``), scale[D, G*H] and sums i32[D, G*H] (``is_quantized``). Out: y[T, D, B, H],
final h and (lstm) final c, both [D, B, H]. Not done here: the product with the inputs' weights
(``matmul``), layouts (the frontend).

``is_quantized`` (lstm): the weights are 8-bit integers, each column with its scale and the sum of
its integers. In every step, each row of the state is quantized to u8 by its own range, as by ONNX
DynamicQuantizeLinear, and the product is one of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_bool,
    attribute_bools,
    attribute_float,
    attribute_floats,
    attribute_str,
    attribute_strs,
    require_attributes,
)
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import equal, equal_shapes
from ingot_compiler.ir.rules.reference_rules import narrow, sigmoid, widen
from ingot_compiler.ir.rules.typing_rules import require_dtype
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.shape_constraints import ShapeConstraint
from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass

CELLS: Mapping[str, tuple[int, int]] = {"gru": (3, 2), "lstm": (4, 3), "rnn": (1, 1)}
"""cell -> (gates, activations)."""

_FLAGS = ("has_lengths", "has_peepholes", "input_forget", "is_quantized", "linear_before_reset")
_ATTRIBUTES = (*_FLAGS, "activations", "alphas", "betas", "cell", "clip", "reverse")
_PER_DIRECTION = ("weights", "candidate", "bias", "peepholes", "scale", "sums")
"""The operands that an entry of the state is computed with."""

_ACTIVATIONS: Mapping[str, Callable[[Array, float, float], Array]] = {
    "Affine": lambda x, alpha, beta: alpha * x + beta,
    "Elu": lambda x, alpha, _beta: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "HardSigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "LeakyRelu": lambda x, alpha, _beta: np.where(x < 0, alpha * x, x),
    "Relu": lambda x, _alpha, _beta: np.maximum(x, 0),
    "ScaledTanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "Sigmoid": lambda x, _alpha, _beta: sigmoid(x),
    "Softplus": lambda x, _alpha, _beta: np.logaddexp(x, 0),
    "Softsign": lambda x, _alpha, _beta: x / (1 + np.abs(x)),
    "Tanh": lambda x, _alpha, _beta: np.asarray(np.tanh(x)),
    "ThresholdedRelu": lambda x, alpha, _beta: np.where(x > alpha, x, 0),
}
ACTIVATIONS = tuple(sorted(_ACTIVATIONS))


def operand_names(attributes: Attributes) -> tuple[str, ...]:
    """What each operand is, in order."""
    names = ["x", "weights", "h"]
    if attribute_str(attributes, "cell") == "lstm":
        names.append("c")
    if attribute_str(attributes, "cell") == "gru":
        names.append("bias" if attribute_bool(attributes, "linear_before_reset") else "candidate")
    names += ["lengths"] if attribute_bool(attributes, "has_lengths") else []
    names += ["peepholes"] if attribute_bool(attributes, "has_peepholes") else []
    return (*names, "scale", "sums") if attribute_bool(attributes, "is_quantized") else tuple(names)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, *_ATTRIBUTES)
    cell = attribute_str(attributes, "cell", tuple(CELLS))
    attribute_float(attributes, "clip")
    for name in _FLAGS:
        attribute_bool(attributes, name)
    names = operand_names(attributes)
    require(len(types) == len(names), f"operands {' '.join(names)}", len(types))
    given = dict(zip(names, types, strict=True))
    x, weights, h = given["x"], given["weights"], given["h"]
    require_dtype(x, ("f32", "f64"))
    require(x.rank == weights.rank == h.rank == 3, "x, weights and h of rank 3", (x, weights, h))
    _check_integers(given)
    integers = ("lengths", "weights", "sums") if "scale" in given else ("lengths",)
    alike = all(kind.dtype == x.dtype for name, kind in given.items() if name not in integers)
    require(alike, "one element type", x)
    constraints = _shape_constraints(given, CELLS[cell][0])
    _check_sequences(attributes, weights.shape[0], CELLS[cell][1])
    time, batch, _ = x.shape
    directions, hidden, _ = weights.shape
    state = TensorType(x.dtype, (directions, batch, hidden))
    y = TensorType(x.dtype, (time, directions, batch, hidden))
    return Inferred((y, state, state) if cell == "lstm" else (y, state), constraints)


def _check_integers(given: Mapping[str, TensorType]) -> None:
    """What a product of integers has besides."""
    if "scale" in given:
        require("c" in given, "a quantized layer to be an lstm", tuple(given))
        require_dtype(given["weights"], BYTES)
        require(given["sums"].dtype == "i32", "sums of i32", given["sums"])


def _shape_constraints(given: Mapping[str, TensorType], gates: int) -> tuple[ShapeConstraint, ...]:
    """That the operands, by name, have the sizes that x and the weights say."""
    _, batch, columns = given["x"].shape
    directions, hidden, _ = given["weights"].shape
    own = 2 if "candidate" in given else gates
    expected: dict[str, tuple[Dim, ...]] = {
        "weights": (directions, hidden, own * hidden),
        "h": (directions, batch, hidden),
        "c": (directions, batch, hidden),
        "candidate": (directions, hidden, hidden),
        "bias": (directions, hidden),
        "lengths": (batch,),
        "peepholes": (directions, 3 * hidden),
        "scale": (directions, gates * hidden),
        "sums": (directions, gates * hidden),
    }
    constraints = [equal("sizes of x and the gates", columns, gates * hidden * directions)]
    for name, kind in given.items():
        if name != "x":
            constraints += equal_shapes(f"sizes of {name}", kind.shape, expected[name])
    return tuple(constraints)


def _check_sequences(attributes: Attributes, directions: Dim, activations: int) -> None:
    """Attributes with an entry for each activation or direction."""
    for name in ("activations", "alphas", "betas"):
        value = attributes[name]
        fits = isinstance(value, tuple) and len(value) == activations
        require(fits, f"{activations} {name}", value)
    reverse = attribute_bools(attributes, "reverse")
    require(len(reverse) == directions, f"{directions} directions", reverse)


@dataclass(frozen=True, slots=True)
class _Direction:
    """One of the directions: its operands by name, and the attributes of the op."""

    given: Mapping[str, Array]
    attributes: Attributes

    def clip(self, value: Array) -> Array:
        limit = attribute_float(self.attributes, "clip") or np.inf
        return np.clip(value, -limit, limit)

    def activation(self, position: int, value: Array) -> Array:
        names = attribute_strs(self.attributes, "activations")
        alpha, beta = (
            attribute_floats(self.attributes, name)[position] for name in ("alphas", "betas")
        )
        return _ACTIVATIONS[names[position]](value, alpha, beta)

    def share(self, h: Array) -> Array:
        """The state's share of the gates."""
        weights = self.given["weights"]
        if "scale" not in self.given:
            return np.asarray(h @ weights)
        low, high = min(float(h.min()), 0.0), max(float(h.max()), 0.0)
        scale = (high - low) / 255
        divisor = 1.0 if high == low else scale
        zero = np.clip(np.rint(-low / divisor), 0, 255)
        integers = np.clip(np.rint(h / divisor) + zero, 0, 255)
        product = integers @ weights.astype(np.float64) - zero * self.given["sums"]
        return np.asarray(product * (scale * self.given["scale"]))


def _rnn(own: _Direction, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    return own.activation(0, own.clip(x + own.share(h))), c


def _lstm(own: _Direction, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    size = h.size
    i, o, f, g = np.split(x + own.share(h), 4)
    p: Array = own.given["peepholes"] if "peepholes" in own.given else np.zeros(3 * size)
    i = own.activation(0, own.clip(i + p[:size] * c))
    f = own.activation(0, own.clip(f + p[2 * size :] * c))
    f = 1 - i if attribute_bool(own.attributes, "input_forget") else f
    cell = f * c + i * own.activation(1, own.clip(g))
    o = own.activation(0, own.clip(o + p[size : 2 * size] * cell))
    return o * own.activation(2, cell), cell


def _gru(own: _Direction, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    size, share = h.size, own.share(h)
    z = own.activation(0, own.clip(x[:size] + share[:size]))
    r = own.activation(0, own.clip(x[size : 2 * size] + share[size : 2 * size]))
    if attribute_bool(own.attributes, "linear_before_reset"):
        new = x[2 * size :] + r * (share[2 * size :] + own.given["bias"])
    else:
        new = x[2 * size :] + (r * h) @ own.given["candidate"]
    return (1 - z) * own.activation(1, own.clip(new)) + z * h, c


_STEPS = {"gru": _gru, "lstm": _lstm, "rnn": _rnn}
"""cell -> (operands of its direction, gates' inputs of one row, h, c) -> (new h, new c)."""


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    names, cell = operand_names(attributes), attribute_str(attributes, "cell")
    given = {name: widen(array) for name, array in zip(names, operands, strict=True)}
    x, h = given["x"], given["h"].copy()
    c = given["c"].copy() if "c" in given else np.zeros(h.shape)
    directions, batch, hidden = h.shape
    y = np.zeros((len(x), directions, batch, hidden))
    lengths: list[int] = given["lengths"].tolist() if "lengths" in given else [len(x)] * batch
    for d, reverse in enumerate(attribute_bools(attributes, "reverse")):
        rows = {name: given[name][d] for name in _PER_DIRECTION if name in given}
        own = _Direction(rows, attributes)
        columns = slice(d * x.shape[2] // directions, (d + 1) * x.shape[2] // directions)
        for b in range(batch):
            steps = range(min(max(lengths[b], 0), len(x)))
            for t in reversed(steps) if reverse else steps:
                h[d, b], c[d, b] = _STEPS[cell](own, x[t, b, columns], h[d, b], c[d, b])
                y[t, d, b] = h[d, b]
    return tuple(
        narrow(result, operands[0]) for result in ((y, h, c) if cell == "lstm" else (y, h))
    )


OPS = (CoreOp("recurrent", _infer, _reference),)
