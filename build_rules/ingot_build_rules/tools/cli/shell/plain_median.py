"""A measured number in a report, and the refusal of one that is none.

In: a ``BlockMedian``. Out: plain values, an error. Not done here: measuring (``view.measure``).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.view.block_medians import SPREAD_MAX, BlockMedian
from ingot_compiler.ir.errors import BuildError


def plain_median(median: BlockMedian) -> dict[str, Any]:
    """Return a number with its interval and how noisy it is, for JSON."""
    return asdict(median) | {"spread": median.spread, "is_noisy": median.is_noisy}


def too_noisy(median: BlockMedian, block_count: int, where: str, *, unit: str = "s") -> BuildError:
    """The refusal of a number of seconds, or with unit "" of a ratio."""
    low, high = (
        console.format_seconds(each) if unit else f"{each:.3f}"
        for each in (median.low, median.high)
    )
    return BuildError(
        "this machine is too noisy for a number",
        where,
        f"the median of {block_count} blocks of calls lies between {low} and {high}: "
        f"expected at most {SPREAD_MAX:.0%} between them, got {median.spread:.0%}",
        "end what else runs here, measure longer (--seconds), or add --anyway",
    )
