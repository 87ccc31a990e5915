"""Why an optimisation was not made, as data beside the stages.

In: nothing. Out: ``Refusal``. Not done here: deciding (the passes, ``lowering.fusion``), names
(reports join them).
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass

INTEGER_PRODUCT = "integer product"
"""The pattern of a product of floats in a quantized model."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nodes that look like ``pattern`` and were left as they are; sources are ordinals of imported
    nodes.

    ``others``: the nodes that the reason is about, such as the other users of an inner value.
    """

    pattern: str
    source: tuple[int, ...]
    reason: str
    others: tuple[int, ...] = ()
