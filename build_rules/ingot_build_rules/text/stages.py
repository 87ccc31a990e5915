"""The visible list of stages that ``--to`` prints.

In: nothing. Out: ``STAGES``. Not done here: making them (``compile_model``), their text (``stage_text``).
"""

STAGES = ("imported", "graph", "optimized", "placed", "fused", "loops", "memory", "program", "library", "bundle")
