"""LSTM, GRU and RNN: the inputs' share of all gates as one product, then core ``recurrent``.

In: a context of one of the three, its cell. Out: its results. Not done here: the steps
(``ir/ops/recurrent``).
ONNX LSTM-22, GRU-22, RNN-22.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingot_compiler.frontend.compose import (
    as_vector,
    cast,
    concat,
    full,
    reshape,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.index_checks import checked_lengths
from ingot_compiler.frontend.onnx_node import rounded_to
from ingot_compiler.frontend.operand_sizes import sizes_of
from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops.recurrent import ACTIVATIONS, CELLS
from ingot_compiler.ir.types import DType

_DEFAULTS = {"gru": ("Sigmoid", "Tanh"), "lstm": ("Sigmoid", "Tanh", "Tanh"), "rnn": ("Tanh",)}
_ALPHAS = {
    "Affine": 1.0,
    "Elu": 1.0,
    "HardSigmoid": 0.2,
    "LeakyRelu": 0.01,
    "ScaledTanh": 1.0,
    "ThresholdedRelu": 1.0,
}
_BETAS = {"HardSigmoid": 0.5, "ScaledTanh": 1.0}


@dataclass(frozen=True, slots=True)
class _Layer:
    """Operands in the computing element type, time first."""

    cell: str
    x: int
    w: int
    r: int
    bias: int | None
    lengths: int | None
    h: int
    c: int | None
    peepholes: int | None


def recurrent_layer(context: OpContext, cell: str) -> Sequence[int]:
    """Y, Y_h and (lstm) Y_c."""
    layer = _layer(context, cell)
    directions = context.shape_of(layer.w)[0]
    reverse = _reverse(context)
    if directions != len(reverse):
        raise OpTypeError(f"weights of {len(reverse)} directions", context.type_of(layer.w))
    functions = _activations(context, cell, len(reverse))
    if all(own == functions[0] for own in functions):
        results = _run(context, layer, reverse, functions[0], range(len(reverse)))
    else:
        parts = [
            _run(context, layer, (back,), functions[d], (d,)) for d, back in enumerate(reverse)
        ]
        results = [
            concat(context, members, 1 if position == 0 else 0)
            for position, members in enumerate(zip(*parts, strict=True))
        ]
    dtype = context.dtype_of(context.operand(0))
    results = [cast(context, result, dtype) for result in results]
    if context.int_attribute("layout", 0):
        return tuple(
            transpose(context, result, (2, 0, 1, 3) if position == 0 else (1, 0, 2))
            for position, result in enumerate(results)
        )
    return tuple(results)


def _reverse(context: OpContext) -> tuple[bool, ...]:
    direction = context.string_attribute(
        "direction", "forward", ("forward", "reverse", "bidirectional")
    )
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]


def _layer(context: OpContext, cell: str) -> _Layer:
    dtype: DType = "f64" if context.dtype_of(context.operand(0)) == "f64" else "f32"
    batch_first = context.bool_attribute("layout")

    def wide(position: int) -> int | None:
        value = context.optional(position)
        return None if value is None else cast(context, value, dtype)

    x = cast(context, context.operand(0), dtype)
    w, r = cast(context, context.operand(1), dtype), cast(context, context.operand(2), dtype)
    if not context.rank_of(x) == context.rank_of(w) == context.rank_of(r) == 3:
        raise OpTypeError("X, W and R of rank 3", [context.type_of(value) for value in (x, w, r)])
    for position, rank in ((3, 2), (4, 1), (5, 3), (6, 3), (7, 2)):
        given = context.optional(position)
        if given is not None:
            sizes_of(context, given, rank)
    x = transpose(context, x, (1, 0, 2)) if batch_first else x
    state = (context.shape_of(w)[0], context.shape_of(x)[1], context.shape_of(r)[2])

    def initial(position: int) -> int:
        value = wide(position)
        if value is None:
            return full(context, dtype, 0.0, state)
        return transpose(context, value, (1, 0, 2)) if batch_first else value

    lengths = context.optional(4)
    lengths = None if lengths is None else checked_lengths(context, lengths, context.shape_of(x)[0])
    is_lstm = cell == "lstm"
    c, peepholes = (initial(6), wide(7)) if is_lstm else (None, None)
    return _Layer(cell, x, w, r, wide(3), lengths, initial(5), c, peepholes)


def _activations(
    context: OpContext, cell: str, directions: int
) -> list[tuple[tuple[Attribute, ...], ...]]:
    """Per direction: names, alphas, betas."""
    count = CELLS[cell][1]
    given = context.attributes.get("activations")
    names = (
        tuple(str(name) for name in given)
        if isinstance(given, tuple) and given
        else _DEFAULTS[cell] * directions
    )
    if len(names) != count * directions:
        raise OpTypeError(f"{count * directions} activations", names)
    table = {name.lower(): name for name in ACTIVATIONS}
    if not all(name.lower() in table for name in names):
        raise OpTypeError(f"activations out of {' '.join(ACTIVATIONS)}", names)
    names = tuple(table[name.lower()] for name in names)
    alphas = _parameters(context, "activation_alpha", names, _ALPHAS)
    betas = _parameters(context, "activation_beta", names, _BETAS)
    return [
        tuple(values[d * count : (d + 1) * count] for values in (names, alphas, betas))
        for d in range(directions)
    ]


def _parameters(
    context: OpContext, attribute: str, names: Sequence[str], defaults: dict[str, float]
) -> tuple[float, ...]:
    """The attribute's numbers go, in order, to the activations that take one."""
    value = context.attributes.get(attribute)
    given = [item for item in value if isinstance(item, float)] if isinstance(value, tuple) else []
    takers = set(_ALPHAS) if attribute == "activation_alpha" else {"Affine", *_BETAS}
    return tuple(
        given.pop(0) if name in takers and given else rounded_to(defaults.get(name, 0.0), "f32")
        for name in names
    )


