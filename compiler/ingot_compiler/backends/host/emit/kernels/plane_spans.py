"""An axis of a plane of results, cut into spans: which may share their code in a loop.

In: extents, strides and pads of a ``DepthwisePlane``. Out: ``Span``, loops over spans. Not done
here: what is computed in them (``depthwise_plane``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.control import for_each
from ingot_compiler.backends.host.emit.operands import i64
from ingot_compiler.backends.host.llvm_value import LlvmValue
from ingot_compiler.lowering.loops import DepthwisePlane
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Results ``first`` .. along an axis, ``count`` of them; inside: ``first`` may change and no
    tap leaves the image."""

    first: int
    count: int
    inside: bool


def spans_of(statement: DepthwisePlane, axis: int, step: int) -> list[Span]:
    """Cut the results of an axis into spans of ``step``."""
    extent, size, stride = statement.extents[axis], statement.image[axis], statement.strides[axis]
    reach = (statement.taps[axis][1] - 1) * statement.dilations[axis]
    spans: list[Span] = []
    for first in range(0, extent, step):
        count = min(step, extent - first)
        low = first * stride - statement.pads[axis]
        high = low + (count - 1) * stride + reach
        # A vector of every second pixel is chosen from two whole vectors.
        if axis == 1 and stride > 1:
            high = low + step * stride - 1 + reach
        spans.append(Span(first, count, low >= 0 and high < size and (axis == 0 or count == step)))
    return spans


def over_spans(
    context: EmitContext, spans: Sequence[Span], body: Callable[[Span, LlvmValue], None]
) -> None:
    """Run ``body`` for every span; neighbours that are alike and inside share its code in a
    loop."""
    for alike in _runs(spans):
        span, end = alike[0], alike[-1].first + alike[-1].count
        if len(alike) == 1:
            body(span, i64(span.first))
        else:
            for_each(context.writer, i64(span.first), i64(end), span.count, partial(body, span))


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
