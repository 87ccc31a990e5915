"""Runs images in the test process, and speaks the structs of ``abi`` by ctypes: a loader in a few
lines.

In: image bytes. Out: callable exports, pool pages with lent threads, call structs. Not done here:
any check.
"""

import ctypes
import mmap
import os
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.support import SUPPORT_EXPORTS
from ingot_compiler.backends.host.support.compile_support import compile_support
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import Target
from ingot_runtime.format import abi

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_FUTEX_NUMBER = 202
_MADV_WIPEONFORK = 18
_FORMATS = {"u32": "I", "i32": "i", "u64": "Q", "i64": "q"}


def libc_address(name: str) -> int:
    """Return the address of a libc function."""
    return address_of(getattr(_LIBC, name))


def address_of(function: Any) -> int:
    """Return the address behind a ctypes function."""
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


class Image:
    """An image mapped read-execute, with one writable page directly behind it."""

    def __init__(self, content: bytes) -> None:
        descriptor = os.memfd_create("image")
        os.write(descriptor, content)
        reserved = _LIBC.mmap(
            None, len(content) + 4096, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0
        )
        fixed = 0x10
        self.base: int = _LIBC.mmap(
            reserved, len(content), mmap.PROT_READ | mmap.PROT_EXEC, 2 | fixed, descriptor, 0
        )
        self.page: int = _LIBC.mmap(
            self.base + len(content), 4096, 3, 2 | fixed | mmap.MAP_ANONYMOUS, -1, 0
        )
        os.close(descriptor)
        names = (*abi.IMAGE_HEADER, *abi.EXPORTS)
        self.words: dict[str, int] = dict(
            zip(names, struct.unpack_from(f"<{len(names)}I", content), strict=True)
        )
        count = self.words["kernel_count"]
        self.kernels = [
            self.base + offset
            for offset in struct.unpack_from(f"<{count}I", content, 4 * len(names))
        ]

    def address(self, export: str) -> int:
        """Return the address of an export."""
        return self.base + self.words[export]

    def function(self, export: str, result: Any, *arguments: Any) -> Callable[..., int]:
        """Return an export as a ctypes function that releases the GIL."""
        return ctypes.CFUNCTYPE(result, *arguments)(self.address(export))


def image_of(kernel_text: str, kernels: Sequence[str], target: Target | None = None) -> Image:
    """Link kernels with the support code and map the result."""
    chosen = target or host_target()
    objects = [
        ("kernels", compile_object(kernel_text, chosen, verify=True)),
        ("support", compile_support(chosen)),
    ]
    return Image(link_image(objects, kernels, SUPPORT_EXPORTS, chosen))


class Pool:
    """A pool page with its lent threads; without `start`, they never get to run."""

    def __init__(self, image: Image, n_threads: int, spin: int, start: bool = True) -> None:
        self.page: int = _LIBC.mmap(None, 4096, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        _LIBC.madvise(ctypes.c_void_p(self.page), 4096, _MADV_WIPEONFORK)
        self.write("magic", abi.POOL_MAGIC)
        self.write("n_threads", n_threads)
        self.write("spin", spin)
        self.write("syscall", libc_address("syscall"), "Q")
        self.write("futex_number", _FUTEX_NUMBER, "Q")
        worker = image.function("worker", None, ctypes.c_void_p, ctypes.c_int64)
        self.threads = [
            threading.Thread(target=worker, args=(self.page, index), daemon=True)
            for index in range(1, n_threads if start else 1)
        ]
        for thread in self.threads:
            thread.start()

    def write(self, name: str, value: int, kind: str = "I") -> None:
        """Store a field."""
        content = struct.pack(f"<{kind}", value)
        ctypes.memmove(self.page + abi.POOL_OFFSETS[name], content, len(content))

    def read(self, name: str) -> int:
        """Load a u32 field."""
        return ctypes.c_uint32.from_address(self.page + abi.POOL_OFFSETS[name]).value

    def stop(self) -> None:
        """Let the workers return, and join them."""
        self.write("epoch", self.read("epoch") | 1 << abi.POOL_QUIT_BIT)
        _LIBC.syscall(
            _FUTEX_NUMBER,
            ctypes.c_void_p(self.page + abi.POOL_OFFSETS["epoch"]),
            129,
            2**31 - 1,
            None,
            None,
            0,
        )
        for thread in self.threads:
            thread.join(5)
            assert not thread.is_alive()


def pack(layout: abi.Struct, values: dict[str, int]) -> ctypes.Array[ctypes.c_char]:
    """Return a struct with the given fields, all others 0."""
    buffer = ctypes.create_string_buffer(layout.size_bytes)
    for name, kind in layout.fields:
        struct.pack_into(f"<{_FORMATS[kind]}", buffer, layout.offsets[name], values.get(name, 0))
    return buffer


def unpack(layout: abi.Struct, buffer: ctypes.Array[ctypes.c_char], name: str) -> int:
    """Return one field of a struct."""
    kind = dict(layout.fields)[name]
    return int(struct.unpack_from(f"<{_FORMATS[kind]}", buffer, layout.offsets[name])[0])
