"""Survive a file that shrinks, or cannot be read, while it is mapped: a native handler puts zero pages there and counts.

In: an image (its handler and the page behind it), an area and a range in it. Out: where its faults are counted; the handler is
installed while any range is guarded. Not done here: telling the user (whoever looks at the count).
One image's handler serves the whole process; that image stays mapped as long as the handler is installed. The list of ranges has
no limit; its rows are used again and never given back, because the handler may be reading one in any thread.
"""

import ctypes
import os
import weakref
from _thread import allocate_lock

from ..errors import ResourceError
from ..format import abi
from . import system
from .area import Area
from .block import Block
from .image import Image

_SIGBUS = 7
_SA_SIGINFO, _SA_ONSTACK, _SA_RESTART = 4, 0x08000000, 0x10000000
# libc's struct sigaction: handler, 128 bytes of mask, flags, restorer.
_ACTION_SIZE_BYTES = 152
_FLAGS_AT = 136
_ROWS_PER_BLOCK = 128
# void *memset(p, byte, n); the fourth argument is the dead weak reference, which libc does not look at.
_MEMSET = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.py_object)(
    system.address_of_libc("memset")
)

_lock = allocate_lock()
_installed: "list[_Handler]" = []
_rows: "list[_Row]" = []
_blocks: "list[Block]" = []


class _Row:
    """One entry of the list that the handler walks over; ``area`` is a weak reference, dead where the row is free."""

    __slots__ = ("address", "area", "swept")

    def __init__(self, address: int, behind: int) -> None:
        self.address = address
        self.area: weakref.ref[Area] | None = None
        self.swept: weakref.ref[Area] | None = None
        self._store("next", behind)

    def guard(self, area: Area, start: int, end: int) -> None:
        # The area takes its row with it, by libc alone, before it is unmapped: from then on the addresses may be
        # somebody else's. Emptying the end makes a range that holds nothing.
        self.area = weakref.ref(area, system.callback(_MEMSET, self.address + abi.GUARDED.offsets["end"], 0, 8))
        # Not a `__del__`: the collector calls those while other garbage can still use what is mapped.
        self.swept = weakref.ref(area, _sweep)
        self._store("faults", 0)
        self._store("start", start)
        self._store("end", end)

    def is_free(self) -> bool:
        return self.area is None or self.area() is None

    def _store(self, name: str, value: int) -> None:
        ctypes.c_uint64.from_address(self.address + abi.GUARDED.offsets[name]).value = value


class _Handler:
    """The handler: one image and its page. ``is_installed`` is False until that is known.

    ``is_covered``: somebody has installed another one over ours, and may bring ours back at any time, so the image stays for good.
    """

    __slots__ = ("image", "is_covered", "is_installed", "page")

    def __init__(self, image: Image) -> None:
        self.image = image
        self.is_installed = self.is_covered = False
        self.page = image.page
        machine = os.uname().machine
        for name, value in (
            ("first", _rows[-1].address if _rows else 0),
            ("syscall", system.address_of_libc("syscall")),
            ("mmap_number", system.MMAP_NUMBERS[machine]),
            ("page_bytes", system.PAGE_SIZE_BYTES),
            ("sigaction", system.address_of_libc("sigaction")),
        ):
            ctypes.c_uint64.from_address(self.page + abi.SIGBUS_OFFSETS[name]).value = value

    def install(self) -> None:
        """Install it, over whatever is there, unless it is; whatever cuts this short, the next range to be guarded finishes it.

        Raises:
            ResourceError: the system refused.
        """
        if not self._is_present():  # else its own action would become the old one
            self.is_covered = self.is_covered or self.is_installed
            ctypes.c_uint64.from_address(self.page + abi.SIGBUS_OFFSETS["foreign"]).value = 0
            action = ctypes.create_string_buffer(_ACTION_SIZE_BYTES)
            ctypes.c_uint64.from_buffer(action).value = self.image.exports["sigbus_handler"]
            ctypes.c_int32.from_buffer(action, _FLAGS_AT).value = _SA_SIGINFO | _SA_ONSTACK | _SA_RESTART
            system.install_action(_SIGBUS, ctypes.addressof(action), self._old)
            if not self.is_covered:
                ctypes.memmove(self._first, self._old, _ACTION_SIZE_BYTES)
        self.is_installed = True

    @property
    def _old(self) -> int:
        return self.page + abi.SIGBUS_OFFSETS["old_action"]

    @property
    def _first(self) -> int:
        return self.page + abi.SIGBUS_OFFSETS["first_action"]

    def _is_present(self) -> bool:
        now = ctypes.create_string_buffer(_ACTION_SIZE_BYTES)
        system.install_action(_SIGBUS, 0, ctypes.addressof(now))
        return bool(ctypes.c_uint64.from_buffer(now).value == self.image.exports["sigbus_handler"])

    def uninstall(self) -> bool:
        """Bring the old action back; return False if the image must stay."""
        try:
            if self._is_present():
                self.is_installed = (
                    False  # first: what an interrupt leaves here is not taken for somebody else's action
                )
                system.install_action(_SIGBUS, self._old, 0)
                ctypes.memmove(self._old, self._first, _ACTION_SIZE_BYTES)  # whoever is there now may call us last
            self.is_covered = self.is_covered or self.is_installed
        except ResourceError:
            return False
        return not self.is_covered


def guard(image: Image, area: Area, start: int, size_bytes: int) -> ctypes.c_uint64:
    """Guard [`start`, `start` + `size_bytes`) of `area` for as long as `area` lives; return the count of its faults.

    Raises:
        ResourceError: the system refused the handler, or memory for the list.
    """
    with _lock:
        row = next((row for row in _rows if row.is_free()), None) or _more_rows()
        if not _installed:
            _installed.append(_Handler(image))  # first: an installed handler must not lose its image
        _installed[0].install()
        row.guard(area, start, start + size_bytes)
        return ctypes.c_uint64.from_address(row.address + abi.GUARDED.offsets["faults"])


def keep_guard() -> None:
    """Install the handler again where somebody else's has come over it; something is guarded.

    Raises:
        ResourceError: the system refused.
    """
    with _lock:
        for handler in _installed:
            handler.install()


def _more_rows() -> _Row:
    """Extend the list at its front."""
    block = Block(_ROWS_PER_BLOCK * abi.GUARDED.size_bytes)
    _blocks.append(block)
    for index in range(_ROWS_PER_BLOCK):
        _rows.append(_Row(block.address + index * abi.GUARDED.size_bytes, _rows[-1].address if _rows else 0))
    for handler in _installed:
        ctypes.c_uint64.from_address(handler.page + abi.SIGBUS_OFFSETS["first"]).value = _rows[-1].address
    return _rows[-1]


def _sweep(_: object) -> None:
    """Uninstall the handler if nothing is guarded any more."""
    # Not where the lock is taken, maybe by this thread further up: whoever is in there guards something.
    if not _installed or _lock.locked():
        return
    with _lock:
        if _installed and all(row.is_free() for row in _rows) and _installed[0].uninstall():
            _installed.clear()
