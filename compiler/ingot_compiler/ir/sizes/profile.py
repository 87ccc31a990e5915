"""Sizes of a call for which a model has a version of its own: what ``--shape`` names.

In: nothing. Out: ``SizeRange``, ``Profile``, how profiles lie to each other. Not done here: what
the user wrote (``given_shape``), the test in ``main`` (``host_program``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.message import Text, joined, message
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SizeRange:
    """The size ``symbol`` is from ``least`` to ``most``, both included."""

    symbol: str
    least: int
    most: int

    @property
    def span(self) -> str:
        """``3``, or ``1 to 8``."""
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def __str__(self) -> str:
        return f"{self.symbol} = {self.span}"


Profile = tuple[SizeRange, ...]
"""One range for each symbol that is not left open; all of them hold at once."""


def profile_text(profile: Profile) -> str:
    """``s0 = 3, s1 = 1 to 8``."""
    return ", ".join(map(str, profile))


def named_profile(profile: Profile) -> Text:
    """The text of a profile, with the user's names in the place of symbols."""
    return joined(", ", [message(symbol(item.symbol), f" = {item.span}") for item in profile])


def fits(profile: Profile, sizes: Mapping[str, int]) -> bool:
    """Whether a call with these sizes is one that the profile is for."""
    return all(item.least <= sizes.get(item.symbol, -1) <= item.most for item in profile)


def fitting(profiles: Sequence[Profile], sizes: Mapping[str, int]) -> int | None:
    """The position of the profile that ``main`` takes for these sizes: the first that fits."""
    return next((at for at, profile in enumerate(profiles) if fits(profile, sizes)), None)


def contains(outer: Profile, inner: Profile) -> bool:
    """Whether every call that fits ``inner`` fits ``outer``."""
    ranges = {item.symbol: item for item in inner}
    return all(
        item.symbol in ranges
        and item.least <= ranges[item.symbol].least
        and ranges[item.symbol].most <= item.most
        for item in outer
    )


def fit_together(left: Profile, right: Profile) -> bool:
    """Whether some call fits both."""
    return all(
        low.least <= high.most and high.least <= low.most for low, high in _both(left, right)
    )


def crossing(left: Profile, right: Profile) -> list[tuple[SizeRange, SizeRange]]:
    """Ranges of one symbol that have sizes in common, and each some that the other has not."""
    return [
        (one, other)
        for one, other in _both(left, right)
        if fit_together((one,), (other,))
        and not contains((one,), (other,))
        and not contains((other,), (one,))
    ]


def _both(left: Profile, right: Profile) -> list[tuple[SizeRange, SizeRange]]:
    """The ranges of the symbols that both profiles name."""
    ranges = {item.symbol: item for item in right}
    return [(item, ranges[item.symbol]) for item in left if item.symbol in ranges]
