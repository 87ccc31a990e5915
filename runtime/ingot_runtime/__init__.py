"""The standalone loader: maps a bundle, verifies it, runs it. Needs the standard library, numpy.

In: a bundle's path or bytes. Out: a ``Session``. Not done here: compiling; importing numpy before
arrays are needed.
"""

from .errors import (
    BundleError,
    BusyError,
    CancelledError,
    ChangedError,
    DeviceError,
    DigestError,
    FileError,
    FormatError,
    IncompatibleError,
    InputError,
    LimitError,
    NotABundleError,
    ResourceError,
    RunError,
    TimedOutError,
    VersionError,
)
from .ingot_error import IngotError

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself costs 10 ms
    import os

    from .executor.bound import Bound
    from .executor.session import Session, TensorSpec

__version__ = "0.1.0"
__all__ = [
    "Bound",
    "BundleError",
    "BusyError",
    "CancelledError",
    "ChangedError",
    "DeviceError",
    "DigestError",
    "FileError",
    "FormatError",
    "IncompatibleError",
    "IngotError",
    "InputError",
    "LimitError",
    "NotABundleError",
    "ResourceError",
    "RunError",
    "Session",
    "TensorSpec",
    "TimedOutError",
    "VersionError",
    "__version__",
    "load",
]
_MODULES = {
    "Bound": "executor.bound",
    "Session": "executor.session",
    "TensorSpec": "executor.session",
}


def load(
    bundle: "str | bytes | bytearray | memoryview | os.PathLike[str]",
    threads: int = 1,
    devices: "dict[str, str] | None" = None,
    verify: str = "full",
    variant: "str | None" = None,
    executor: str = "aot",
    features: "frozenset[str] | None" = None,
    digest: "str | None" = None,
    max_bytes: "int | None" = None,
    sessions: int = 1,
    busy: str = "wait",
) -> "Session":
    """Check a bundle and make it ready to run.

    Args:
        bundle: a path, or the bytes themselves.
        threads: threads that a call computes with, 1 to 1024; fewer are used where the machine
            lends fewer.
        devices: virtual device -> physical one, e.g. ``{"acc": "null:1"}``; as compiled where not
            given.
        verify: "full" checks every byte that is used; "fast" finds accidental damage of weights
            only; "code" does not look at weights.
        variant: the target of the variant to run; the best that this machine can run where not
            given.
        executor: "aot" runs the native `main`, "vm" steps the same program instruction by
            instruction.
        features: run as if the machine had at most these CPU features.
        digest: refuse any bundle but the one with this root digest: 64 hex digits, or at least the
            first 32. It is compared before anything else of the file is believed.
        max_bytes: most memory that a call may have for workspace, outputs and blocks of a size that
            the data decide; more is a ``LimitError``. Each of several sessions has an equal part.
        sessions: how many calls may run at once, from as many threads: they share the file, its
            code and its weights; each has its own workspace and threads.
        busy: a call that finds all sessions running waits its turn ("wait"), or is refused by a
            ``BusyError`` ("error").

    Raises:
        BundleError: one of its subclasses, in four parts: what, where, why, what to do.
    """
    from .load_bundle import load_bundle

    return load_bundle(
        bundle, threads, devices, verify, variant, executor, features, digest, max_bytes,
        sessions, busy,
    )  # fmt: skip


def __getattr__(name: str) -> object:
    """Import the class of a session when it is first asked for: it needs ctypes, errors do not."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, whether they are imported yet or not."""
    return sorted(__all__)
