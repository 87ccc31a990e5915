"""The loader in C inside of this process, so that a test may compare it with the one in Python.

In: bundles, arrays. Out: a library made by the pinned compiler, verdicts, outputs. Not done here:
tests. The library takes libc from this process: to link against one would cost a minute.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tests import opencl_drivers

import ingot_runtime
from ingot_build_rules.tools.export.abi_header import error_kinds
from ingot_build_rules.tools.export.loader_sources import loader_sources
from ingot_compiler.backends.host.zig import run_zig
from ingot_runtime.executor.numpy_dtypes import dtype_of
from ingot_runtime.format.dtypes import DTYPE_CODES

Arrays = Mapping[str, npt.NDArray[Any]]
HEADER_VERSION = 5
VERIFY = {"full": 0, "fast": 1, "code": 2}
_FLAGS = (
    "-target",
    "x86_64-linux-gnu",
    "-std=c11",
    "-O2",
    "-fPIC",
    "-g0",
    "-Wall",
    "-Wextra",
    "-Werror",
)
_SANITIZED = ("-fsanitize=undefined", "-fsanitize-trap=undefined")


class Error(ctypes.Structure):
    """``struct ingot_error``."""

    _fields_ = (
        ("kind", ctypes.c_int32), ("exit_code", ctypes.c_int32), ("what", ctypes.c_char * 512),
        ("where", ctypes.c_char * 1024), ("why", ctypes.c_char * 1024), ("todo", ctypes.c_char * 512),
    )  # fmt: skip


class Threads(ctypes.Structure):
    """``struct ingot_threads``."""

    _fields_ = (("run", ctypes.c_void_p), ("context", ctypes.c_void_p))


class Options(ctypes.Structure):
    """``struct ingot_options``."""

    _fields_ = (
        ("header_version", ctypes.c_uint32), ("verify", ctypes.c_int32), ("threads", ctypes.c_int32),
        ("variant", ctypes.c_char_p), ("digest", ctypes.c_char_p), ("max_bytes", ctypes.c_uint64),
        ("profile", ctypes.c_void_p), ("profile_context", ctypes.c_void_p),
        ("keys", ctypes.POINTER(ctypes.c_char_p)), ("policy", ctypes.c_char_p),
        ("devices", ctypes.POINTER(ctypes.c_char_p)),
        ("keeps_states", ctypes.c_int32), ("max_length", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)), ("like", ctypes.c_void_p),
        ("lent", ctypes.POINTER(Threads)), ("profile_copy", ctypes.c_void_p),
    )  # fmt: skip


class TensorInfo(ctypes.Structure):
    """``struct ingot_tensor_info``."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_uint32), ("dtype_code", ctypes.c_uint32), ("element_bytes", ctypes.c_uint32),
        ("has_default", ctypes.c_uint32),
    )  # fmt: skip


class DeviceInfo(ctypes.Structure):
    """``struct ingot_device_info``."""

    _fields_ = (("name", ctypes.c_char_p), ("bound", ctypes.c_char_p))


class State(ctypes.Structure):
    """``struct ingot_state``."""

    _fields_ = (
        ("input", ctypes.c_uint32), ("output", ctypes.c_uint32), ("axis", ctypes.c_uint32),
        ("is_fixed", ctypes.c_uint32),
    )  # fmt: skip


class BundleInfo(ctypes.Structure):
    """``struct ingot_bundle_info``."""

    _fields_ = (
        ("model", ctypes.c_char_p), ("root_digest", ctypes.c_char_p), ("target", ctypes.c_char_p),
        ("inputs", ctypes.POINTER(TensorInfo)), ("outputs", ctypes.POINTER(TensorInfo)),
        ("symbols", ctypes.POINTER(ctypes.c_char_p)), ("states", ctypes.POINTER(State)),
        ("input_count", ctypes.c_uint32), ("output_count", ctypes.c_uint32),
        ("symbol_count", ctypes.c_uint32), ("state_count", ctypes.c_uint32),
        ("device_count", ctypes.c_uint32), ("devices", ctypes.POINTER(DeviceInfo)),
    )  # fmt: skip


