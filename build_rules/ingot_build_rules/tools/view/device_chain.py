"""Why a value is on its device: the chain of reasons that the bundle's debug section has, link by
link, in the model's own names.

In: a described bundle, a name or glob. Out: ``DeviceChain``. Not done here: deciding
(``placement``), making the section (``report.placement_report``). Anybody may have written the
section: what leads nowhere ends the chain.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from ingot_build_rules.tools.view.place_sentence import PlacedRow, sentence
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass

_SHOWN_MAX = 3
_PAIR = 2
_MADE_NOWHERE = ("copy", "constant", "literal")


@dataclass(frozen=True, slots=True)
class DeviceChain:
    """``title``: what is asked about, and for which version of the model; ``links``: the value,
    then what each reason leads to; ``copies``: of the value, each with its own reason."""

    title: str
    sizes: Sequence[Sequence[str]]
    links: tuple[PlacedRow, ...]
    copies: tuple[PlacedRow, ...]
    globs: Sequence[tuple[str, str]]

    def lines(self) -> list[str]:
        """Return it for people."""
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes)
        found = [f"{self.title} is on {self.links[0].device}{f', for {sizes}' * bool(sizes)}"]
        for link, after in zip(self.links, [*self.links[1:], None], strict=True):
            found.append(f"  {link.title()}: {sentence(link, after, self.globs)}")
        copies = (sentence(copy, None, self.globs) for copy in self.copies)
        return [*found, *(f"  {line}" for line in copies)]

    def plain(self) -> dict[str, Any]:
        """Return it for programs."""
        after = [*self.links[1:], None]
        return {
            "title": self.title,
            "device": self.links[0].device,
            "sizes": [list(each) for each in self.sizes],
            "links": [
                self._plain(link, following)
                for link, following in zip(self.links, after, strict=True)
            ],
            "copies": [self._plain(copy, None) for copy in self.copies],
        }

    def _plain(self, row: PlacedRow, after: PlacedRow | None) -> dict[str, Any]:
        return {
            "title": row.title(),
            "device": row.device,
            "reason": row.reason,
            "text": sentence(row, after, self.globs),
            "asked": row.asked,
            "globs": [list(self.globs[number - 1]) for number in self._known(row.globs)],
            "predicted_seconds": {name: each / 1e12 for name, each in row.picoseconds},
        }

    def _known(self, numbers: Sequence[int]) -> list[int]:
        return [number for number in numbers if 0 < number <= len(self.globs)]


def device_chains(described: Mapping[str, Any], wanted: str, where: str) -> list[DeviceChain]:
    """Return a chain for each value that ``wanted`` names, of each version of the model; none if
    the bundle has the host alone.

    Raises:
        UserError: nothing is called so.
    """
    versions: list[dict[str, Any]] = described["debug"].get("placement", [])
    outputs = [tensor["name"] for tensor in described["outputs"]]
    globs = _globs(described["lock"])
    found = [chain for each in versions for chain in _Version(each, outputs, globs).chains(wanted)]
    if versions and not found:
        known = sorted({name for each in versions for name in _Version(each, outputs, globs).names})
        raise _unknown(wanted, known, where)
    return found


class _Version:
    """The values of one version of the model."""

    def __init__(
        self, version: Mapping[str, Any], outputs: Sequence[str], globs: Sequence[tuple[str, str]]
    ) -> None:
        self.sizes = version["sizes"]
        self.globs = globs
        self.rows = [PlacedRow.read(row) for row in version["values"]]
        self.names: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            if row.op not in _MADE_NOWHERE:
                for name, _ in row.nodes:
                    self.names.setdefault(name, []).append(number)
            if row.name and row.reason != "made_for":
                self.names.setdefault(row.name, []).append(number)
        for name, number in zip(outputs, version["outputs"], strict=False):
            if number < len(self.rows):
                self.names.setdefault(name, []).append(number)

    def chains(self, wanted: str) -> Iterator[DeviceChain]:
        """The chains of the values that ``wanted`` names: of a node, those of its last value on
        each device."""
        named = [wanted] if wanted in self.names else _matching(wanted, self.names)
        for name in named:
            last = {self.rows[number].device: number for number in self.names[name]}
            for number in sorted(last.values()):
                yield DeviceChain(
                    name, self.sizes, self._links(number), self._copies(number), self.globs
                )

    def _links(self, number: int) -> tuple[PlacedRow, ...]:
        found: list[PlacedRow] = []
        seen: set[int] = set()
        while number < len(self.rows) and number not in seen:
            seen.add(number)
            row = self.rows[number].read_in(self.rows)
            found.append(row)
            follows = row.of if row.op == "copy" else row.leads_to
            if follows is None:
                break
            number = follows
        return tuple(found)

    def _copies(self, number: int) -> tuple[PlacedRow, ...]:
        return tuple(row.read_in(self.rows) for row in self.rows if row.of == number)


def _matching(wanted: str, names: Mapping[str, object]) -> list[str]:
    return [name for name in names if fnmatchcase(name, wanted)]


def _unknown(wanted: str, known: Sequence[str], where: str) -> UserError:
    close = difflib.get_close_matches(wanted, known, _SHOWN_MAX)
    why = (
        "expected a node, an input, an output or a constant of the model, as it is after the passes"
    )
    do = (
        f"did you mean {' or '.join(map(repr, close))}?"
        if close
        else f"`ingot inspect {shlex.quote(where)}` lists the nodes"
    )
    return UserError(f"nothing is called {wanted!r}", where, why, do)


def _globs(lock: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The patterns of device placement that the bundle was made with, as far as the lock records
    them."""
    options: object = lock.get("options")
    table: Mapping[str, object] = {}
    if isinstance(options, dict):
        table = cast("Mapping[str, object]", options)
    pairs: object = table.get("place")
    found: list[tuple[str, str]] = []
    for pair in cast("list[object]", pairs) if isinstance(pairs, list) else ():
        items = cast("list[object]", pair) if isinstance(pair, list) else []
        if len(items) == _PAIR:
            found.append((str(items[0]), str(items[1])))
    return found
