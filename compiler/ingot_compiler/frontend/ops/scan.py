"""ONNX Scan: a graph over the slices of tensors along an axis, with states carried, results
collected.

In: states, then scan inputs, a graph. Out: core ``loop`` that takes slices by its iteration. Not
done here: opset 8's sequence lengths; its batches are a loop around.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape, slice_axis, transpose
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.control import build_loop
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import require_dim
from ingot_compiler.frontend.model.onnx_node import counted_axis
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
    sources = operands[carried:]
    old_name = "directions" if context.opset <= _BATCHED_OPSET else "scan_input_directions"
    backwards = context.ints_or(old_name, [0] * scanned)
    axes, length = _scanned_axes(context, sources)

    def step(inputs: Sequence[int]) -> Sequence[int]:
        slices = [
            _slice(context, source, axis, inputs[0], length if backward else None)
            for source, axis, backward in zip(sources, axes, backwards, strict=True)
        ]
        return (inputs[1], *body.translate((*inputs[2:], *slices)))

    limit = (context.integers([length]), length)
    results = build_loop(context, limit, (None, True), operands[:carried], step)
    return (*results[:carried], *_laid_out(context, results[carried:], length))


def _scanned_axes(context: OpContext, sources: Sequence[int]) -> tuple[list[int], Dim]:
    """Along which axis each is scanned, and how many iterations that makes."""
    given = context.ints_or("scan_input_axes", [0] * len(sources))
    axes = [
        counted_axis(axis, context.rank_of(source))
        for axis, source in zip(given, sources, strict=True)
    ]
    length = context.shape_of(sources[0])[axes[0]]
    for source, axis in zip(sources[1:], axes[1:], strict=True):
        own = context.shape_of(source)[axis]
        require_dim(context, own - length, message("scan inputs of ", length, " elements"), own)
    return axes, length


def _slice(context: OpContext, x: int, axis: int, iteration: int, length: Dim | None = None) -> int:
    """Slice number ``iteration`` of x without its axis; counted from the end when ``length`` is
    given."""
    (start,) = context.read_dims(iteration)
    if length is not None:
        start = dim_add(dim_add(length, -1), dim_mul(start, -1))
    part = slice_axis(context, x, axis, start, 1)
    shape = context.shape_of(x)
    return reshape(context, part, (*shape[:axis], *shape[axis + 1 :]))


def _laid_out(context: OpContext, results: Sequence[int], length: Dim) -> list[int]:
    """Scan outputs with the iterations along the axis, and in the direction, that the node asks
    for."""
    backwards, axes = (
        (0,) * len(results)
        if context.opset <= _BATCHED_OPSET
        else context.ints_or(f"scan_output_{name}", [0] * len(results))
        for name in ("directions", "axes")
    )
    placed: list[int] = []
    for result, backward, axis in zip(results, backwards, axes, strict=True):
        last = dim_add(length, -1)
        value = slice_axis(context, result, 0, last, length, -1) if backward else result
        rank = context.rank_of(value)
        to = counted_axis(axis, rank)
        placed.append(transpose(context, value, (*range(1, to + 1), 0, *range(to + 1, rank))))
    return placed


OPS = (OnnxOp("Scan", _translate, since=8),)
