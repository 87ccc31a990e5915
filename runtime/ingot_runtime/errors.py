"""The loader's errors: one small tree; each says what failed, where, why (expected and got), and what to do.

In: nothing. Out: ``BundleError`` and its subclasses, each with the command's exit code. Not done here: printing.
"""

from .printable import error_text


class BundleError(Exception):
    """Base of every error that the loader raises on purpose; ``str()`` is the four-part message without a prefix, fit to print."""

    exit_code = 4

    def __init__(self, what: str, where: str = "", why: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.do = do

    def __str__(self) -> str:
        return error_text(self.what, self.where, self.why, self.do)

    def __reduce__(self) -> tuple[type["BundleError"], tuple[str, str, str, str]]:
        return type(self), (self.what, self.where, self.why, self.do)


class FileError(BundleError):
    """The file cannot be opened or read: missing, a folder, no permission."""

    exit_code = 1


class NotABundleError(BundleError):
    """The file is something else."""

    exit_code = 1


class FormatError(BundleError):
    """The file breaks a rule of FORMAT.md: truncated, overlapping sections, lengths that lie, parts that disagree."""


class DigestError(BundleError):
    """Bytes are not those that the bundle's digests promise."""


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
