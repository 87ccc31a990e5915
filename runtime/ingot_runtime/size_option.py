"""A number of bytes, as users write it on both command lines.

In: a text. Out: bytes. Not done here: options (``command``).
"""

import argparse
import re

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