def _run(
    context: OpContext,
    layer: _Layer,
    reverse: Sequence[bool],
    functions: tuple[tuple[Attribute, ...], ...],
    directions: Sequence[int],
) -> list[int]:
    """The results of some directions."""
    first, count = directions[0], len(directions)

    def part(value: int) -> int:
        return slice_axis(context, value, 0, first, count)

    w, r = part(layer.w), part(layer.r)
    hidden, gates = context.shape_of(r)[2], CELLS[layer.cell][0]
    columns = dim_mul(gates * count, hidden)
    matrix = reshape(context, transpose(context, w, (2, 0, 1)), (context.shape_of(w)[2], columns))
    x = context.add("matmul", layer.x, matrix)
    linear = layer.cell == "gru" and context.bool_attribute("linear_before_reset")
    kept: int | None = None
    if layer.bias is not None:
        shared, kept = _biases(context, part(layer.bias), gates, hidden, linear)
        x = context.add("add", x, reshape(context, shared, (columns,)))
    operands = [
        x,
        *_weights(context, r, hidden, split=layer.cell == "gru" and not linear)[:1],
        part(layer.h),
    ]
    if layer.c is not None:
        operands.append(part(layer.c))
    if linear:
        operands.append(
            full(context, context.dtype_of(x), 0.0, (count, hidden)) if kept is None else kept
        )
    elif layer.cell == "gru":
        operands.append(_weights(context, r, hidden, split=True)[1])
    operands += [] if layer.lengths is None else [as_vector(context, layer.lengths)]
    operands += [] if layer.peepholes is None else [part(layer.peepholes)]
    names, alphas, betas = functions
    attributes: dict[str, Attribute] = {
        "cell": layer.cell, "reverse": tuple(reverse), "activations": names, "alphas": alphas, "betas": betas,
        "clip": context.float_attribute("clip", 0.0), "has_lengths": layer.lengths is not None,
        "has_peepholes": layer.peepholes is not None, "linear_before_reset": linear,
        "input_forget": layer.cell == "lstm" and context.bool_attribute("input_forget"),
    }  # fmt: skip
    return list(
        context.translation.builder.add_many(
            "recurrent", operands, attributes, context.source, context.mark
        )
    )


def _weights(context: OpContext, r: int, hidden: Dim, *, split: bool) -> list[int]:
    """[D, H, G*H]; split: that of the first two gates and that of the third."""
    turned = transpose(context, r, (0, 2, 1))
    if not split:
        return [turned]
    return [
        slice_axis(context, turned, 2, 0, 2 * hidden),
        slice_axis(context, turned, 2, 2 * hidden, hidden),
    ]


def _biases(
    context: OpContext, bias: int, gates: int, hidden: Dim, linear: bool
) -> tuple[int, int | None]:
    """(bias of the inputs' share [D, G*H], the recurrent bias of a linear candidate [D, H])."""
    size = dim_mul(gates, hidden)
    own, state = slice_axis(context, bias, 1, 0, size), slice_axis(context, bias, 1, size, size)
    if not linear:
        return context.add("add", own, state), None
    kept = slice_axis(context, state, 1, 2 * hidden, hidden)
    early = slice_axis(context, state, 1, 0, 2 * hidden)
    zeros = full(context, context.dtype_of(bias), 0.0, context.shape_of(kept))
    return context.add("add", own, concat(context, [early, zeros], 1)), kept
