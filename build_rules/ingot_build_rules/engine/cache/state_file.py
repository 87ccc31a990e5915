"""Small files of state between builds: whole, or as good as not there.

In: a path, a kind (name and version of what is kept), plain values, a key. Out: the values again,
or None. Not done here: what is kept; whose key it is (empty: accidents are found, forgery is not);
locks (the last writer wins, and a reader sees one writer's whole file).

What is kept can be found anew, so no failure here is an error: a file that is damaged, of another
kind or not readable reads as None, one that cannot be written is not written.
"""

from __future__ import annotations

import contextlib
import hmac
import os

from ingot_build_rules.engine.actions.message_pack import UnpackException, pack, unpack

_MAGIC = b"ingot state file"
SIZE_BYTES_MAX = 64 << 20


def read_state(path: str, kind: str, key: bytes = b"") -> object:
    """Return what was written for ``kind`` by who has the ``key``, lists as tuples; None if the
    file is not exactly that."""
    try:
        with open(path, "rb") as file:
            content = file.read(SIZE_BYTES_MAX + 1)
    except OSError:
        return None
    start = len(_MAGIC) + 32
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != _check(
        kind, memoryview(content)[start:], key
    ):
        return None
    try:
        value: object = unpack(memoryview(content)[start:], use_list=False, strict_map_key=False)
    except (ValueError, RecursionError, UnpackException):
        return None
    return value


def is_state_file(path: str) -> bool:
    """Whether there is such a file, whoever has written it."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def write_state(path: str, kind: str, value: object, key: bytes = b"") -> bool:
    """Replace the file in one step; return False, with nothing left behind, if the system
    refuses."""
    encoded = pack(value)
    content = _MAGIC + _check(kind, encoded, key) + encoded
    temporary = f"{path}.{os.urandom(8).hex()}.part"
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(temporary, "xb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    return True


def _check(kind: str, encoded: bytes | memoryview, key: bytes) -> bytes:
    state = hmac.new(key, f"{kind}\n".encode(), "sha256")
    state.update(encoded)
    return state.digest()
