"""A number of bytes, as users write it on both command lines.

In: a text. Out: bytes. Not done here: options (``command``).
"""

import argparse
import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?) *([kmgt]?)(i?)b?", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size_bytes(text: str) -> int:
    """Read a size: ``5GB``, ``500M``, ``1.5GiB``, ``0``."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise argparse.ArgumentTypeError(
            f"expected a size such as 5GB, 500MB or 2GiB, got {text!r}"
        )
    return int(float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].lower()])
