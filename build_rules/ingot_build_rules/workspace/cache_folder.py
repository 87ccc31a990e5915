"""Where the cache is, and who is trusted to write to it: the one place that reads the environment
for it.

In: what the user names, or nothing. Out: a folder, ``Trust``. Not done here: making it
(``ingot_artifacts.store.cache``), the user's key (``user_key``).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ingot_build_rules.workspace.user_key import known_key, user_key
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_artifacts.store.trust import Trust
    from ingot_build_rules.workspace.open_workspace import LoadedProject


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
    from ingot_build_rules.workspace.places import is_inside, outside_error

    declared = loaded.project.cache
    if given or declared is None:
        return cache_folder(given)
    folder = os.path.abspath(os.path.join(loaded.folder, declared))
    places = (loaded.folder, cache_folder())
    if not allow_outside and not any(is_inside(folder, place) for place in places):
        raise outside_error(loaded.folder, loaded.path, [("its cache", folder)])
    return folder


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
