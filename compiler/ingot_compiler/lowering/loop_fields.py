"""Reads the named fields of which the text of a block consists.

In: a reader that stands before a field. Out: what the field says. Not done here: which fields a
block has (``parse_loop_blocks``).
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.read_terms import read_dim
from ingot_compiler.ir.text_reader import Reader
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loop_parts import RegisterTile
from ingot_compiler.lowering.loops import Statement
from ingot_compiler.lowering.parse_loop_values import read_access, read_range, read_type_behind
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LoopFields:
    """``read_statements`` reads ``{ STATEMENT ... }``."""

    reader: Reader
    read_statements: Callable[[], tuple[Statement, ...]]

    def name(self, name: str) -> str:
        """``row=i``."""
        self.reader.expect(name, "=")
        return self.reader.name()

    def dim(self, name: str) -> Dim:
        """``rows=2*s0``."""
        self.reader.expect(name, "=")
        return read_dim(self.reader)

    def integer(self, name: str) -> int:
        """``row_block=4``."""
        self.reader.expect(name, "=")
        return self.reader.integer()

    def python_flag(self, name: str) -> bool:
        """``causal=True``."""
        self.reader.expect(name, "=")
        return self.reader.choice(("True", "False")) == "True"

    def dims(self, name: str) -> tuple[Dim, Dim]:
        """``image=(s0, 4)``."""
        self.reader.expect(name, "=", "(")
        first = read_dim(self.reader)
        self.reader.expect(",")
        second = read_dim(self.reader)
        self.reader.expect(")")
        return first, second

    def pair(self, name: str) -> tuple[int, int]:
        """``image=(3, 4)``."""
        self.reader.expect(name, "=", "(")
        first = self.reader.integer()
        self.reader.expect(",")
        second = self.reader.integer()
        self.reader.expect(")")
        return first, second

    def register_tile(self, name: str) -> RegisterTile:
        """``tile=6x4``."""
        rows = self.integer(name)
        return RegisterTile(rows, self.reader.number("x", "a number of vectors (x2)"))

    def access(self, name: str) -> tuple[int, Dim]:
        """``a=b0[INDEX]``."""
        self.reader.expect(name, "=")
        return read_access(self.reader)

    def sized(self, name: str, extent: str) -> tuple[str, Dim]:
        """``x=x x_extent=2*s0``."""
        return self.name(name), self.dim(extent)

    def taps(self) -> tuple[tuple[str, Dim], ...]:
        """``taps=(y in 3, x in 3)``."""
        self.reader.expect("taps", "=", "(")
        return self.reader.items(lambda: read_range(self.reader), ")")

    def fixed_taps(self) -> tuple[tuple[str, int], ...]:
        """The same, with numbers alone."""
        return tuple((name, self._fixed(extent)) for name, extent in self.taps())

    def _fixed(self, extent: Dim) -> int:
        if not isinstance(extent, int):
            raise self.reader.fail(f"expected taps of fixed extents, got {extent}")
        return extent

    def rectangle(self) -> tuple[str, Dim, Dim, int, str, Dim, Dim]:
        """Rows and columns of a contraction or transpose."""
        rows = *self.sized("row", "rows"), self.dim("row_start"), self.integer("row_block")
        return *rows, *self.sized("column", "columns"), self.dim("column_start")

    def accumulator(self) -> tuple[DType, str]:
        """``sum: f32``."""
        name = self.reader.name()
        return read_type_behind(self.reader), name

    def epilogue(self) -> tuple[Statement, ...]:
        """``-> { ... }``."""
        self.reader.expect("->")
        return self.read_statements()
