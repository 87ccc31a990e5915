"""Errors of the engine itself, in four parts; those of rules go through it unchanged.

In: nothing. Out: exception classes with exit codes. Not done here: printing.
"""

from ingot_artifacts.errors import ArtifactError


class ActionError(ArtifactError):
    """An action ended in a way that no rule intends: its process died, or our bug."""


class HitDiffersError(ArtifactError):
    """An action that was run again gave another result than the cache had."""

    exit_code = 4


class UndeclaredReadError(ArtifactError):
    """An action read a file that its key does not know of."""

    exit_code = 4


class BuildStoppedError(ArtifactError):
    """Another action failed, and the build was not told to keep going."""
