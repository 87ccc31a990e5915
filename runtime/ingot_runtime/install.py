"""Install bundles in a folder so that the old one or the new one is there whenever the power is
cut, and go back to the one before.

In: a bundle, a folder. Out: the folder with ``current.ingot``, a symbolic link to the newest of some
files ``000001-DIGEST.ingot``. Not done here: whether the bundle is one (``command`` loads it first);
the operations on the disk (``files``).

The file is on the disk before it has its name, and the name before the link is renamed over the one
before: that rename is the moment from which on the new one is current.
"""

import os

from .errors import InputError
from .files import Files, failed
from .format.statement import DETACHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CURRENT = "current.ingot"
_PART = ".part"
_DIGITS = 6


def install(
    data: "Iterator[bytes]",
    signatures: bytes,
    digest: str,
    folder: str,
    keep: int,
    files: "Files | None" = None,
) -> str:
    """Make a bundle the current one of `folder`; return its path. `data`: its bytes, which have been
    verified; `signatures`: the file beside it, or nothing; `keep`: so many are left, this included.

    Raises:
        ResourceError: the disk refused it; the old one is current.
    """
    files = files or Files()
    try:
        _clean(folder, files)
        before = current(folder)
        # What is newer was never current, or was left for the one before: it is no way back.
        _remove(folder, [name for name in installed(folder) if name > (before or "")], files)
        number = int(before.partition("-")[0]) + 1 if before else 1
        name = f"{number:0{_DIGITS}d}-{digest[:16]}.ingot"
        if signatures:
            _place(os.path.join(folder, name + DETACHED), iter([signatures]), files)
        _place(os.path.join(folder, name), data, files)
        files.sync(folder)
        _point(folder, name, files)
        _remove(folder, installed(folder)[:-keep], files)
    except OSError as error:
        raise failed(folder, error) from error
    return os.path.join(folder, name)


def rollback(folder: str, files: "Files | None" = None) -> str:
    """Make the bundle before the current one current again; return its path.

    Raises:
        InputError: there is none before it. ResourceError: the disk refused it.
    """
    files = files or Files()
    try:
        _clean(folder, files)
        now = current(folder)
        before = [name for name in installed(folder) if now and name < now]
        if not before:
            why = f"current is {now}" if now else "nothing is installed there"
            do = "install with --keep 2 or more"
            raise InputError("nothing to go back to", folder, why, do)
        _point(folder, before[-1], files)
    except OSError as error:
        raise failed(folder, error) from error
    return os.path.join(folder, before[-1])


def installed(folder: str) -> "list[str]":
    """Return the names of the bundles of a folder, in the order in which they were installed."""
    return sorted(name for name in os.listdir(folder) if _is_ours(name))


def current(folder: str) -> "str | None":
    """Return the name of the current one, or None."""
    try:
        name = os.readlink(os.path.join(folder, CURRENT))
    except FileNotFoundError:
        return None
    return name if _is_ours(name) else None


def _is_ours(name: str) -> bool:
    number, sign, rest = name.partition("-")
    return bool(sign) and number.isdigit() and len(number) >= _DIGITS and rest.endswith(".ingot")


def _point(folder: str, name: str, files: Files) -> None:
    link = os.path.join(folder, CURRENT)
    files.link(name, link + _PART)
    files.rename(link + _PART, link)
    files.sync(folder)


def _place(path: str, data: "Iterator[bytes]", files: Files) -> None:
    """Give a file its name when all of it is on the disk."""
    at = 0
    for chunk in data:
        files.write(path + _PART, chunk, at)
        at += len(chunk)
    files.sync(path + _PART)
    files.rename(path + _PART, path)


def _remove(folder: str, names: "list[str]", files: Files) -> None:
    for name in names:
        files.remove(os.path.join(folder, name))
        files.remove(os.path.join(folder, name + DETACHED))


def _clean(folder: str, files: Files) -> None:
    """Remove what a power cut has left."""
    for name in os.listdir(folder):
        whole = name.removesuffix(_PART)
        if name != whole and (whole == CURRENT or _is_ours(whole.removesuffix(DETACHED))):
            files.remove(os.path.join(folder, name))
