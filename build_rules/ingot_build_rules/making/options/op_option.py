"""A file with which the user defines an op (``--op``), as rules see it.

In: nothing. Out: ``OpOption``. Not done here: reading files (``options.op_options``), what is
in them (``ingot_compiler.frontend.op_files``, ``values.custom_ops``).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class OpOption:
    """``op``: "domain::Name"; ``file``: the file's name, without folders."""

    op: str
    file: str
    content: bytes

    @property
    def is_program(self) -> bool:
        """Whether it is in Ingot's text form."""
        return self.file.endswith(".ingot-text")

    @property
    def digest(self) -> str:
        """The sha256 of the content."""
        return hashlib.sha256(self.content).hexdigest()

    def plain(self) -> dict[str, object]:
        """Return it as a bundle's lock has it: the definition itself, so that the bundle can be
        made again without the file."""
        known: dict[str, object] = {"op": self.op, "file": self.file}
        lines = self._lines()
        if lines is not None:
            return {**known, "lines": lines}
        return {**known, "base64": base64.b64encode(self.content).decode()}

    def _lines(self) -> list[str] | None:
        """The content as lines of text; None where it is none."""
        try:
            lines = self.content.decode().split("\n")
        except UnicodeDecodeError:
            return None
        return lines if all(line.isprintable() for line in lines) else None

    @classmethod
    def of_plain(cls, op: str, file: str, lines: Sequence[str] | None, encoded: str) -> OpOption:
        """Return what ``plain`` has written.

        Raises:
            ValueError: not such a record.
        """
        if lines is not None:
            return cls(op, file, "\n".join(lines).encode())
        return cls(op, file, base64.b64decode(encoded, validate=True))
