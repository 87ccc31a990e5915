"""What an op is that the user defines by a graph of core ops.

In: nothing. Out: ``CustomOp``. Not done here: its text (``ingot_compiler.programs``), putting it
into the place of nodes (``inline_op``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CustomOp:
    """A definition: what its parameters are called, and the graph over them."""

    parameters: tuple[str, ...]
    graph: Graph

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of the parameters."""
        return tuple(self.graph.types[value] for value in self.graph.inputs)
