"""Install bundles in a folder so that the old one or the new one is there whenever the power is
cut, and go back to the one before.

In: a bundle, a folder. Out: the folder with ``current.ingot``, a symbolic link to the newest of
some files ``000001-DIGEST.ingot``. Not done here: whether the bundle is one (``command`` loads it
first); the operations on the disk (``files``); the other bundle in which weights of it lie
(``installed_base``).

The file is on the disk before it has its name, and the name before the link is renamed over the one
before: that rename is the moment from which on the new one is current.
"""

import errno
import os

from .errors import BundleError, InputError
from .files import Files, failed
from .format.source import open_file
from .format.statement import DETACHED
from .installed_base import base_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .format.source import Source
    from .installed_base import Base

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
    base: "Base | None" = None,
) -> str:
    """Make a bundle the current one of `folder`; return its path. `data`: its bytes, which have
    been verified; `signatures`: the file beside it, or nothing; `keep`: so many are left, this
    included; `base`: the other bundle in which weights of it lie.

    Raises:
        ResourceError: the disk refused it; the old one is current. InputError: the name of the
            other bundle is taken.
    """
    files = files or Files()
    if base and _is_taken(base.name):
        why, do = "installations have such names", "`ingot share` with a bundle of another name"
        raise InputError(f"weights lie in a bundle called {base.name!r}", folder, why, do)
    try:
        _clean(folder, files)
        before = current(folder)
        # What is newer was never current, or was left for the one before: it is no way back.
        _remove(folder, [name for name in installed(folder) if name > (before or "")], files)
        if base:
            base.require_disk_space(folder)
        number = int(before.partition("-")[0]) + 1 if before else 1
        name = f"{number:0{_DIGITS}d}-{digest[:16]}.ingot"
        if signatures:
            beside = os.path.join(folder, name + DETACHED)
            files.write_all(beside + _PART, [signatures])
            files.rename(beside + _PART, beside)
        path = os.path.join(folder, name)
        files.write_all(path + _PART, data)
        if base:  # behind the bundle: what a cut leaves of that tells which other one to remove
            base.place(folder, f"{path.removesuffix('.ingot')}.base.ingot{_PART}", files)
        files.rename(path + _PART, path)
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
    """Return the name of the current one, or None.

    Raises:
        InputError: something else than a link has its name, so nobody knows which it was.
    """
    path = os.path.join(folder, CURRENT)
    try:
        name = os.readlink(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        what, why = f"{CURRENT!r} is no symbolic link", "somebody has put something in its place"
        raise InputError(what, path, why, "move it away, and install again") from error
    return name if _is_ours(name) else None


def current_source(folder: str) -> "Source | None":
    """Open the current bundle; None without one, or where it is damaged: to install mends that."""
    name = current(folder)
    try:
        return None if name is None else open_file(os.path.join(folder, name))
    except BundleError:
        return None


def _is_ours(name: str) -> bool:
    number, sign, rest = name.partition("-")
    is_number = number.isascii() and number.isdigit()
    return bool(sign) and is_number and len(number) >= _DIGITS and rest.endswith(".ingot")


def _is_taken(name: str) -> bool:
    """Whether files that come and go here have such names."""
    whole = name.removesuffix(_PART).removesuffix(DETACHED)
    return whole == CURRENT or _is_ours(whole)


def _point(folder: str, name: str, files: Files) -> None:
    link = os.path.join(folder, CURRENT)
    files.link(name, link + _PART)
    files.rename(link + _PART, link)
    files.sync(folder)


def _remove(folder: str, names: "list[str]", files: Files) -> None:
    for name in names:
        path = os.path.join(folder, name)
        if base_of(path):  # no way back leads to it any more, whatever a cut leaves
            files.rename(path, path + _PART)
        for each in (name, name + _PART):
            _drop(folder, each, files)
        files.remove(path + DETACHED)


def _drop(folder: str, name: str, files: Files) -> None:
    """Remove a file, and before it the other bundle that it has weights in, if no installed one has
    weights there."""
    path = os.path.join(folder, name)
    base = base_of(path)
    if base and base not in {base_of(os.path.join(folder, each)) for each in installed(folder)}:
        files.remove(os.path.join(folder, base))
    files.remove(path)


def _clean(folder: str, files: Files) -> None:
    """Remove what a power cut has left."""
    for name in os.listdir(folder):
        if name.endswith(_PART) and _is_taken(name):
            _drop(folder, name, files)
