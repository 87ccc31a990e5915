"""The error of a type rule, before anybody knows which node of the user's it is about.

In: what was expected, what was got. Out: ``OpTypeError``. Not done here: the node (the frontend
adds it).
"""

from __future__ import annotations

from ingot_compiler.ir.message import Text, message


class OpTypeError(Exception):
    """Operand types or attributes contradict an op's rule; ``expected`` and ``got`` may refer to
    sizes."""

    def __init__(self, expected: object, got: object) -> None:
        self.expected = message(expected)
        self.got = message(got)
        super().__init__(self.text)

    @property
    def text(self) -> Text:
        """Both in one sentence."""
        return message("expected ", self.expected, ", got ", self.got)


class AttributeNamesError(OpTypeError):
    """An op has other attributes than its rule demands."""


def require(condition: bool, expected: object, got: object) -> None:
    """Raise OpTypeError unless ``condition`` holds.

    Where ``expected`` or ``got`` is built from types, test first and raise: rules run for every
    node, several times.
    """
    if not condition:
        raise OpTypeError(expected, got)
