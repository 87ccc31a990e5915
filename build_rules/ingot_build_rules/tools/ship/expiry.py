"""Until when a signature counts.

In: a day as the user writes it. Out: seconds of Unix time. Not done here: comparing it with a clock
(``ingot_runtime.loader.signatures``).
"""

from __future__ import annotations

from datetime import UTC, datetime

from ingot_compiler.ir.errors import UserError

_DAY_SECONDS = 24 * 60 * 60


def end_of_day(day: str | None, where: str) -> int:
    """Return the end of a day, in seconds of Unix time; 0 for none. ``where`` it was given is for
    messages.

    Raises:
        UserError: it is no day, or one before 1970.
    """
    if day is None:
        return 0
    try:
        begins = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
        seconds = int(begins.timestamp()) + _DAY_SECONDS  # the year 10000 has no datetime
    except (ValueError, OverflowError) as error:
        why = f"expected a day such as 2030-12-31, got {day!r}"
        raise UserError("bad day", where, why, "give the last good day") from error
    if seconds <= 0:
        raise UserError("bad day", where, f"{day} is before 1970", "give a later one")
    return seconds
