"""Values of options of both command lines: a number of bytes as users write it, and sizes of inputs
that a command can be given as they stand.

In: a text; inputs whose sizes a call has to say. Out: bytes; a text of options. Not done here:
options (``command``).
"""

import argparse
import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([kmgt]?)(i?)b?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def read_size(text: str) -> "int | None":
    """Read a size: ``5GB``, ``500M``, ``1.5GiB``, ``0``; None for what is none."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        return None
    return int(float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].lower()])


def size_bytes(text: str) -> int:
    """Read a size for argparse."""
    found = read_size(text)
    if found is None:
        what = f"expected a size such as 5GB, 500MB or 2GiB, got {text!r}"
        raise argparse.ArgumentTypeError(what)
    return found


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
