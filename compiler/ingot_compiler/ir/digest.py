"""Identity of a graph: what it computes, whatever its nodes were called or wherever they came from.

In: a ``Graph``. Out: 64 hex digits. Not done here: keys of rules (``build_rules``).
"""

from __future__ import annotations

import hashlib

from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.text.print_graph import print_graph


def graph_digest(graph: Graph) -> str:
    """sha256 of the canonical text without source ordinals."""
    return hashlib.sha256(print_graph(graph, with_source=False).encode()).hexdigest()
