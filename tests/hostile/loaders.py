"""The loaders under attack: one harness for each, so that an attack is written once.

In: a bundle. Out: sessions that are used alike, and errors of the same classes. Not done here:
attacks (``attacks`` lists which test makes them on which loader).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt
from tests.c_loader import CBundle, LoaderError, Threads, options

import ingot_runtime
from ingot_build_rules.tools.export.abi_header import error_kinds
from ingot_runtime.loader.weights import Verifier, Weights

Arrays = Mapping[str, npt.NDArray[Any]]
Bundle = str | bytes | os.PathLike[str]
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Running(Protocol):
    """A session under attack."""

    def run(self, inputs: Arrays) -> Arrays:
        """Compute."""
        ...

    def another(self) -> Running:
        """Return a session of its own on the same weights; it is to be closed first."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class InPython:
    """A session of the loader in Python."""

    def __init__(
        self, bundle: Bundle, threads: int = 1, executor: str = "aot", verify: str = "full"
    ) -> None:
        self._choice = bundle, threads, executor, verify
        self.session = ingot_runtime.load(bundle, threads=threads, executor=executor, verify=verify)

    def run(self, inputs: Arrays) -> Arrays:
        """See ``Running``."""
        return self.session.run(inputs)

    def another(self) -> Running:
        """See ``Running``; asked for before anything is changed."""
        other = InPython(*self._choice)
        assert other.session.loaded.weights is self.session.loaded.weights
        return other

    def close(self) -> None:
        """See ``Running``."""
        self.session.close()


class InC:
    """A session of the loader in C."""

    def __init__(
        self, bundle: Bundle, threads: int = 1, executor: str = "aot", verify: str = "full"
    ) -> None:
        assert executor == "aot", "the loader in C has no vm"
        chosen = options(verify, threads)
        if _lent:
            chosen.threads, chosen.lent = 2, ctypes.pointer(Threads(_lent[-1]))
        with in_python():
            self._bundle = CBundle(bundle, chosen)

    def run(self, inputs: Arrays) -> Arrays:
        """See ``Running``."""
        with in_python():
            return self._bundle.run(inputs)

    def another(self) -> Running:
        """See ``Running``."""
        other = InC.__new__(InC)
        with in_python():
            other._bundle = self._bundle.another()
        return other

    def close(self) -> None:
        """See ``Running``."""
        self._bundle.close()


Load = Callable[..., Running]
LOADERS: dict[str, Load] = {"python": InPython, "c": InC}
# What runs a bundle: the loader, and its executor.
WAYS = {"aot": ("python", "aot"), "vm": ("python", "vm"), "c": ("c", "aot")}
_lent: list[object] = []


@contextmanager
def in_python() -> Generator[None]:
    """Raise what the loader in C refuses as the loader in Python does."""
    try:
        yield
    except MemoryError as error:  # of an array that this harness makes
        raise ingot_runtime.ResourceError("not enough memory", "harness") from error
    except LoaderError as error:
        kinds = {kind.__name__: kind for kind in error_kinds()}
        said = error.verdict
        raise kinds[said.kind](said.what, said.where, error.why, error.todo) from None


@contextmanager
def around_verification(
    loader: str, before: Callable[[], None], after: Callable[[], None]
) -> Generator[None]:
    """Act around the verification of weights by the next load; it must come to one."""
    if loader == "c":
        acted = _around_in_c(before, after)
    else:
        acted = _around_in_python(before, after)
    with acted:
        yield


@contextmanager
def _around_in_python(before: Callable[[], None], after: Callable[[], None]) -> Generator[None]:
    verify, calls = Verifier.verify, [0]

    def acting(self: Verifier, weights: Weights, mode: str) -> None:
        Verifier.verify = verify  # type: ignore[method-assign]
        calls[0] += 1
        before()
        verify(self, weights, mode)
        after()

    Verifier.verify = acting  # type: ignore[method-assign]
    try:
        yield
    finally:
        Verifier.verify = verify  # type: ignore[method-assign]
    assert calls == [1]


@contextmanager
def _around_in_c(before: Callable[[], None], after: Callable[[], None]) -> Generator[None]:
    """The first work that lent threads are asked for is that of a load."""
    calls = [0]

    def run(_context: int, count: int, task: int, argument: int) -> None:
        calls[0] += 1
        if calls[0] == 1:
            before()
        for _ in range(count):
            _TASK(task)(argument)
        if calls[0] == 1:
            after()

    function = _RUN(run)
    _lent.append(ctypes.cast(function, ctypes.c_void_p))
    _kept.append(function)  # sessions call it as long as they live
    try:
        yield
    finally:
        _lent.pop()
    assert calls[0], "no threads were asked for: this needs two processors"


_kept: list[object] = []


def loaded(path: str | Path, way: str, threads: int = 1, verify: str = "full") -> Running:
    """Load in one of ``WAYS``."""
    loader, executor = WAYS[way]
    return LOADERS[loader](path, threads=threads, executor=executor, verify=verify)


def refused_by_both(data: bytes | Path, **chosen: Any) -> ingot_runtime.BundleError:
    """Load in both loaders; return the error, which is the same in both and has its parts."""
    found: list[ingot_runtime.BundleError] = []
    for load in LOADERS.values():
        try:
            load(data, **chosen).close()
        except ingot_runtime.BundleError as error:
            found.append(error)
    assert len(found) == len(LOADERS), found or "no loader refuses it"
    # Of a later version, Python looks what is not known in it.
    kinds = [(type(each), each.exit_code) for each in found]
    words = [(each.what, each.where) for each in found]
    assert kinds[0] == kinds[1]
    assert words[0] == words[1] or kinds[0][0] is ingot_runtime.VersionError
    assert all(part for part in (*words[0], *words[1]))
    return found[0]
