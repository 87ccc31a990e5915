"""The choice among several plans for the same buffers.

In: attempts that each make a plan. Out: the smallest. Not done here: the attempts (``best_fit``,
``plan_with``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ingot_compiler.ir.errors import UserError
from ingot_compiler.memory.planners.buffers import Plan, PlannedBuffer, total_bytes


def smallest_plan(
    buffers: Sequence[PlannedBuffer], attempts: Iterable[Callable[[], Plan]], bound_bytes: int
) -> Plan:
    """The smallest plan, the earliest on a tie; no attempt is made behind one of ``bound_bytes``,
    which none can go below.

    Raises:
        UserError: no attempt found room for all buffers; the first one's error.
    """
    best: tuple[int, Plan] | None = None
    failure: UserError | None = None
    for attempt in attempts:
        try:
            found = attempt()
        except UserError as error:
            failure = failure or error
            continue
        size_bytes = total_bytes(buffers, found)
        if best is None or size_bytes < best[0]:
            best = size_bytes, found
        if size_bytes <= bound_bytes:
            break
    if best is None:
        assert failure is not None
        raise failure
    return best[1]