class Tensor(ctypes.Structure):
    """``struct ingot_tensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("size_bytes", ctypes.c_uint64), ("rank", ctypes.c_uint32), ("dtype_code", ctypes.c_uint32),
        ("capacity", ctypes.c_int64), ("axis", ctypes.c_uint32),
    )  # fmt: skip


class Proof(ctypes.Structure):
    """``struct ingot_proof``."""

    _fields_ = (
        ("call_count", ctypes.c_uint32), ("failure_count", ctypes.c_uint32), ("error", ctypes.c_double),
        ("failures", ctypes.c_char * 1024),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a loader says of a file; no kind: it loads."""

    kind: str = ""
    what: str = ""
    where: str = ""
    exit_code: int = 0

    @staticmethod
    def of(error: ingot_runtime.BundleError) -> Verdict:
        """That of the loader in Python."""
        return Verdict(type(error).__name__, error.what, error.where, error.exit_code)


class LoaderError(Exception):
    """What the loader in C refused."""

    def __init__(self, error: Error) -> None:
        number: int = error.kind
        name = error_kinds()[number - 1].__name__
        what, where, why, todo = (
            part.decode() for part in (error.what, error.where, error.why, error.todo)
        )
        super().__init__(f"{name}: {what}\n  where: {where}\n  why: {why}\n  do: {todo}")
        self.verdict = Verdict(name, what, where, error.exit_code)
        self.why, self.todo = why, todo


def library(*, sanitized: bool = False) -> ctypes.CDLL:
    """Compile and load it; ``sanitized``: undefined behaviour ends the process. The processes of a
    test run share what the first one has compiled."""
    return _library(sanitized)


@functools.cache
def _library(sanitized: bool) -> ctypes.CDLL:
    shared = Path(os.environ.get("XDG_STATE_HOME", "/none"), f"libingot-{sanitized}.so")
    if shared.exists():
        return _with_types(ctypes.CDLL(str(shared)))
    with tempfile.TemporaryDirectory(prefix="ingot-c-") as folder:
        made = _compile(folder, loader_sources(), sanitized=sanitized)
        if shared.parent.is_dir():
            part = shared.with_suffix(f".{os.getpid()}")
            shutil.copy(made, part)
            part.replace(shared)
        return _with_types(ctypes.CDLL(made))


def library_of(sources: Iterable[tuple[str, str]], folder: Path) -> ctypes.CDLL:
    """Compile other sources, in a folder; undefined behaviour ends the process."""
    return _with_types(ctypes.CDLL(_compile(str(folder), sources, sanitized=True)))


def _with_types(loaded: ctypes.CDLL) -> ctypes.CDLL:
    loaded.ingot_describe.restype = ctypes.POINTER(BundleInfo)
    loaded.ingot_input.restype = loaded.ingot_output.restype = ctypes.POINTER(Tensor)
    for name in ("unload", "close", "cancel"):
        getattr(loaded, f"ingot_{name}").restype = None
    return loaded


def _compile(folder: str, sources: Iterable[tuple[str, str]], *, sanitized: bool) -> str:
    """Return the path of the library."""
    for name, content in sources:
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)
    flags = (*_FLAGS, *(_SANITIZED if sanitized else ("-fno-sanitize=all",)))
    for command in (
        ("cc", *flags, "-c", "ingot.c", "-o", "ingot.o"),
        ("ld.lld", "-shared", "ingot.o", "-o", "libingot.so"),
    ):
        done = run_zig(command, folder)
        assert done.returncode == 0, done.stderr
    return os.path.join(folder, "libingot.so")


