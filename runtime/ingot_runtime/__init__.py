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
    SignatureError,
    TimedOutError,
    VersionError,
)
from .ingot_error import IngotError

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself costs 10 ms
    import os
    from collections.abc import Sequence as Several

    from .executor.bound import Bound
    from .executor.sequence import Sequence
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
    "Sequence",
    "Session",
    "SignatureError",
    "TensorSpec",
    "TimedOutError",
    "VersionError",
    "__version__",
    "load",
]
_MODULES = {
    "Bound": "executor.bound",
    "Sequence": "executor.sequence",
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
    keys: "Several[str | bytes | os.PathLike[str]] | str | os.PathLike[str] | None" = None,
) -> "Session":
    """Check a bundle and make it ready to run.

    Args:
        bundle: a path, or the bytes themselves.
        threads: threads that a call computes with, where the machine lends so many.
        devices: virtual device -> physical one, e.g. ``{"acc": "null:1"}``; default: as compiled.
        verify: "full" checks every byte that is used; "fast" finds accidental damage of weights
            only; "code" does not look at weights.
        variant: the target of the variant to run; default: the best for this machine.
        executor: "aot" runs the native `main`, "vm" steps the same program.
        features: run as if the machine had at most these CPU features.
        digest: refuse any bundle but the one with this root digest (32 to 64 hex digits).
        max_bytes: most memory of a call: workspace, scratch, outputs; an equal part for each of
            several sessions.
        sessions: how many calls may run at once, from as many threads.
        busy: a call that finds all sessions running waits its turn ("wait"), or is refused by a
            ``BusyError`` ("error").
        keys: refuse any bundle that none of these Ed25519 keys has signed, before any of its code
            is mapped; each a PEM file, its content, 32 bytes or 64 hex digits. A path instead of a
            list: a policy (docs/shipping.md).

    Raises:
        BundleError: one of its subclasses.
    """
    from .load_bundle import load_bundle

    return load_bundle(
        bundle, threads, devices, verify, variant, executor, features, digest, max_bytes,
        sessions, busy, keys,
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
