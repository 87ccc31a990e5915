"""The error of two annotations that contradict each other: both, and the way from one to the other.

In: a network and the pin that does not fit. Out: ``ModelError``. Not done here: finding the
contradiction (``solve``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.placement.virtual_device import join
from ingot_compiler.programs.expressions import DeviceCopy, Expression, OnDevice
from ingot_compiler.programs.planner.network import Link, LinkKind, Network, Pin
from ingot_compiler.programs.show import show

_STEP_COUNT_MAX = 8


def conflict(network: Network, pin: Pin) -> ModelError:
    """The error for a pin whose cell others have pinned elsewhere."""
    other, way = _contradicting(network, pin)
    steps = [f"{show(link.expression)} at {link.expression.span}" for link in way]
    steps = list(dict.fromkeys(steps))
    if len(steps) > _STEP_COUNT_MAX:
        left_out = len(steps) - _STEP_COUNT_MAX
        half = _STEP_COUNT_MAX // 2
        steps = [*steps[:half], f"{left_out} more", *steps[-half:]]
    through = f"; they are one device because of {', then '.join(steps)}" if steps else ""
    return ModelError(
        "annotations ask for two devices, and no copy is allowed between them",
        f"{show(pin.expression)} at {pin.expression.span}, and "
        f"{show(other.expression)} at {other.expression.span}",
        f"{_said(other)}, and {_said(pin)}{through}",
        _advice(pin, other),
    )


def _advice(one: Pin, other: Pin) -> str:
    """What helps; a copy may follow annotations that are not fixed, so theirs is about one call."""
    if all(_may_be_copied(pin.expression) for pin in (one, other)):
        return "keep one of them: a call runs on one device; result_on(...) says where it is read"
    return "write one of them as on_device(...), or put free(...) where a copy may stand"


def _may_be_copied(expression: Expression) -> bool:
    is_fixed = isinstance(expression, OnDevice) and expression.is_fixed
    return isinstance(expression, OnDevice | DeviceCopy) and not is_fixed


def _said(pin: Pin) -> str:
    return f"{pin.device} {pin.rule} {show(pin.expression)}"


def _contradicting(network: Network, pin: Pin) -> tuple[Pin, list[Link]]:
    """The nearest pin that does not join, and the links on the way to it."""
    for with_scopes in (True, False):
        for cell, way in _reached(network, pin.cell, with_scopes):
            for other in network.pins:
                if other is pin:
                    break
                if other.cell == cell and _contradict(other, pin, with_scopes):
                    return other, way
    raise AssertionError(pin)  # each field is pinned by one of them


def _contradict(one: Pin, other: Pin, with_scopes: bool) -> bool:
    if with_scopes:
        return join(one.device, other.device) is None
    return join(one.place, other.place) is None


def _reached(network: Network, start: int, with_scopes: bool) -> Iterator[tuple[int, list[Link]]]:
    """The cells of the same class, nearest first, and the way to each."""
    limit = LinkKind.HARD if with_scopes else LinkKind.PLACE
    around: dict[int, list[tuple[int, Link]]] = {}
    for link in network.links:
        if link.kind <= limit:
            around.setdefault(link.left, []).append((link.right, link))
            around.setdefault(link.right, []).append((link.left, link))
    came: dict[int, tuple[int, Link] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        cell = waiting.popleft()
        yield cell, _way(came, cell)
        for other, link in around.get(cell, ()):
            if other not in came:
                came[other] = cell, link
                waiting.append(other)


def _way(came: dict[int, tuple[int, Link] | None], cell: int) -> list[Link]:
    way: list[Link] = []
    while (step := came[cell]) is not None:
        cell, link = step
        way.append(link)
    return way
