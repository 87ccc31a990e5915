"""Sets of cells that share one value, and what is known of each value: union-find with labels.

In: cells by number; labels with a partial ``join``. Out: classes. Not done here: which cells must
be one (``collect``), which copies to allow (``choose_copies``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Label = TypeVar("Label")


class Classes(Generic[Label]):
    """Classes of cells; two of them become one if their labels join."""

    def __init__(self, open_label: Label, join: Callable[[Label, Label], Label | None]) -> None:
        self._open = open_label
        self._join = join
        self._parent: list[int] = []
        self._label: list[Label] = []

    def add(self) -> None:
        """Add a cell in a class of its own, of which nothing is known."""
        self._parent.append(len(self._parent))
        self._label.append(self._open)

    def find(self, cell: int) -> int:
        """The cell that stands for its class; the smallest number in it."""
        parent = self._parent
        root = cell
        while parent[root] != root:
            root = parent[root]
        while parent[cell] != root:
            parent[cell], cell = root, parent[cell]
        return root

    def label(self, cell: int) -> Label:
        """What is known of the cell's class."""
        return self._label[self.find(cell)]

    def constrain(self, cell: int, label: Label) -> bool:
        """Whether the class of ``cell`` can have ``label``, which it then has."""
        root = self.find(cell)
        joined = self._join(self._label[root], label)
        if joined is not None:
            self._label[root] = joined
        return joined is not None

    def merge(self, one: int, other: int) -> bool:
        """Whether two classes can be one, which they then are."""
        left, right = sorted((self.find(one), self.find(other)))
        if left == right:
            return True
        joined = self._join(self._label[left], self._label[right])
        if joined is None:
            return False
        self._parent[right] = left
        self._label[left] = joined
        return True