def find_opencl() -> dict[str, str]:
    """Have the loader in C find the driver of the tests by the loader of drivers that pyopencl
    brings with it, if it does; return what a process without Python needs for that, too."""
    import pyopencl  # its loader of drivers ends the process without a variable that this sets

    folder = Path(pyopencl.__file__).parent / ".libs"
    loaders = sorted(folder.glob("libOpenCL*"))
    if not loaders:
        return {}
    os.environ["INGOT_OPENCL_LIBRARY"] = str(loaders[0])
    named = {"INGOT_OPENCL_LIBRARY": str(loaders[0]), "LD_LIBRARY_PATH": str(folder)}
    return {**opencl_drivers.variables(), **named, "PYOPENCL_HOME": os.environ["PYOPENCL_HOME"]}


def options(
    verify: str = "full",
    threads: int = 1,
    variant: str = "",
    digest: str = "",
    max_bytes: int = 0,
    keys: Sequence[str] = (),
    policy: str = "",
    devices: Mapping[str, str] | None = None,
    states: int | None = None,
    sizes: Sequence[int] = (),
) -> Options:
    """Return what the caller chooses; ``states``: keep them, up to that many rows (0: any)."""
    signers = (ctypes.c_char_p * (len(keys) + 1))(*(key.encode() for key in keys), None)
    texts = (text.encode() or None for text in (variant, digest))
    mapped = [f"{name}={kind}".encode() for name, kind in (devices or {}).items()]
    bound = (ctypes.c_char_p * (len(mapped) + 1))(*mapped, None)
    return Options(
        HEADER_VERSION, VERIFY[verify], threads, *texts, max_bytes, None, None, signers, policy.encode() or None,
        bound,
        states is not None, states or 0, (ctypes.c_int64 * len(sizes))(*sizes) if sizes else None,
    )  # fmt: skip


