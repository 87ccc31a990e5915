"""The settings of a plug-in: the values of its attributes.

In: nothing. Out: ``PluginSettings``. Not done here: reading what the user writes.
"""

from __future__ import annotations

from ingot_runtime.lazy_dataclass import dataclass

AttributeValue = str | int | bool


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """``plugin``: its name; ``attributes``: every one that it has, sorted by name."""

    plugin: str
    attributes: tuple[tuple[str, AttributeValue], ...] = ()

    def __getitem__(self, name: str) -> AttributeValue:
        """The value of an attribute; KeyError where the plug-in has none of this name."""
        return dict(self.attributes)[name]
