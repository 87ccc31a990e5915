"""All imports of the tree as a graph, and the order of its rooms as `pyproject.toml` has it.

In: modules, the contracts of import-linter. Out: arrows, a circle if there is one, arrows that run
up. Not done here: assertions (``test_arrows``). An import counts wherever it stands: at the top,
inside a function, under ``if TYPE_CHECKING``. What is imported by a name that is put together while
running is not seen.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.tidy.source import ROOT, Module

Graph = Mapping[str, Mapping[str, str]]
"""Importer -> imported module -> where (``path:line`` of the first such import)."""


@dataclass(frozen=True, slots=True)
class Order:
    """Rooms inside ``container`` ("" for the packages themselves), the uppermost layer first; rooms
    of one layer are apart."""

    container: str
    layers: tuple[tuple[str, ...], ...]
    exhaustive: bool = False

    def room_of(self, module: str) -> tuple[int, str] | None:
        """Return the layer, 0 for the uppermost, and the room that a module is in; None for one in
        no room."""
        prefix = f"{self.container}." if self.container else ""
        if not module.startswith(prefix):
            return None
        room = module.removeprefix(prefix).partition(".")[0]
        return next(
            ((index, room) for index, rooms in enumerate(self.layers) if room in rooms), None
        )

    def allows(self, importer: str, imported: str) -> bool:
        """Whether the arrow stays in its room, leads below, or is none of this order's business."""
        above, below = self.room_of(importer), self.room_of(imported)
        return above is None or below is None or above[1] == below[1] or above[0] < below[0]


def import_graph(modules: Iterable[Module]) -> Graph:
    """Return every import of one of the modules by another; a name in a module counts as the
    module."""
    known = {module.name: module for module in modules}
    return {name: _arrows(module, known) for name, module in sorted(known.items())}


def _arrows(module: Module, known: Mapping[str, Module]) -> Mapping[str, str]:
    arrows: dict[str, str] = {}
    for line, imported in sorted(module.imports()):
        target = _module_of(imported, known)
        if target and target != module.name:
            arrows.setdefault(target, f"{module.path}:{line}")
    return arrows


def _module_of(imported: str, known: Mapping[str, Module]) -> str:
    while imported and imported not in known:
        imported = imported.rpartition(".")[0]
    return imported


def find_circle(graph: Graph) -> tuple[str, ...]:
    """Return the modules of a circle in the order of their imports, the first one again at the end;
    () if there is none."""
    done: set[str] = set()
    for start in graph:
        path: dict[str, Iterator[str]] = {} if start in done else {start: iter(graph[start])}
        while path:
            last = next(reversed(path))
            found = next((module for module in path[last] if module not in done), None)
            if found is None:
                done.add(last)
                del path[last]
            elif found in path:
                names = list(path)
                return (*names[names.index(found) :], found)
            else:
                path[found] = iter(graph[found])
    return ()


def orders() -> tuple[Order, ...]:
    """Read the layers of all contracts of `pyproject.toml`."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    return tuple(
        Order(
            container,
            tuple(tuple(room.strip() for room in layer.split("|")) for layer in contract["layers"]),
            contract.get("exhaustive", False),
        )
        for contract in contracts
        if contract["type"] == "layers"
        for container in contract.get("containers", [""])
    )


def upward(graph: Graph, order: Order) -> list[str]:
    """Return every arrow that the order does not allow, and where it is."""
    return [
        f"{where}: {importer} -> {imported}"
        for importer, arrows in graph.items()
        for imported, where in arrows.items()
        if not order.allows(importer, imported)
    ]
