"""Where damaged and foreign files of a cache go: out of the way, still there for whoever wants to
know.

In: a file or folder inside the cache. Out: the same under ``quarantine/``. Not done here: finding
damage, emptying it (``collect``).
"""

import os
import secrets
from contextlib import suppress


def set_aside(folder: str, path: str, name: str) -> bool:
    """Move ``path`` to ``folder/quarantine/NAME.RANDOM``; whether it is out of the way (also when
    somebody was faster)."""
    quarantine = os.path.join(folder, "quarantine")
    target = os.path.join(quarantine, f"{name[:100]}.{secrets.token_hex(4)}")
    with suppress(OSError):
        os.makedirs(quarantine, 0o700, exist_ok=True)
    try:
        os.rename(path, target)
    except (FileNotFoundError, NotADirectoryError):
        return not os.path.lexists(path)
    except OSError:
        return False
    return True
