"""What a bundle tells of itself: one line, or a table for a notebook.

In: a finished compilation. Out: ``BundleFacts``. Not done here: HTML (``html_table``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_runtime.html_table import html_table
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.printable import printable

if TYPE_CHECKING:
    from ingot_build_rules.making.rules.bundle import BundleParts
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_build_rules.making.values.interface import NamedTensor


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """``inputs`` and ``outputs`` as ``x: f32[batch, 3]``."""

    model: str
    inputs: str
    outputs: str
    targets: str
    digest: str
    size_bytes: int

    def text(self) -> str:
        """Return one line."""
        size = f"{self.size_bytes / 1e6:.1f} MB"
        call = f"({self.inputs}) -> ({self.outputs})"
        return printable(
            f"<ingot.Bundle {self.model}{call}; {self.targets}; {size}, digest {self.digest[:16]}>"
        )

    def html(self) -> str:
        """Return a table."""
        rows = [
            ("inputs", self.inputs),
            ("outputs", self.outputs),
            ("targets", self.targets),
            ("size", f"{self.size_bytes / 1e6:.1f} MB"),
            ("digest", self.digest),
        ]
        return html_table(f"bundle of {self.model}", rows)


def facts_of(compiled: CompiledModel, parts: BundleParts) -> BundleFacts:
    """Return the facts of a compilation that has made these parts."""
    interface = compiled.interface
    return BundleFacts(
        compiled.names.model,
        _listed(interface.inputs),
        _listed(interface.outputs),
        ", ".join(compiled.options.targets),
        parts.root,
        parts.size_bytes,
    )


def _listed(tensors: tuple[NamedTensor, ...]) -> str:
    return ", ".join(
        f"{tensor.name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]" for tensor in tensors
    )
