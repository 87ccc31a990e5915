"""The error of a type rule, before anybody knows which node of the user's it is about.

In: what was expected, what was got. Out: ``OpTypeError``. Not done here: the node's name (the frontend adds it).
"""


class OpTypeError(Exception):
    """Operand types or attributes contradict an op's rule; the frontend adds the node's name."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected = expected
        self.got = got


def require(condition: bool, expected: str, got: object) -> None:
    """Raise OpTypeError unless ``condition`` holds."""
    if not condition:
        raise OpTypeError(expected, str(got))
