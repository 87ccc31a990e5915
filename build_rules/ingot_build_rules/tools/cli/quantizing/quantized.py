"""A model that the verb ``quantize`` has made.

In: nothing. Out: ``QuantizedModel``. Not done here: making it (``quantize_blocks``,
``quantize_static``).
"""

from __future__ import annotations

from typing import Any

from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """A new model: its bytes, what is told of it, the heading of its layers."""

    data: bytes
    report: dict[str, Any]
    heading: str