class CBundle:
    """A bundle and one session of it, through ``ingot.h``."""

    def __init__(
        self,
        bundle: str | os.PathLike[str] | bytes,
        chosen: Options | None = None,
        *,
        sanitized: bool = False,
    ) -> None:
        """Load a path, or bytes."""
        self._library, self._is_fork = library(sanitized=sanitized), False
        self._chosen = chosen or options()
        self._bundle, self.session = ctypes.c_void_p(), ctypes.c_void_p()
        self._kept: object = bundle
        choice = ctypes.byref(self._chosen)
        if isinstance(bundle, bytes):
            view = ctypes.c_char_p(bundle)
            self._check(
                "load_memory",
                view,
                ctypes.c_size_t(len(bundle)),
                choice,
                ctypes.byref(self._bundle),
            )
        else:
            self._check("load", os.fsencode(bundle), choice, ctypes.byref(self._bundle))
        try:
            self.info: BundleInfo = self._library.ingot_describe(self._bundle)[0]
            self._check("open", self._bundle, choice, ctypes.byref(self.session))
        except BaseException:
            self.close()
            raise

    def another(self) -> CBundle:
        """Return another session of the same bundle; it must be closed first."""
        other = object.__new__(CBundle)
        other.__dict__ |= {**self.__dict__, "_bundle": ctypes.c_void_p()}
        other.session = ctypes.c_void_p()
        self._check("open", self._bundle, ctypes.byref(self._chosen), ctypes.byref(other.session))
        return other

    def _check(self, name: str, *arguments: object) -> None:
        error = Error()
        if getattr(self._library, f"ingot_{name}")(*arguments, ctypes.byref(error)):
            raise LoaderError(error)

    def set_input(self, index: int, array: npt.NDArray[Any]) -> None:
        """Let an input lie where the array does."""
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        address = ctypes.c_void_p(array.ctypes.data)
        self._check("set_input", self.session, ctypes.c_uint32(index), address, shape)

    def set_output(self, index: int, array: npt.NDArray[Any]) -> None:
        """Let an output go where the array lies."""
        address, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(array.nbytes)
        self._check("set_output", self.session, ctypes.c_uint32(index), address, size)

    def run(self, inputs: Arrays, seconds: float = 0) -> dict[str, npt.NDArray[Any]]:
        """Do what ``Session.run`` does."""
        given = self._kept_arrays = {
            name: np.array(array, order="C") for name, array in inputs.items()
        }
        for index in range(self.info.input_count):
            name = self.info.inputs[index].name.decode()
            if name in given:
                self.set_input(index, given[name])
        self.call(seconds)
        return {
            self.info.outputs[index].name.decode(): self.output(index)
            for index in range(self.info.output_count)
        }

    def call(self, seconds: float = 0) -> None:
        """Run on what is set."""
        self._check("run", self.session, ctypes.c_double(seconds))

    def output(self, index: int) -> npt.NDArray[Any]:
        """Return a copy of an output; of a state, its rows without their room."""
        tensor: Tensor = self._library.ingot_output(self.session, ctypes.c_uint32(index))[0]
        dtype = dtype_of(DTYPE_CODES[self.info.outputs[index].dtype.decode()])
        shape = [tensor.shape[axis] for axis in range(tensor.rank)]
        data = ctypes.string_at(tensor.data, tensor.size_bytes) if tensor.size_bytes else b""
        if not tensor.capacity:
            return np.frombuffer(data, dtype).reshape(shape)
        rows, shape[tensor.axis] = shape[tensor.axis], tensor.capacity
        return np.frombuffer(data, dtype).reshape(shape).take(range(rows), tensor.axis)

    def keep(self, length: int = -1, entries: Sequence[int] | None = None) -> None:
        """Call ``ingot_keep``."""
        chosen = None if entries is None else (ctypes.c_int64 * len(entries))(*entries)
        count = ctypes.c_uint64(len(entries or ()))
        self._check("keep", self.session, ctypes.c_int64(length), chosen, count)

    def selftest(self) -> Proof:
        """Call ``ingot_selftest``."""
        proof = Proof()
        choice = ctypes.byref(self._chosen)
        self._check("selftest", self._bundle, choice, ctypes.byref(proof))
        return proof

    @property
    def devices(self) -> dict[str, str]:
        """What each device is bound to, as ``Session.devices`` tells it."""
        rows = [self.info.devices[index] for index in range(self.info.device_count)]
        return {row.name.decode(): row.bound.decode() for row in rows}

    def fork(self, chosen: Options | None = None) -> CBundle:
        """Return a session like this one, of the same bundle; it is to be closed first."""
        other = CBundle.__new__(CBundle)
        other._library, other._chosen = self._library, chosen or options()
        other._chosen.like = self.session
        other._bundle, other.session, other.info = self._bundle, ctypes.c_void_p(), self.info
        other._is_fork = True
        choice = ctypes.byref(other._chosen)
        other._check("open", self._bundle, choice, ctypes.byref(other.session))
        return other

    def cancel(self) -> None:
        """Call ``ingot_cancel``."""
        self._library.ingot_cancel(self.session)

    def close(self) -> None:
        """Give everything back; may be done again."""
        self._library.ingot_close(self.session)
        if not self._is_fork:
            self._library.ingot_unload(self._bundle)
        self._bundle, self.session = ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self) -> CBundle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def verdict_of_c(
    bundle: str | os.PathLike[str] | bytes,
    chosen: Options | None = None,
    *,
    sanitized: bool = False,
) -> Verdict:
    """What the loader in C says of a file."""
    try:
        CBundle(bundle, chosen, sanitized=sanitized).close()
    except LoaderError as error:
        return error.verdict
    return Verdict()


def verdict_of_python(bundle: str | os.PathLike[str] | bytes, **chosen: Any) -> Verdict:
    """What the loader in Python says of it."""
    try:
        ingot_runtime.load(bundle, **chosen).close()
    except ingot_runtime.BundleError as error:
        return Verdict.of(error)
    return Verdict()
