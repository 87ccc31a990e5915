"""Measurements of a model's layers on a machine (``--tuning``), as rules see them.

In: nothing. Out: ``TuningOption``. Not done here: reading and writing files
(``options.tuning_file``), measuring (``view.tune_methods``).
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass

ALL_LAYERS = "*"
"""In the place of a node: each layer that can run by a method does, for a comparison of methods."""


@dataclass(frozen=True, slots=True)
class TuningOption:
    """``target``: the one that was measured, and that it counts for; ``methods``: (name of a node,
    kind of kernel), by name; ``processor``: the model of the one that measured, "" if it does not
    say it."""

    target: str
    methods: tuple[tuple[str, str], ...]
    processor: str = ""

    def plain(self) -> dict[str, object]:
        """Return it as a bundle's lock has it: whole, so that the bundle can be made again without
        the file."""
        return {
            "target": self.target,
            "processor": self.processor,
            "methods": dict(self.methods),
        }
