"""An axis of a plane of results, cut into spans: which may share their code in a loop.

In: extents, strides and pads of a ``DepthwisePlane``. Out: ``Span``, loops over spans. Not done
here: what is computed in them (``depthwise_plane``).

Where the sizes of an axis are known, each span at an edge has code of its own. Where they are not,
those inside of the image are one loop, and those at both edges another, which looks at the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min
from ingot_compiler.lowering.loops.program import DepthwisePlane
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Results ``first`` .. along an axis, ``count`` of them; inside: no tap leaves the image.
    ``first`` is None where it is known at run time alone; it may change in a loop of those
    inside."""

    first: int | None
    count: int
    inside: bool


Body = Callable[[Span, LlvmValue], None]


def over_spans(
    context: EmitContext, statement: DepthwisePlane, axis: int, step: int, body: Body
) -> None:
    """Run ``body`` for spans of ``step`` results that cover an axis; of rows that turn out to be
    fewer, for each."""
    extent, size = statement.extents[axis], statement.image[axis]
    if isinstance(extent, int) and isinstance(size, int):
        _over_known(context, _known_spans(statement, axis, step, (extent, size)), body)
        return

    def whole() -> None:
        _over_unknown(context, statement, axis, step, body)

    def single() -> None:
        end = emit_index(context, extent)
        for_each(context.writer, ZERO, end, 1, partial(body, Span(None, 1, False)))

    if axis == 0 and step > 1:
        are_few = context.writer.compare("slt", emit_index(context, extent), i64(step))
        context.writer.if_else(are_few, single, whole)
    else:
        whole()


def _reach(statement: DepthwisePlane, axis: int) -> int:
    """How far the last tap is from the first."""
    return (statement.taps[axis][1] - 1) * statement.dilations[axis]


def _known_spans(
    statement: DepthwisePlane, axis: int, step: int, sizes: tuple[int, int]
) -> list[Span]:
    """Cut the results of an axis into spans of ``step``; ``sizes``: of the results, of the
    image."""
    (extent, size), stride = sizes, statement.strides[axis]
    spans: list[Span] = []
    for first in range(0, extent, step):
        count = min(step, extent - first)
        low = first * stride - statement.pads[axis]
        high = low + _pixels_read(statement, axis, count, step)
        spans.append(Span(first, count, low >= 0 and high <= size and (axis == 0 or count == step)))
    return spans


def _pixels_read(statement: DepthwisePlane, axis: int, count: int, step: int) -> int:
    """How many pixels of the image a span reads, those between included."""
    stride = statement.strides[axis]
    # A vector of every second pixel is chosen from two whole vectors.
    own = step * stride if axis == 1 and stride > 1 else (count - 1) * stride + 1
    return own + _reach(statement, axis)


def _over_known(context: EmitContext, spans: Sequence[Span], body: Body) -> None:
    """Neighbours that are alike and inside share their code in a loop."""
    for alike in _runs(spans):
        span, last = alike[0], alike[-1]
        assert span.first is not None
        assert last.first is not None
        first, end = i64(span.first), i64(last.first + last.count)
        for_each(context.writer, first, end, span.count, partial(body, span))


def _runs(spans: Sequence[Span]) -> list[list[Span]]:
    """Neighbours that are inside and of one length together, every other span alone."""
    runs: list[list[Span]] = []
    for span in spans:
        last = runs[-1][-1] if runs else None
        if last and last.inside and span.inside and last.count == span.count:
            runs[-1].append(span)
        else:
            runs.append([span])
    return runs


def _over_unknown(
    context: EmitContext, statement: DepthwisePlane, axis: int, step: int, body: Body
) -> None:
    """A loop over whole spans inside of the image, one over the spans before and behind them."""
    w, extent = context.writer, emit_index(context, statement.extents[axis])
    low, high = _inside(statement, axis, step)
    first, end = emit_index(context, low), emit_index(context, high)
    for_each(w, first, end, step, partial(body, Span(None, step, True)))
    behind = w.sub(extent, end)

    def at_edge(place: LlvmValue) -> None:
        is_before = w.compare("slt", place, first)
        place = w.select(is_before, place, w.add(place, w.sub(end, first)))
        # The last rows are computed with those before, if need be again; lanes have masks.
        place = w.intrinsic("smin", place, w.sub(extent, i64(step))) if axis == 0 else place
        body(Span(None, step, False), place)

    for_each(w, ZERO, w.add(first, behind), step, at_edge)


def _inside(statement: DepthwisePlane, axis: int, step: int) -> tuple[Dim, Dim]:
    """Where the spans inside of the image begin, after whole spans at its edge, and end."""
    extent, size, stride = statement.extents[axis], statement.image[axis], statement.strides[axis]
    before = -(-statement.pads[axis] // (stride * step)) * step
    low = before and dim_min(before, dim_floordiv(extent + (step - 1), step) * step)
    # The last result that a span may begin with.
    last_start = size + statement.pads[axis] - _pixels_read(statement, axis, step, step)
    last = dim_min(dim_floordiv(last_start, stride), extent - step)
    return low, low + dim_floordiv(dim_max(last - low + step, 0), step) * step
