"""One thing that Ingot promises about devices, and the tests that show it.

In: nothing. Out: ``Row``. Not done here: the rows (one file per subject), their page (``page``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """``number``: "13", or "w7" for a weakness of earlier systems. ``tests``: ids as pytest takes
    them, ``tests/unit/placement/test_placement.py::test_join``. ``decision``: the record of the better rule
    that replaces this one, 0 for none.
    """

    number: str
    says: str
    tests: tuple[str, ...] = ()
    decision: int = 0

    @property
    def state(self) -> str:
        """``tested``, ``decision N`` or ``open``."""
        if self.decision:
            return f"decision {self.decision}"
        return "tested" if self.tests else "open"
