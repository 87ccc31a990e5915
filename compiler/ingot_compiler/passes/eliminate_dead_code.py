"""Pass: drop what no output needs.

In: a graph. Out: the graph of its live nodes with dense ids. Not done here: merging equal nodes.
"""

from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.renumber import compact


def eliminate_dead_code(graph: Graph) -> Graph:
    """Keep the nodes that an output reaches, each ``read_dim`` whose symbol a kept value uses, and
    every ``require_dim``."""
    return compact(graph)
