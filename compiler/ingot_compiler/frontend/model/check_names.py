"""Names that go into a bundle: the format keeps them as they are, so it refuses those that could
harm who reads them.

In: ``Names``. Out: ``ModelError`` for the first name with a character that FORMAT.md forbids. Not
done here: names of dimensions (``dimension_names`` writes theirs as escapes), any other name of the
model (tensors between nodes that have names stay out of the bundle).
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Names
from ingot_runtime.format.schema import forbidden_character


def check_names(names: Names) -> None:
    """Raise ModelError unless a bundle may hold every name."""
    for what, name in _named(names):
        character = forbidden_character(name)
        if character:
            shown = f"U+{ord(character):04X}"
            raise ModelError(
                "a name in the model holds a control character",
                f"{what} {name[:200]!a}",
                f"expected a name that every terminal shows as it is, got {shown} in it",
                "rename it and export again",
            )


def _named(names: Names) -> Iterator[tuple[str, str]]:
    yield "model", names.model
    yield from (("input", name) for name in names.inputs)
    yield from (("output", name) for name in names.outputs)
    yield from (("node", name) for name, _ in names.nodes)
    yield from (("op", op) for _, op in names.nodes)
