"""What would decide a build now: files, code and tools. What the cache remembers is not read anew.

In: a project. Out: ``Present``. Not done here: building; what the last build left (``state``).
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.cache.file_digests import DiskFiles
from ingot_build_rules.making.stages.open_build import (
    BuildSettings,
    code_digests_of,
    disk_files,
    key_maker,
)
from ingot_build_rules.tools.workspace.cache_folder import cache_trust, project_cache_folder
from ingot_build_rules.tools.workspace.open_workspace import LoadedProject
from ingot_build_rules.tools.workspace.tools import Tools, tools_of
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Present:
    """``files``: digests of any file; ``tools``: all code and programs; ``keys`` of actions."""

    files: DiskFiles
    tools: Tools
    keys: KeyMaker


def present_of(loaded: LoadedProject) -> Present:
    """Look at code and tools. Nothing is written; a cache that is not there remembers nothing."""
    folder = project_cache_folder(loaded, None, allow_outside=True)
    settings = BuildSettings(folder, cache_trust(writes=False), read_only=True)
    files = disk_files(settings)
    digests = code_digests_of(settings)
    return Present(files, tools_of(files, digests), key_maker(settings, files))
