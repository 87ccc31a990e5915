"""ONNX Scan: a graph over the slices of tensors along an axis, with states carried, results
collected.

In: states, then scan inputs, a graph. Out: core ``loop`` that takes slices by its iteration. Not
done here: opset 8's sequence lengths; its batches are a loop around.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import require_dim, reshape, slice_axis, transpose
from ingot_compiler.frontend.context import OpContext, RegionBody, Unsupported
from ingot_compiler.frontend.control import build_loop
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError

_BATCHED_OPSET = 8


def _translate(context: OpContext) -> Sequence[int]:
    if context.opset > _BATCHED_OPSET:
        return _scan(context, [context.operand(at) for at in range(len(context.operands))])
    if context.optional(0) is not None:
        raise Unsupported("sequence lengths")
    operands = [context.operand(at) for at in range(1, len(context.operands))]
    batch = context.shape_of(operands[0])[0]

    def one(inputs: Sequence[int]) -> Sequence[int]:
        return (
            inputs[1],
            *_scan(context, [_slice(context, operand, 0, inputs[0]) for operand in operands]),
        )

    return build_loop(context, (context.integers([batch]), batch), (None, True), (), one)


def _scan(context: OpContext, operands: Sequence[int]) -> Sequence[int]:
    body, scanned = context.body("body"), context.int_attribute("num_scan_inputs", 1)
    carried = len(operands) - scanned
    if (
        not 0 < scanned <= len(operands)
        or body.input_count != len(operands)
        or body.output_count < carried
    ):
        raise OpTypeError(f"a body of {len(operands)} inputs", f"{body.input_count}")
    initial, sources = operands[:carried], operands[carried:]
    old_name = "directions" if context.opset <= _BATCHED_OPSET else "scan_input_directions"
    backwards = context.ints_attribute(old_name, [0] * scanned) or ()
    given = context.ints_attribute("scan_input_axes", [0] * scanned) or ()
    axes = [
        context.axis(axis, context.rank_of(source))
        for axis, source in zip(given, sources, strict=True)
    ]
    length = context.shape_of(sources[0])[axes[0]]
    for source, axis in zip(sources[1:], axes[1:], strict=True):
        own = context.shape_of(source)[axis]
        require_dim(context, own - length, message("scan inputs of ", length, " elements"), own)

    def step(inputs: Sequence[int]) -> Sequence[int]:
        slices = [
            _slice(context, source, axis, inputs[0], length if backward else None)
            for source, axis, backward in zip(sources, axes, backwards, strict=True)
        ]
        return (inputs[1], *body.translate((*inputs[2:], *slices)))

    results = build_loop(context, (context.integers([length]), length), (None, True), initial, step)
    return (*results[:carried], *_laid_out(context, results[carried:], length, body))


def _slice(context: OpContext, x: int, axis: int, iteration: int, length: Dim | None = None) -> int:
    """Slice number ``iteration`` of x without its axis; counted from the end when ``length`` is
    given."""
    (start,) = context.read_dims(iteration)
    if length is not None:
        start = dim_add(dim_add(length, -1), dim_mul(start, -1))
    part = slice_axis(context, x, axis, start, 1)
    shape = context.shape_of(x)
    return reshape(context, part, (*shape[:axis], *shape[axis + 1 :]))


def _laid_out(
    context: OpContext, results: Sequence[int], length: Dim, body: RegionBody
) -> list[int]:
    """Scan outputs with the iterations along the axis, and in the direction, that the node asks
    for."""
    count = len(results)
    assert body.output_count >= count
    old = context.opset <= _BATCHED_OPSET
    backwards = (
        (0,) * count if old else context.ints_attribute("scan_output_directions", [0] * count) or ()
    )
    axes = (0,) * count if old else context.ints_attribute("scan_output_axes", [0] * count) or ()
    placed: list[int] = []
    for result, backward, axis in zip(results, backwards, axes, strict=True):
        value = (
            slice_axis(context, result, 0, dim_add(length, -1), length, -1) if backward else result
        )
        rank = context.rank_of(value)
        to = context.axis(axis, rank)
        placed.append(transpose(context, value, (*range(1, to + 1), 0, *range(to + 1, rank))))
    return placed


OP = OnnxOp("Scan", _translate, since=8)
