"""The tables of the sweep.

In: rows. Out: a line for each family, the rows that are above, the faults. Not done here: measuring
(``measure``), what is known of a row (``known``).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from tests.benchmarks.sweep.known import known
from tests.benchmarks.sweep.measure import RATIO_MAX, Row

MEAN_MAX = 0.42
HEADER = ("family", "cases", "geometric mean", "worst", f"above {RATIO_MAX}")


def timed(rows: Iterable[Row]) -> list[Row]:
    """Those without a fault."""
    return [row for row in rows if not row.fault]


def mean(rows: Iterable[Row]) -> float:
    """The geometric mean of the ratios."""
    return statistics.geometric_mean(row.ratio for row in rows)


def family_rows(rows: Sequence[Row]) -> list[list[str]]:
    """One line for each family, and one for all."""
    families = list(dict.fromkeys(row.family for row in rows))
    groups = {family: [row for row in rows if row.family == family] for family in families}
    count = str(len(above(rows)))
    return [
        [*_line("all", rows)[:-1], count],
        *(_line(family, group) for family, group in groups.items()),
    ]


def _line(name: str, rows: Sequence[Row]) -> list[str]:
    good = timed(rows)
    if not good:
        return [name, "0", "", "", "0"]
    worst = max(good, key=lambda row: row.ratio)
    return [
        name.replace("_", " "),
        str(len(good)),
        f"{mean(good):.2f}",
        f"{worst.ratio:.2f} ({worst.name})",
        _slower(good),
    ]


def _slower(rows: Iterable[Row]) -> str:
    """How many are above the limit, and which."""
    slower = above(rows)
    if not slower:
        return "0"
    return f"{len(slower)}: {', '.join(f'{row.name} {row.ratio:.2f}' for row in slower)}"


def above(rows: Iterable[Row]) -> list[Row]:
    """Those that take longer than the limit, the slowest first."""
    slower = (row for row in timed(rows) if row.ratio > RATIO_MAX)
    return sorted(slower, key=lambda row: -row.ratio)


def unexpected(rows: Iterable[Row]) -> list[Row]:
    """Faults of ours, and rows above the limit that are not known or slower than known."""
    bad = [row for row in rows if row.wrong]
    for row in above(rows):
        listed = known(row.name)
        if listed is None or row.ratio > listed.ratio_max:
            bad.append(row)
    return bad
