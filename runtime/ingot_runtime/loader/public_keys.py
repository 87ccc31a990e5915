"""Public keys as users give them, and policies in files.

In: keys in any form; a policy. Out: ``Policy``. Not done here: what is signed
(``format.statement``).
"""

import os

from ..errors import InputError
from ..format.file import QuietFile, open_without_waiting
from .ed25519 import is_usable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Key = str | bytes | os.PathLike[str]

_SIZE_BYTES_MAX = 1 << 20
# What is before the 32 bytes in the DER of a public key of Ed25519 (RFC 8410).
_DER_HEAD = bytes.fromhex("302a300506032b6570032100")
_PEM = b"-----BEGIN PUBLIC KEY-----", b"-----END PUBLIC KEY-----"
_EXPECTED = "expected an Ed25519 public key: a PEM file, its content, 32 bytes or 64 hex digits"


class Policy:
    """Whose signatures count: ``keys`` as 32 bytes -> the name for messages; ``required``: how many
    different ones must have signed."""

    __slots__ = ("keys", "required")

    def __init__(self, keys: "dict[bytes, str]", required: int) -> None:
        self.keys = keys
        self.required = required


def read_policy(keys: "Sequence[Key] | str | os.PathLike[str]") -> Policy:
    """Read a list of keys, any of which is enough, or the file of a policy.

    Raises:
        InputError: no key, a file that is none.
    """
    if isinstance(keys, (str, os.PathLike)):
        return _read_file(os.fspath(keys))
    return Policy(_named(keys), 1)


def _named(keys: "Iterable[Key]") -> "dict[bytes, str]":
    found: dict[bytes, str] = {}
    for key in keys:
        raw = read_key(key)
        found[raw] = os.fspath(key) if isinstance(key, (str, os.PathLike)) else raw.hex()
    if not found:
        raise InputError("no keys", "keys", "expected at least one", _EXPECTED)
    return found


def _read_file(path: str) -> Policy:
    """Read `keys` and `required` of a TOML file; paths in it count from its folder."""
    import tomllib

    content = read_small(path)
    try:
        table = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise _bad_policy(path, str(error)) from error
    keys, required = table.pop("keys", None), table.pop("required", 1)
    if table:
        raise _bad_policy(path, f"unknown: {', '.join(sorted(table))}")
    items = keys if hasattr(keys, "__iter__") else ()
    names = [key for key in items if isinstance(key, str)]
    if names != keys:
        raise _bad_policy(path, "keys must be a list of paths or hex digits")
    folder = os.path.dirname(path)
    found = _named(key if _is_hex(key) else os.path.join(folder, key) for key in names)
    if type(required) is not int or not 1 <= required <= len(found):
        raise _bad_policy(path, f"required must be 1 to {len(found)}, got {required!r}")
    return Policy(found, required)


def _bad_policy(path: str, why: str) -> InputError:
    do = 'e.g. keys = ["ci.pub", "release.pub"] and required = 2'
    return InputError("not a policy", path, why, do)


def _is_hex(text: str) -> bool:
    return len(text) == 64 and not set(text.lower()) - set("0123456789abcdef")


def read_key(key: "Key") -> bytes:
    """Return the 32 bytes of a public key.

    Raises:
        InputError: it is none, or one with which anybody can sign.
    """
    name, raw = _raw(key)
    if raw is None:
        raise InputError("not a public key", name, _EXPECTED, "`openssl pkey -pubout` makes one")
    if not is_usable(raw):
        why = "it is no point of the curve, or of small order, so that anybody can sign with it"
        raise InputError("a public key that nobody owns", name, why, "make another pair of keys")
    return raw


def _raw(key: "Key") -> "tuple[str, bytes | None]":
    if isinstance(key, bytes):
        return "keys", key if len(key) == 32 else _of_pem(key)
    path = os.fspath(key)
    if _is_hex(path):
        return "keys", bytes.fromhex(path)
    return path, _of_pem(read_small(path))


def _of_pem(data: bytes) -> "bytes | None":
    from base64 import b64decode

    head, _, rest = data.partition(_PEM[0])
    body, end, _ = rest.partition(_PEM[1])
    if not end or 0 in head:
        return None
    try:
        der = b64decode(b"".join(body.split()), validate=True)
    except ValueError:
        return None
    return der[len(_DER_HEAD) :] if der.startswith(_DER_HEAD) and len(der) == 44 else None


def read_small(path: str) -> bytes:
    """Return what is in a file of at most 1 MiB.

    Raises:
        InputError: it cannot be read, or is larger.
    """
    try:
        with QuietFile(open_without_waiting(path)) as file:
            data = file.read(_SIZE_BYTES_MAX + 1) or b""
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        do = "check the path and its permissions"
        raise InputError(f"cannot read {path!r}", path, why, do) from error
    if len(data) > _SIZE_BYTES_MAX:
        raise InputError(f"cannot read {path!r}", path, "it is larger than 1 MiB", "check the path")
    return data
