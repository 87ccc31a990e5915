"""Where the cache is, what it may take, and who is trusted to write to it: the one place that reads
the environment for it.

In: what the user names, or nothing. Out: a folder, bytes, ``Trust``. Not done here: making it
(``ingot_artifacts.store.cache``), the user's key (``user_key``).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ingot_build_rules.making.options.cache_size import read_cache_max
from ingot_build_rules.tools.workspace.user_key import known_key, user_key
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_artifacts.store.trust import Trust
    from ingot_build_rules.tools.workspace.open_workspace import LoadedProject


def cache_folder(given: str | None = None) -> str:
    """Return the folder: what was given, else ``$INGOT_CACHE``, ``$XDG_CACHE_HOME/ingot``,
    ``~/.cache/ingot``."""
    named = given or os.environ.get("INGOT_CACHE")
    if named:
        return os.path.abspath(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path is invalid and is ignored.
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "ingot")


def project_cache_folder(loaded: LoadedProject, given: str | None, *, allow_outside: bool) -> str:
    """Return the cache folder of a project: what was given, else what its file says, else the
    user's.

    Raises:
        UserError: the project's file names one outside of its folder and of the user's cache, and
            that is not allowed.
    """
    from ingot_build_rules.tools.workspace.places import is_inside, outside_error

    declared = loaded.project.cache
    if given or declared is None:
        return cache_folder(given)
    folder = os.path.abspath(os.path.join(loaded.folder, declared))
    places = (loaded.folder, cache_folder())
    if not allow_outside and not any(is_inside(folder, place) for place in places):
        raise outside_error(loaded.folder, loaded.path, [("its cache", folder)])
    return folder


def cache_max_bytes(given: int | None = None) -> int | None:
    """Return what a cache may take: what was given, else ``$INGOT_CACHE_MAX``; None for the
    default.

    Raises:
        UserError: the variable is no size.
    """
    text = os.environ.get("INGOT_CACHE_MAX", "")
    if given is not None or not text:
        return given
    return _limit(text, "variable INGOT_CACHE_MAX")


def project_cache_max_bytes(loaded: LoadedProject, folder: str, given: int | None) -> int | None:
    """Return what the cache ``folder`` of a project may take: what was given, else what its file
    says of a cache in the project's own folder, else the user's limit.

    Raises:
        UserError: the file says it of a cache that is not the project's.
    """
    from ingot_build_rules.tools.workspace.places import is_inside

    text = loaded.project.cache_max
    if given is not None or text is None:
        return cache_max_bytes(given)
    if loaded.project.cache is None or not is_inside(folder, loaded.folder):
        raise UserError(
            "a limit for a cache of others",
            loaded.path,
            f"cache-max is for a cache in the project's folder, got one at {folder}",
            'add cache = ".ingot/cache" to [project], or leave cache-max out and set '
            "INGOT_CACHE_MAX",
        )
    return _limit(text, f"{loaded.path}: cache-max")


def _limit(text: str, where: str) -> int:
    found = read_cache_max(text)
    if found is None:
        why = f"expected a size with its unit such as 20GB, or none, got {text!r}"
        raise UserError("wrong limit of the cache", where, why, "write a unit: B, kB, MB, GB, GiB")
    return found


def cache_trust(*, shared: bool = False, writes: bool = True) -> Trust:
    """Return whose records in a cache count; what ``writes`` nothing makes no key.

    Raises:
        UserError: the user's key is not private, or cannot be made, and the cache is not
            ``shared``.
    """
    from ingot_artifacts.store.trust import Trust

    if writes and shared:
        # All that goes without the key is the memory of the project: it is looked at again.
        with suppress(UserError):
            user_key()
    return Trust(user_key() if writes and not shared else known_key(), shared)
