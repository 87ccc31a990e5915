"""Errors of artifacts: what failed, where, why, what to do.

In: nothing. Out: ``ArtifactError`` and its kinds, each with the command's exit code. Not done here:
printing; errors in a bundle that is read (``ingot_runtime.errors``).
"""

from ingot_runtime.ingot_error import IngotError


class ArtifactError(IngotError):
    """An artifact cannot be made, or had."""


class OutputError(ArtifactError):
    """The output cannot be written: no folder, no permission, no space."""

    exit_code = 1


class StoreReadOnly(OutputError):
    """The cache was opened for reading alone."""


def read_only_error(path: str) -> StoreReadOnly:
    """Return the error of a write to the cache at ``path``."""
    why, do = "it was opened for reading alone", "name a cache that may be written as well"
    return StoreReadOnly("the cache is read-only", path, why, do)
