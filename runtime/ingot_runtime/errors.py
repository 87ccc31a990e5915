"""The loader's errors: one small tree.

In: nothing. Out: ``BundleError`` and its subclasses, each with the command's exit code. Not done
here: printing.
"""

from .ingot_error import IngotError


class BundleError(IngotError):
    """Base of every error that the loader raises on purpose."""

    exit_code = 4


class FileError(BundleError):
    """The file cannot be opened or read: missing, a folder, no permission."""

    exit_code = 1


class NotABundleError(BundleError):
    """The file is something else."""

    exit_code = 1


class FormatError(BundleError):
    """The file breaks a rule of FORMAT.md: truncated, lengths that lie, parts that disagree."""


class DigestError(BundleError):
    """Bytes are not those that the bundle's digests promise."""


class SignatureError(BundleError):
    """No key that was given has signed the bundle, or the signature has expired."""


class ChangedError(BundleError):
    """The file changed while it was mapped; the results of the call are lost."""


class VersionError(BundleError):
    """The bundle is of a version that this loader does not know."""

    exit_code = 5


class IncompatibleError(BundleError):
    """The bundle cannot run here: a CPU feature or a device is missing."""

    exit_code = 5


class InputError(BundleError, ValueError):
    """An argument is wrong: an input missing, extra, mistyped or misshaped, an unknown option."""

    exit_code = 1


class BusyError(BundleError):
    """The session is running in another thread."""

    exit_code = 1


class ResourceError(BundleError):
    """The operating system refused memory, threads or executable pages."""

    exit_code = 2


def no_memory(what: str, where: str) -> ResourceError:
    """Return the error for the interpreter's own ``MemoryError``."""
    why = "the interpreter found no memory for an object of its own"
    return ResourceError(what, where, why, "free memory, or lift the limit of this process")


class LimitError(ResourceError):
    """The call needs more memory than ``max_bytes`` allows."""


class CancelledError(BundleError):
    """The call was ended by ``session.cancel()``; the session can be used again."""

    exit_code = 2


class TimedOutError(CancelledError, TimeoutError):
    """The call was ended by its ``timeout``."""


class RunError(BundleError):
    """`main` failed; ``__cause__`` is the exception of a callback where there was one."""

    exit_code = 2


class DeviceError(RunError):
    """A device beside the host failed, was lost, or refused what it was asked."""
