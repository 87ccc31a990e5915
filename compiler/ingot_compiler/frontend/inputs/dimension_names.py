"""What the open dimensions of a model's inputs are called: by the file's names, else by their
place.

In: names as in the file, any text at all; places ("x.0"). Out: names that a bundle may hold, and no
name for two dimensions that the file keeps apart. Not done here: symbols (``input_types``), names
of computed sizes (the bundle's interface).
"""

from __future__ import annotations

from dataclasses import field

from ingot_runtime.format.schema import forbidden_character
from ingot_runtime.lazy_dataclass import dataclass

_LENGTH_MAX = 512  # characters of at most 4 bytes; the format has a limit of its own


@dataclass(slots=True)
class DimensionNames:
    """``declared``: the file's name -> ours; ``taken``: all names given."""

    declared: dict[str, str] = field(default_factory=dict[str, str])
    taken: set[str] = field(default_factory=set[str])

    def of_declared(self, name: str) -> str:
        """Return the one name of the dimensions that the file calls ``name``."""
        if name not in self.declared:
            self.declared[name] = self._new(name)
        return self.declared[name]

    def of_place(self, place: str) -> str:
        """Return the name of the one dimension that is there."""
        return self._new(place)

    def _new(self, wanted: str) -> str:
        """A name that is like ``wanted``, and new."""
        name = _shown(wanted)
        while name in self.taken:
            name = f"({name})"
        self.taken.add(name)
        return name


def _shown(text: str) -> str:
    """``text`` for a bundle and a terminal: control characters as escapes, not too long."""
    escaped = "".join(ascii(it)[1:-1] if forbidden_character(it) else it for it in text)
    return escaped if len(escaped) <= _LENGTH_MAX else f"{escaped[:_LENGTH_MAX]}..."
