"""``recurrent(x, weights, ..){cell, ..}``: an LSTM, GRU or RNN over time (ONNX LSTM-22, GRU-22,
RNN-22).

In: x[T, B, D*G*H], the inputs' share of the gates, biases included (D directions, G gates);
weights[D, H, G*H]; initial_h[D, B, H]; then, where the cell or an attribute says so: initial_c[D,
B, H] (lstm), candidate weights[D, H, H] (gru without ``linear_before_reset``; ``weights`` then has
two gates), recurrent bias[D, H] (gru with it), lengths i64[B] (``has_lengths``), peepholes[D, 3*H]
(``has_peepholes``). Out: y[T, D, B, H], final h and (lstm) final c, both [D, B, H].
Not done here: the product with the inputs' weights (``matmul``), layouts (the frontend).
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
from ingot_compiler.ir.make_shape_constraints import equal, equal_shapes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.reference_rules import narrow, sigmoid, widen
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typing_rules import require_dtype

CELLS: Mapping[str, tuple[int, int]] = {"gru": (3, 2), "lstm": (4, 3), "rnn": (1, 1)}
"""cell -> (gates, activations)."""

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
    return (*names, "peepholes") if attribute_bool(attributes, "has_peepholes") else tuple(names)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(
        attributes, "activations", "alphas", "betas", "cell", "clip", "has_lengths", "has_peepholes", "input_forget",
        "linear_before_reset", "reverse",
    )  # fmt: skip
    cell = attribute_str(attributes, "cell", tuple(CELLS))
    attribute_float(attributes, "clip")
    for name in ("has_lengths", "has_peepholes", "input_forget", "linear_before_reset"):
        attribute_bool(attributes, name)
    names = operand_names(attributes)
    require(len(types) == len(names), f"operands {' '.join(names)}", len(types))
    given = dict(zip(names, types, strict=True))
    x, weights, h = given["x"], given["weights"], given["h"]
    require_dtype(x, ("f32", "f64"))
    require(x.rank == weights.rank == h.rank == 3, "x, weights and h of rank 3", (x, weights, h))
    require(
        all(kind.dtype == x.dtype for name, kind in given.items() if name != "lengths"),
        "one element type",
        x,
    )
    directions, hidden = weights.shape[0], weights.shape[1]
    time, batch, columns = x.shape
    gates, activations = CELLS[cell]
    own = 2 if "candidate" in given else gates
    expected: dict[str, tuple[Dim, ...]] = {
        "weights": (directions, hidden, own * hidden), "h": (directions, batch, hidden), "c": (directions, batch, hidden),
        "candidate": (directions, hidden, hidden), "bias": (directions, hidden), "lengths": (batch,),
        "peepholes": (directions, 3 * hidden),
    }  # fmt: skip
    constraints = [equal("sizes of x and the gates", columns, gates * hidden * directions)]
    for name, kind in given.items():
        if name != "x":
            constraints += equal_shapes(f"sizes of {name}", kind.shape, expected[name])
    for name in ("activations", "alphas", "betas"):
        value = attributes[name]
        require(
            isinstance(value, tuple) and len(value) == activations, f"{activations} {name}", value
        )
    reverse = attribute_bools(attributes, "reverse")
    require(len(reverse) == directions, f"{directions} directions", reverse)
    state = TensorType(x.dtype, (directions, batch, hidden))
    y = TensorType(x.dtype, (time, directions, batch, hidden))
    return Inferred((y, state, state) if cell == "lstm" else (y, state), tuple(constraints))


def _activation(attributes: Attributes, position: int) -> Callable[[Array], Array]:
    alpha, beta = (attribute_floats(attributes, name)[position] for name in ("alphas", "betas"))
    function = _ACTIVATIONS[attribute_strs(attributes, "activations")[position]]
    return lambda x: function(x, alpha, beta)


def _step(
    given: Mapping[str, Array], attributes: Attributes, x: Array, h: Array, c: Array
) -> tuple[Array, Array]:
    """(new h, new c) of one row: ``x`` are its gates' inputs, ``given`` the operands of its
    direction."""
    act = [
        _activation(attributes, index)
        for index in range(CELLS[attribute_str(attributes, "cell")][1])
    ]
    size, limit = h.size, attribute_float(attributes, "clip") or np.inf

    def clip(value: Array) -> Array:
        return np.clip(value, -limit, limit)

    share = h @ given["weights"]
    if attribute_str(attributes, "cell") == "rnn":
        return act[0](clip(x + share)), c
    if attribute_str(attributes, "cell") == "lstm":
        i, o, f, g = np.split(x + share, 4)
        p: Array = given["peepholes"] if "peepholes" in given else np.zeros(3 * size)
        i, f = act[0](clip(i + p[:size] * c)), act[0](clip(f + p[2 * size :] * c))
        f = 1 - i if attribute_bool(attributes, "input_forget") else f
        cell = f * c + i * act[1](clip(g))
        return act[0](clip(o + p[size : 2 * size] * cell)) * act[2](cell), cell
    z, r = (
        act[0](clip(x[:size] + share[:size])),
        act[0](clip(x[size : 2 * size] + share[size : 2 * size])),
    )
    if attribute_bool(attributes, "linear_before_reset"):
        new = x[2 * size :] + r * (share[2 * size :] + given["bias"])
    else:
        new = x[2 * size :] + (r * h) @ given["candidate"]
    return (1 - z) * act[1](clip(new)) + z * h, c


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    given = {
        name: widen(array) for name, array in zip(operand_names(attributes), operands, strict=True)
    }
    x, h = given["x"], given["h"].copy()
    c = given["c"].copy() if "c" in given else np.zeros(h.shape)
    directions, batch, hidden = h.shape
    y = np.zeros((len(x), directions, batch, hidden))
    lengths: list[int] = given["lengths"].tolist() if "lengths" in given else [len(x)] * batch
    reverse = attribute_bools(attributes, "reverse")
    for d in range(directions):
        own: dict[str, Array] = {
            name: given[name][d]
            for name in ("weights", "candidate", "bias", "peepholes")
            if name in given
        }
        columns = slice(d * x.shape[2] // directions, (d + 1) * x.shape[2] // directions)
        for b in range(batch):
            steps = range(min(max(lengths[b], 0), len(x)))
            for t in reversed(steps) if reverse[d] else steps:
                h[d, b], c[d, b] = _step(own, attributes, x[t, b, columns], h[d, b], c[d, b])
                y[t, d, b] = h[d, b]
    results = (y, h, c) if attribute_str(attributes, "cell") == "lstm" else (y, h)
    return tuple(narrow(result, operands[0]) for result in results)


OP = CoreOp("recurrent", _infer, _reference)
