"""Survive a file that shrinks, or cannot be read, while it is mapped: a native handler puts zeros.

In: an image (its handler and the page behind it), an area and a range in it. Out: where its faults
are counted. Not done here: telling the user. One image's handler serves the whole process while any
range is guarded, and that image stays mapped.
"""

import ctypes
import os
import struct
import weakref

from ..errors import ResourceError
from ..format import abi
from . import system
from .area import Area
from .block import Block
from .image import Image
from .ticket_queue import TicketQueue

_SIGBUS = 7
_ACTION_FLAGS = 4 | 0x08000000 | 0x10000000  # SA_SIGINFO, SA_ONSTACK, SA_RESTART
# libc's struct sigaction: handler, 128 bytes of mask, flags, restorer.
_ACTION_SIZE_BYTES = 152
_FLAGS_AT = 136
_ROW_COUNT = 1024
# void *memset(p, byte, n); libc does not look at the fourth argument, the dead weak reference.
_MEMSET = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.py_object
)(system.address_of_libc("memset"))

_installed: "dict[int, _Handler]" = {}
_tables: "dict[int, _Table]" = {}
_tickets = TicketQueue()


class _Table:
    """The rows that the handler walks over, linked for ever: any thread may be reading them.

    ``free``: addresses of rows; ``taken``: address -> the references that end it with its area.
    """

    __slots__ = ("_memory", "first", "free", "taken")

    def __init__(self) -> None:
        size = abi.GUARDED.size_bytes
        self._memory = Block(_ROW_COUNT * size)
        self.first = self._memory.address
        places = range(self.first, self.first + _ROW_COUNT * size, size)
        behind = [*places[1:], 0]
        words = [word for place in behind for word in (0, 0, 0, place)]  # start, end, faults, next
        data = struct.pack(f"<{len(words)}Q", *words)
        ctypes.memmove(self.first, data, len(data))
        self.free: dict[int, object | None] = dict.fromkeys(reversed(places))
        self.taken: dict[int, tuple[weakref.ref[Area], ...]] = {}

    def guard(self, area: Area, start: int, end: int) -> ctypes.c_uint64:
        """Fill a free row, or raise ``ResourceError``; return the count of its faults."""
        if not self.free:
            why = f"at most {_ROW_COUNT} files at once"
            do = "close some: sessions of one file share a row"
            raise ResourceError("too many bundles are mapped", "SIGBUS guard", why, do)
        row, _ = self.free.popitem()
        end_at = row + abi.GUARDED.offsets["end"]
        # When the area dies, the last of these comes first, and all before it is unmapped: libc
        # empties the range, whose addresses may be somebody else's then; the row is free; the
        # handler goes, if it guards nothing. Not a `__del__`: the collector calls those while other
        # garbage can still use what is mapped.
        self.taken[row] = (
            weakref.ref(area, _sweep),
            weakref.ref(area, system.callback(self.free.setdefault, row)),
            weakref.ref(area, system.callback(_MEMSET, end_at, 0, 8)),
        )
        for name, value in (("faults", 0), ("start", start), ("end", end)):
            ctypes.c_uint64.from_address(row + abi.GUARDED.offsets[name]).value = value
        return ctypes.c_uint64.from_address(row + abi.GUARDED.offsets["faults"])

    def is_empty(self) -> bool:
        """Whether nothing is guarded."""
        return all(references[0]() is None for references in list(self.taken.values()))


class _Handler:
    """The handler: one image and its page. ``is_installed`` is False until that is known.

    ``is_covered``: somebody has put another one over ours, and may bring ours back, so the image
    stays for good.
    """

    __slots__ = ("image", "is_covered", "is_installed", "page")

    def __init__(self, image: Image) -> None:
        self.image = image
        self.is_installed = self.is_covered = False
        self.page = image.page
        machine = os.uname().machine
        for name, value in (
            ("first", _tables[0].first),
            ("syscall", system.address_of_libc("syscall")),
            ("mmap_number", system.MMAP_NUMBERS[machine]),
            ("page_bytes", system.PAGE_SIZE_BYTES),
            ("sigaction", system.address_of_libc("sigaction")),
        ):
            ctypes.c_uint64.from_address(self.page + abi.SIGBUS_OFFSETS[name]).value = value

    def install(self) -> None:
        """Install it over whatever is there; what cuts this short, the next guarded range finishes.

        Raises:
            ResourceError: the system refused.
        """
        now = _present_action()
        if not self._is_ours(now):  # else our own action would become the old one
            self.is_covered = self.is_covered or self.is_installed
            ctypes.c_uint64.from_address(self.page + abi.SIGBUS_OFFSETS["foreign"]).value = 0
            ctypes.memmove(self._old, now, _ACTION_SIZE_BYTES)
            if not self.is_covered:
                ctypes.memmove(self._first, now, _ACTION_SIZE_BYTES)
            action = ctypes.create_string_buffer(_ACTION_SIZE_BYTES)
            ctypes.c_uint64.from_buffer(action).value = self.image.exports["sigbus_handler"]
            ctypes.c_int32.from_buffer(action, _FLAGS_AT).value = _ACTION_FLAGS
            system.install_action(_SIGBUS, ctypes.addressof(action), 0)
        self.is_installed = True

    @property
    def _old(self) -> int:
        return self.page + abi.SIGBUS_OFFSETS["old_action"]

    @property
    def _first(self) -> int:
        return self.page + abi.SIGBUS_OFFSETS["first_action"]

    def _is_ours(self, action: "ctypes.Array[ctypes.c_char]") -> bool:
        handler = ctypes.c_uint64.from_buffer(action).value
        return bool(handler == self.image.exports["sigbus_handler"])

    def uninstall(self) -> bool:
        """Bring the old action back; return False if the image must stay."""
        try:
            if self._is_ours(_present_action()):
                # First: what an interrupt leaves here is not taken for somebody else's action.
                self.is_installed = False
                system.install_action(_SIGBUS, self._old, 0)
                # Whoever is there now may call us last.
                ctypes.memmove(self._old, self._first, _ACTION_SIZE_BYTES)
            self.is_covered = self.is_covered or self.is_installed
        except ResourceError:
            return False
        return not self.is_covered


def _present_action() -> "ctypes.Array[ctypes.c_char]":
    now = ctypes.create_string_buffer(_ACTION_SIZE_BYTES)
    system.install_action(_SIGBUS, 0, ctypes.addressof(now))
    return now


def guard(image: Image, area: Area, start: int, size_bytes: int) -> ctypes.c_uint64:
    """Guard [`start`, `start` + `size_bytes`) of `area` for as long as `area` lives; return the
    count of its faults.

    The row comes before the handler: who takes the handler away looks for rows.

    Raises:
        ResourceError: the system refused the handler, or the table is full.
    """
    table = _tables.get(0) or _tables.setdefault(0, _Table())
    faults = table.guard(area, start, start + size_bytes)
    ticket = _tickets.take()
    try:
        handler = _installed.get(0) or _installed.setdefault(0, _Handler(image))
        handler.install()
    finally:
        ticket.end()
    return faults


def keep_guard() -> None:
    """Install the handler again where somebody else's has come over it; something is guarded."""
    ticket = _tickets.take()
    try:
        for handler in list(_installed.values()):
            handler.install()
    finally:
        ticket.end()


def _sweep(_: object) -> None:
    """Uninstall the handler if nothing is guarded any more."""
    ticket = _tickets.take()
    try:
        handler = _installed.get(0)
        if handler is not None and _tables[0].is_empty() and handler.uninstall():
            _installed.pop(0, None)
    finally:
        ticket.end()
