"""The visible lists of stages that ``--to`` prints, and whose text ``--from`` reads.

In: nothing. Out: ``STAGES``, ``FROM_STAGES``, and what follows from loops. Not done here: making
them (``compile_model``), their text (``stage_text``).
"""

STAGES = (
    "imported",
    "graph",
    "optimized",
    "placed",
    "fused",
    "loops",
    "memory",
    "program",
    "library",
    "assembly",
    "bundle",
)
FROM_STAGES = ("graph", "placed", "loops")
FROM_LOOPS_TO = ("loops", "library", "assembly")
"""A kernel alone has no more."""
