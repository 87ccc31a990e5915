"""Sizes of inputs that a command can be given as they stand.

In: the inputs whose sizes a call has to say, by name, and the sizes that are known. Out: a text of
options for both command lines. Not done here: reading such options (``command``).
"""

import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_ANY_SIZE = 4


def shape_options(
    inputs: "Iterable[tuple[str, Sequence[int | str]]]", known: "Mapping[str, int] | None" = None
) -> str:
    """Return ``--shape x=4x3 --shape y=4`` for inputs with these shapes: sizes that are fixed or
    known as they are, one number for all others."""
    sizes = known or {}
    return " ".join(
        f"--shape {shlex.quote(f'{name}={_text(dims, sizes)}')}" for name, dims in inputs
    )


def _text(dims: "Sequence[int | str]", known: "Mapping[str, int]") -> str:
    sizes = (dim if isinstance(dim, int) else known.get(dim, _ANY_SIZE) for dim in dims)
    return "x".join(map(str, sizes)) or "scalar"
