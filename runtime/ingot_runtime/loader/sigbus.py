"""Survive a file that shrinks while it is mapped: a native handler puts zero pages where the file ended.

In: an image (its handler and the page behind it) and address ranges. Out: the handler is installed while any range is
guarded. Not done here: telling the user (``fstat`` after each run does).
One image's handler serves the whole process, so sessions may end in any order; that image stays mapped until the
last range is gone.
"""

import ctypes
import os
from _thread import allocate_lock

from ..format import abi
from . import system
from .image import Image

_SIGBUS = 7
_SA_SIGINFO, _SA_ONSTACK, _SA_RESTART = 4, 0x08000000, 0x10000000
# libc's struct sigaction: handler, 128 bytes of mask, flags, restorer.
_ACTION_SIZE_BYTES = 152
_FLAGS_AT = 136

_lock = allocate_lock()
_active: "list[_Guard]" = []


class _Guard:
    """The installed handler: one image, its page, its ranges."""

    __slots__ = ("image", "page", "ranges")

    def __init__(self, image: Image) -> None:
        self.image = image
        self.page = image.base + system.round_up(image.size_bytes)
        self.ranges: dict[int, tuple[int, int]] = {}
        offsets = abi.SIGBUS_OFFSETS
        machine = os.uname().machine
        for name, value in (
            ("syscall", system.address_of_libc("syscall")),
            ("mmap_number", system.MMAP_NUMBERS[machine]),
            ("page_bytes", system.PAGE_SIZE_BYTES),
            ("sigaction", system.address_of_libc("sigaction")),
        ):
            self._store(offsets[name], value)
        action = ctypes.create_string_buffer(_ACTION_SIZE_BYTES)
        ctypes.c_uint64.from_buffer(action).value = image.exports["sigbus_handler"]
        ctypes.c_int32.from_buffer(action, _FLAGS_AT).value = _SA_SIGINFO | _SA_ONSTACK | _SA_RESTART
        system.install_action(_SIGBUS, ctypes.addressof(action), self.page + offsets["old_action"])

    def _store(self, offset: int, value: int) -> None:
        ctypes.c_uint64.from_address(self.page + offset).value = value

    def add(self, start: int, end: int) -> int:
        """Guard a range; return its slot, or -1 when the page is full."""
        slot = next((slot for slot in range(abi.SIGBUS_RANGES_MAX) if slot not in self.ranges), -1)
        if slot >= 0:
            self.ranges[slot] = (start, end)
            at = abi.SIGBUS_OFFSETS["ranges"] + 16 * slot
            # The handler may run at any time in another thread: an empty range first, then its end.
            self._store(at, start)
            self._store(at + 8, end)
            self._store(abi.SIGBUS_OFFSETS["count"], max(self.ranges) + 1)
        return slot

    def remove(self, slot: int) -> None:
        """Guard the range of `slot` no longer."""
        del self.ranges[slot]
        at = abi.SIGBUS_OFFSETS["ranges"] + 16 * slot
        self._store(at + 8, 0)
        self._store(at, 0)

    def uninstall(self) -> bool:
        """Bring the old action back; return False if somebody else has installed another one over ours."""
        now = ctypes.create_string_buffer(_ACTION_SIZE_BYTES)
        system.install_action(_SIGBUS, 0, ctypes.addressof(now))
        if ctypes.c_uint64.from_buffer(now).value != self.image.exports["sigbus_handler"]:
            return False
        system.install_action(_SIGBUS, self.page + abi.SIGBUS_OFFSETS["old_action"], 0)
        return True


def guard(image: Image, start: int, size_bytes: int) -> "tuple[object, int]":
    """Guard [`start`, `start` + `size_bytes`); return what `release` takes. The image must stay mapped until then."""
    with _lock:
        if not _active:
            _active.append(_Guard(image))
        return _active[0], _active[0].add(start, start + size_bytes)


def release(ticket: "tuple[object, int]", image: Image) -> None:
    """End what `guard` began, and unmap `image` as soon as the handler does not need it."""
    with _lock:
        active, slot = ticket
        assert isinstance(active, _Guard)
        if slot >= 0:
            active.remove(slot)
        if image is not active.image:
            image.unmap()
        if not active.ranges and active in _active and active.uninstall():
            _active.remove(active)
            active.image.unmap()
