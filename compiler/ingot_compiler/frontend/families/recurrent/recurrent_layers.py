"""LSTM, GRU and RNN: the inputs' share of all gates as one product, then core ``recurrent``.

In: a context of one of the three, its cell. Out: its results. Not done here: the steps
(``ir/ops/recurrent``). ONNX LSTM-22, GRU-22, RNN-22.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.frontend.build.compose import (
    as_vector,
    cast,
    concat,
    full,
    reduce,
    reshape,
    slice_axis,
    transpose,
    wide_float,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_lengths
from ingot_compiler.frontend.build.operand_sizes import sizes_of, with_size
from ingot_compiler.frontend.model.onnx_node import rounded_to
from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops.recurrent import ACTIVATIONS, CELLS
from ingot_runtime.lazy_dataclass import dataclass

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
_OPTIONAL_RANKS = {3: 2, 4: 1, 5: 3, 6: 3, 7: 2}  # position of an optional operand -> its rank

_Functions = tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...]]
"""The activations of a direction: names, alphas, betas."""


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
    scale: int | None


def recurrent_layer(context: OpContext, cell: str, scale: int | None = None) -> Sequence[int]:
    """Y, Y_h and (lstm) Y_c. ``scale`` [D, G*H]: of R, which is of 8-bit integers then."""
    layer = _layer(context, cell, scale)
    reverse = _reverse(context)
    layer = _of_directions(context, layer, len(reverse))
    functions = _activations(context, cell, len(reverse))
    dtype = context.dtype_of(context.operand(0))
    results = [
        cast(context, value, dtype) for value in _results(context, layer, reverse, functions)
    ]
    if not context.bool_attribute("layout"):
        return results
    sequence, *states = results
    turned = [transpose(context, sequence, (2, 0, 1, 3))]
    return turned + [transpose(context, state, (1, 0, 2)) for state in states]


def _of_directions(context: OpContext, layer: _Layer, count: int) -> _Layer:
    """The layer, all of whose operands have ``count`` directions."""
    directions = "1 direction" if count == 1 else f"{count} directions"

    def one(value: int) -> int:
        return with_size(context, value, 0, count, f"weights and states of {directions}")

    def perhaps(value: int | None) -> int | None:
        return None if value is None else one(value)

    return replace(
        layer, w=one(layer.w), r=one(layer.r), bias=perhaps(layer.bias), h=one(layer.h),
        c=perhaps(layer.c), peepholes=perhaps(layer.peepholes), scale=perhaps(layer.scale),
    )  # fmt: skip


def _results(
    context: OpContext,
    layer: _Layer,
    reverse: Sequence[bool],
    functions: Sequence[_Functions],
) -> list[int]:
    """The results of all directions, which run as one where they have the same activations."""
    if all(own == functions[0] for own in functions):
        return _run(context, layer, reverse, functions[0], 0)
    parts = [
        _run(context, layer, (back,), functions[first], first) for first, back in enumerate(reverse)
    ]
    return [
        concat(context, members, 1 if position == 0 else 0)
        for position, members in enumerate(zip(*parts, strict=True))
    ]


def _reverse(context: OpContext) -> tuple[bool, ...]:
    direction = context.string_attribute(
        "direction", "forward", ("forward", "reverse", "bidirectional")
    )
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]


def _layer(context: OpContext, cell: str, scale: int | None) -> _Layer:
    dtype = wide_float(context.dtype_of(context.operand(0)))
    batch_first = context.bool_attribute("layout")
    x, w = (cast(context, context.operand(position), dtype) for position in range(2))
    r = context.operand(2) if scale is not None else cast(context, context.operand(2), dtype)
    _check_ranks(context, (x, w, r))
    x = transpose(context, x, (1, 0, 2)) if batch_first else x
    state = (context.shape_of(w)[0], context.shape_of(x)[1], context.shape_of(r)[2])

    def wide(position: int) -> int | None:
        value = context.optional(position)
        return None if value is None else cast(context, value, dtype)

    def initial(position: int) -> int:
        value = wide(position)
        if value is None:
            return full(context, dtype, 0.0, state)
        return transpose(context, value, (1, 0, 2)) if batch_first else value

    lengths = context.optional(4)
    lengths = None if lengths is None else checked_lengths(context, lengths, context.shape_of(x)[0])
    c, peepholes = (initial(6), wide(7)) if cell == "lstm" else (None, None)
    return _Layer(cell, x, w, r, wide(3), lengths, initial(5), c, peepholes, scale)


def _check_ranks(context: OpContext, matrices: Sequence[int]) -> None:
    """X, W and R, then the optional operands."""
    if any(context.rank_of(value) != 3 for value in matrices):
        raise OpTypeError("X, W and R of rank 3", [context.type_of(value) for value in matrices])
    for position, rank in _OPTIONAL_RANKS.items():
        given = context.optional(position)
        if given is not None:
            sizes_of(context, given, rank)


def _activations(context: OpContext, cell: str, directions: int) -> list[_Functions]:
    """Per direction."""
    count = CELLS[cell][1]
    names = _activation_names(context, _DEFAULTS[cell] * directions)
    alphas = _parameters(context, "activation_alpha", names, _ALPHAS)
    betas = _parameters(context, "activation_beta", names, _BETAS)
    return [
        (names[at : at + count], alphas[at : at + count], betas[at : at + count])
        for at in range(0, count * directions, count)
    ]


def _activation_names(context: OpContext, default: tuple[str, ...]) -> tuple[str, ...]:
    """The activations of all directions, in the spelling of the core op."""
    given = context.attributes.get("activations")
    names = tuple(map(str, given)) if isinstance(given, tuple) and given else default
    if len(names) != len(default):
        raise OpTypeError(f"{len(default)} activations", names)
    table = {name.lower(): name for name in ACTIVATIONS}
    if not all(name.lower() in table for name in names):
        raise OpTypeError(f"activations out of {' '.join(ACTIVATIONS)}", names)
    return tuple(table[name.lower()] for name in names)


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
    functions: _Functions,
    first: int,
) -> list[int]:
    """The results of ``len(reverse)`` directions from number ``first`` on."""

    def part(value: int) -> int:
        return slice_axis(context, value, 0, first, len(reverse))

    w, r = part(layer.w), part(layer.r)
    hidden, gates = context.shape_of(r)[2], CELLS[layer.cell][0]
    columns = dim_mul(gates * len(reverse), hidden)
    linear = layer.cell == "gru" and context.bool_attribute("linear_before_reset")
    x, candidate_bias = _inputs_share(context, layer.x, w, columns), None
    if layer.bias is not None:
        shared, candidate_bias = _biases(context, part(layer.bias), gates, hidden, linear)
        x = context.add("add", x, reshape(context, shared, (columns,)))
    weights = _weights(context, r, split=layer.cell == "gru" and not linear)
    operands = [x, weights[0], part(layer.h), *([] if layer.c is None else [part(layer.c)])]
    if linear and candidate_bias is None:
        candidate_bias = full(context, context.dtype_of(x), 0.0, (len(reverse), hidden))
    operands += [] if candidate_bias is None else [candidate_bias]
    operands += weights[1:]
    operands += [] if layer.lengths is None else [as_vector(context, layer.lengths)]
    operands += [] if layer.peepholes is None else [part(layer.peepholes)]
    if layer.scale is not None:
        sums = reduce(context, cast(context, weights[0], "i32"), "sum", (1,))
        operands += [part(layer.scale), sums]
    attributes = _attributes(context, layer, reverse, functions) | {"linear_before_reset": linear}
    add = context.translation.builder.add_many
    return list(add("recurrent", operands, attributes, context.source, context.mark))


def _attributes(
    context: OpContext, layer: _Layer, reverse: Sequence[bool], functions: _Functions
) -> dict[str, Attribute]:
    """The attributes of core ``recurrent``, but for ``linear_before_reset``."""
    names, alphas, betas = functions
    return {
        "cell": layer.cell,
        "reverse": tuple(reverse),
        "activations": names,
        "alphas": alphas,
        "betas": betas,
        "clip": context.float_attribute("clip", 0.0),
        "has_lengths": layer.lengths is not None,
        "has_peepholes": layer.peepholes is not None,
        "input_forget": layer.cell == "lstm" and context.bool_attribute("input_forget"),
        "is_quantized": layer.scale is not None,
    }


def _inputs_share(context: OpContext, x: int, w: int, columns: Dim) -> int:
    """[S, B, D*G*H]: the inputs times the weights w [D, G*H, I] of all gates."""
    turned = transpose(context, w, (2, 0, 1))
    matrix = reshape(context, turned, (context.shape_of(w)[2], columns))
    return context.add("matmul", x, matrix)


def _weights(context: OpContext, r: int, *, split: bool) -> list[int]:
    """[D, H, G*H]; split: that of the first two gates and that of the third."""
    turned, hidden = transpose(context, r, (0, 2, 1)), context.shape_of(r)[2]
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
    if isinstance(size, int):
        bias = with_size(context, bias, 1, 2 * size, f"a bias of 2 x {size} numbers")
    own, state = slice_axis(context, bias, 1, 0, size), slice_axis(context, bias, 1, size, size)
    if not linear:
        return context.add("add", own, state), None
    kept = slice_axis(context, state, 1, 2 * hidden, hidden)
    early = slice_axis(context, state, 1, 0, 2 * hidden)
    zeros = full(context, context.dtype_of(bias), 0.0, context.shape_of(kept))
    return context.add("add", own, concat(context, [early, zeros], 1)), kept
