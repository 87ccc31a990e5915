"""Why each value is where it is: from what the user wrote, step by step to the value.

In: a plan. Out: ``PlanReason`` by expression, and the two reasons of each copy that the planner put
in. Not done here: where reasons are shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import Expression, TextSpan
from ingot_compiler.programs.planner.network import Link, Pin, result_cell
from ingot_compiler.programs.planner.plan import Plan
from ingot_compiler.programs.show import show
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReasonStep:
    """One link of the chain: ``rule`` is a part of a sentence about ``expression``."""

    rule: str
    expression: str
    span: TextSpan

    def __str__(self) -> str:
        return f"{self.rule} {self.expression} at {self.span}"


@dataclass(frozen=True, slots=True)
class PlanReason:
    """The device of a value, and the chains that end at it: of its place, and of its memory scope
    (empty where any scope will do). The first step of a chain is what decides."""

    device: VirtualDevice
    place: tuple[ReasonStep, ...]
    scope: tuple[ReasonStep, ...]


@dataclass(frozen=True, slots=True)
class CopyReason:
    """A link that a copy breaks, and why its two ends are where they are."""

    use: ReasonStep
    value: PlanReason
    reader: PlanReason


class Reasons:
    """The reasons of one plan, found for all cells at once."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        pins = plan.solution.pins
        requested, defaults = pins[: len(plan.network.pins)], pins[len(plan.network.pins) :]
        links = plan.solution.kept_places
        places: _Origins = {}
        _spread(places, (pin for pin in requested if pin.device.device_type), links)
        _spread(places, defaults, links)
        scopes: _Origins = {}
        _spread(scopes, (pin for pin in pins if pin.device.memory_scope), plan.solution.kept_scopes)
        self._places, self._scopes = places, scopes
        self._deciders: dict[int, Pin | None] = {}

    def of(self, expression: Expression) -> PlanReason:
        """Why an expression of the prepared program is where it is; a function: its result."""
        return self._of_cell(result_cell(self._plan.network.domains[expression]))

    def nearest(self, expression: Expression, step_count: int) -> tuple[list[ReasonStep], bool]:
        """What decides the place of an expression, and of the steps from there so many that lead to
        it; whether there are more. It takes as long for long chains as for short ones."""
        cell = result_cell(self._plan.network.domains[expression])
        steps: list[ReasonStep] = []
        origin = self._places.get(cell)
        while origin is not None and not isinstance(origin, Pin) and len(steps) < step_count:
            cell, link = origin
            steps.append(_link_step(link))
            origin = self._places.get(cell)
        pin = self._decider(cell)
        first = [] if pin is None else [_pin_step(pin)]
        return [*first, *reversed(steps)], not isinstance(origin, Pin | None)

    def _decider(self, cell: int) -> Pin | None:
        """The pin at which a chain begins; each link is followed once."""
        path: list[int] = []
        origin: Pin | tuple[int, Link] | None = None
        while cell not in self._deciders:
            path.append(cell)
            origin = self._places.get(cell)
            if not isinstance(origin, tuple):
                self._deciders[cell] = origin
            else:
                cell = origin[0]
        pin = self._deciders[cell]
        self._deciders.update(dict.fromkeys(path, pin))
        return pin

    def copies(self) -> Iterator[CopyReason]:
        """The copies that no annotation asks for by itself, in the order of the text."""
        for link in self._plan.solution.cut:
            use = ReasonStep(link.rule, show(link.expression), link.expression.span)
            yield CopyReason(use, self._of_cell(link.left), self._of_cell(link.right))

    def _of_cell(self, cell: int) -> PlanReason:
        place, scope = _chain(self._places, cell), _chain(self._scopes, cell)
        return PlanReason(self._plan.solution.device(cell), place, scope)


_Origins = dict[int, Pin | tuple[int, Link]]
"""By cell: the pin that decides it, or the cell nearer to one and the link from there."""


def _spread(origins: _Origins, pins: Iterable[Pin], links: Iterable[Link]) -> None:
    """Find the nearest pin of each cell that has none yet."""
    around: dict[int, list[tuple[int, Link]]] = {}
    for link in links:
        around.setdefault(link.left, []).append((link.right, link))
        around.setdefault(link.right, []).append((link.left, link))
    waiting: deque[int] = deque()
    for pin in pins:
        if pin.cell not in origins:
            origins[pin.cell] = pin
            waiting.append(pin.cell)
    while waiting:
        cell = waiting.popleft()
        for other, link in around.get(cell, ()):
            if other not in origins:
                origins[other] = cell, link
                waiting.append(other)


def _chain(origins: _Origins, cell: int) -> tuple[ReasonStep, ...]:
    """From the pin to the cell."""
    steps: list[ReasonStep] = []
    origin = origins.get(cell)
    while origin is not None:
        if isinstance(origin, Pin):
            steps.append(_pin_step(origin))
            break
        cell, link = origin
        steps.append(_link_step(link))
        origin = origins.get(cell)
    return tuple(reversed(steps))


def _pin_step(pin: Pin) -> ReasonStep:
    return ReasonStep(f"{pin.device} {pin.rule}", show(pin.expression), pin.expression.span)


def _link_step(link: Link) -> ReasonStep:
    return ReasonStep(link.rule, show(link.expression), link.expression.span)
