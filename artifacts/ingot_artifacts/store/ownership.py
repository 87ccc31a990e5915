"""Who can write to a cache: its folders belong to the user, are closed to others, and are no links.

In: a cache's folders. Out: nothing, or an error. Not done here: making them (``cache``), what lies
in them (seals, digests).

The folder itself may be reached by links of the user's or of root: `~/.cache` may lie on another
disk. Links inside are refused: the cache makes none, so each leads where somebody else wanted.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

from ingot_artifacts.errors import ArtifactError
from ingot_artifacts.store.atomic import output_error
from ingot_runtime.option_ref import OptionRef

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OR_SHARED = (
    "name another cache (",
    OptionRef("cache", "DIR"),
    "), or say that you trust all who can write to it (",
    OptionRef("cache-shared"),
    ")",
)


class CacheAuthorityError(ArtifactError):
    """Somebody else decides what is in the cache."""

    exit_code = 1


def check_ownership(path: str, inside: Sequence[str], *, shared: bool) -> None:
    """Refuse a cache at ``path`` with the folders ``inside`` that others can write to, unless it is
    ``shared``.

    What is not there yet is left out.

    Raises:
        CacheAuthorityError: of somebody else, open to others, or a link. OutputError: it cannot be
            looked at.
    """
    try:
        if not shared:
            _check_link(path)
        for folder in (os.path.realpath(path), *inside):
            _check_folder(folder, shared=shared)
    except OSError as error:
        raise output_error(path, str(error.filename or path), error) from error


def _check_folder(folder: str, *, shared: bool) -> None:
    found = _look(folder)
    if found is None:
        return
    if stat.S_ISLNK(found.st_mode):
        raise _is_link(folder)
    if not shared:
        _check_owner(folder, found)


def _check_link(path: str) -> None:
    """A link to the cache says which folder it is: somebody else's would say another one
    tomorrow."""
    found = _look(path)
    if found is not None and stat.S_ISLNK(found.st_mode) and found.st_uid != 0:
        _check_user(path, found)


def _check_owner(folder: str, status: os.stat_result) -> None:
    _check_user(folder, status)
    if status.st_mode & _OTHERS_WRITE:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        raise CacheAuthorityError(
            "others can write to the cache",
            folder,
            f"expected a folder that is closed to others, got mode {mode}; "
            "whoever can write to a cache decides what bundles are made of",
            (f"close it (chmod go-w {folder}), ", *_OR_SHARED),
        )


def _check_user(folder: str, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise CacheAuthorityError(
            "the cache belongs to somebody else",
            folder,
            f"expected a folder of user {os.geteuid()}, got one of user {status.st_uid}; "
            "whoever owns a cache decides what bundles are made of",
            _OR_SHARED,
        )


def _is_link(folder: str) -> CacheAuthorityError:
    return CacheAuthorityError(
        "a folder of the cache is a symbolic link",
        folder,
        "the cache makes no links; what is behind one is not its own",
        (
            "remove the link, or name the folder behind it as the cache (",
            OptionRef("cache", "DIR"),
            ")",
        ),
    )


def _look(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise
