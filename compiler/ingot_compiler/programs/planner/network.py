"""What the planner has to solve: cells that need a device, links that ask two cells to have one
device, and pins that give a cell a device.

In: nothing. Out: ``Network``. Not done here: which program asks for what (``collect``), solving
(``solve``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from enum import IntEnum

from ingot_compiler.placement.virtual_device import ANY_SCOPE, VirtualDevice
from ingot_compiler.programs.expressions import Expression
from ingot_runtime.lazy_dataclass import dataclass


class LinkKind(IntEnum):
    """How two cells belong together; the weights of what may be broken by a copy grow downwards."""

    HARD = 0
    """One device."""
    PLACE = 1
    """One device but for the memory scope."""
    ANNOTATED = 2
    """One device, or a copy to where an annotation asks for a value that is made elsewhere."""
    USE = 3
    """One device, or a copy to where the value is read."""
    FREE = 4
    """One device, or a copy that the user allows."""


@dataclass(frozen=True, slots=True)
class FunctionDomain:
    """The cells of a function: of each parameter, and of the result."""

    parameters: tuple[Domain, ...]
    result: Domain


Domain = int | FunctionDomain
"""A cell, or the cells of a function."""


@dataclass(frozen=True, slots=True)
class Link:
    """Two cells, and why they belong together: ``rule`` is a part of a sentence about
    ``expression``. ``position``: how many operands stand before it in the text, whether annotated
    or not."""

    left: int
    right: int
    kind: LinkKind
    rule: str
    expression: Expression
    position: int


@dataclass(frozen=True, slots=True)
class Pin:
    """A cell and its device, or a part of it, and why."""

    cell: int
    device: VirtualDevice
    rule: str
    expression: Expression

    @property
    def place(self) -> VirtualDevice:
        """The device but for its scope."""
        return replace(self.device, memory_scope=ANY_SCOPE)


@dataclass(slots=True)
class Network:
    """Cells, links and pins in the order of the text, with the cells of each expression.

    ``expected[parent, index]`` are the cells that an operand must have where it is read; the
    expression itself may be elsewhere if the link between them may be broken. ``read[parent,
    index]`` is what is read instead of an operand: that of which a shape is read.
    """

    cell_count: int = 0
    links: list[Link] = field(default_factory=list[Link])
    pins: list[Pin] = field(default_factory=list[Pin])
    domains: dict[Expression, Domain] = field(default_factory=dict[Expression, Domain])
    expected: dict[tuple[Expression, int], Domain] = field(
        default_factory=dict[tuple[Expression, int], Domain]
    )
    read: dict[tuple[Expression, int], Expression] = field(
        default_factory=dict[tuple[Expression, int], Expression]
    )
    kernels: dict[str, FunctionDomain] = field(default_factory=dict[str, FunctionDomain])

    def new_cell(self) -> int:
        """One cell more."""
        self.cell_count += 1
        return self.cell_count - 1


def leaves(domain: Domain) -> Iterator[int]:
    """All cells of a domain, the result first."""
    if isinstance(domain, int):
        yield domain
        return
    yield from leaves(domain.result)
    for parameter in domain.parameters:
        yield from leaves(parameter)


def result_cell(domain: Domain) -> int:
    """The cell of what a function gives in the end, or the cell itself."""
    while isinstance(domain, FunctionDomain):
        domain = domain.result
    return domain
