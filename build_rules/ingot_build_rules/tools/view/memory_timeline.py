"""Who wrote the bytes that each step of a call reads, and how long they are in use.

In: a call, which operands its launches write. Out: ``Lifetime``s. Not done here: planning (the plan
is what the program says), drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from ingot_build_rules.tools.view.evaluate_call import (
    BufferSpan,
    CopyStep,
    EvaluatedCall,
    LaunchStep,
)
from ingot_runtime.lazy_dataclass import dataclass

Writes = Callable[[LaunchStep], Sequence[bool]]
"""For each operand of a launch, whether it is written."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Bytes that step ``first`` writes, and the steps that read them, in their order."""

    span: BufferSpan
    first: int
    readers: list[int] = field(default_factory=list[int])

    @property
    def last(self) -> int:
        """The step behind which they are free."""
        return self.readers[-1] if self.readers else self.first


def memory_timeline(call: EvaluatedCall, writes: Writes) -> list[Lifetime]:
    """Return the lifetimes of all that steps write, in the order of the steps."""
    found: list[Lifetime] = []
    live: list[Lifetime] = []
    for position, step in enumerate(call.steps):
        reads, written = _operands(step, writes)
        for span in reads:
            for lifetime in _latest(live, span):
                lifetime.readers.append(position)
        made = [Lifetime(span, position) for span in written]
        live = [old for old in live if not any(_covers(new.span, old.span) for new in made)] + made
        found += made
    return found


def _operands(
    step: LaunchStep | CopyStep, writes: Writes
) -> tuple[list[BufferSpan], list[BufferSpan]]:
    """What a step reads, and what it writes."""
    if isinstance(step, CopyStep):
        return [step.source], [step.target]
    flags = list(zip(step.buffers, writes(step), strict=True))
    return [span for span, flag in flags if not flag], [span for span, flag in flags if flag]


def _latest(live: Sequence[Lifetime], span: BufferSpan) -> list[Lifetime]:
    """The lifetimes whose bytes a span holds: where several wrote one place, the last of them."""
    latest: list[Lifetime] = []
    for lifetime in reversed(live):
        hidden = any(_overlap(lifetime.span, other.span) for other in latest)
        if _overlap(lifetime.span, span) and not hidden:
            latest.append(lifetime)
    return latest


def _bytes_of(span: BufferSpan) -> tuple[int, int]:
    """First byte and end; a tensor of its own (its offset is its number) counts as one byte."""
    is_tensor = span.origin in ("input", "output", "grown")
    return span.offset, span.offset + (1 if is_tensor else span.size_bytes)


def _covers(one: BufferSpan, other: BufferSpan) -> bool:
    (start, end), (other_start, other_end) = _bytes_of(one), _bytes_of(other)
    return _same_memory(one, other) and start <= other_start and other_end <= end


def _overlap(one: BufferSpan, other: BufferSpan) -> bool:
    (start, end), (other_start, other_end) = _bytes_of(one), _bytes_of(other)
    return _same_memory(one, other) and start < other_end and other_start < end


def _same_memory(one: BufferSpan, other: BufferSpan) -> bool:
    return (one.origin, one.device) == (other.origin, other.device)
