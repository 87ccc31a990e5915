"""Errors that name the blame: what failed, where, why (expected and got), what to do.

In: nothing. Out: one exception class per kind of blame, each with its exit code. Not done here:
printing.
"""

from ingot_runtime.ingot_error import IngotError


class UserError(IngotError):
    """The command or an argument is wrong."""

    exit_code = 1


class ModelError(UserError):
    """The model file is wrong."""


class BuildError(IngotError):
    """The machine got in the way: disk, permission, missing tool."""

    exit_code = 2


class PluginError(BuildError):
    """A plug-in that the user named does not do what plug-ins have to."""


class UnsupportedError(IngotError):
    """The request is valid, and Ingot does not do it yet."""

    exit_code = 3


class LimitError(UnsupportedError):
    """The request is valid, and its result would be beyond a limit: of Ingot, of the bundle format,
    or of the user (``max_bytes``)."""


class VerificationError(IngotError):
    """A digest or a check against the reference failed."""

    exit_code = 4


class IncompatibleTargetError(IngotError):
    """The target cannot run, or be compiled for, here."""

    exit_code = 5


class InternalError(IngotError):
    """Our bug: the message says where to report it."""

    exit_code = 2
