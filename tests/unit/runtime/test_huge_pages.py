"""Weights lie in memory as they lie in the file: where huge pages begin, so that the page cache's
are mapped as ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.c_loader import CBundle
from tests.unit.cli.test_share import SIZE, share, write

import ingot_runtime
from ingot_runtime.format.file import TRAILER, TRAILER_MAGIC
from ingot_runtime.format.limits import ALIGNMENT_MAPPED_BYTES, MIB

HUGE_PAGE = 2 * MIB


def mapped(path: Path) -> Iterator[tuple[int, int]]:
    """Address and offset of each mapping of a file that may hold a huge page."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, offset, _, _, *name = line.split(maxsplit=5)
        first, last = (int(part, 16) for part in addresses.split("-"))
        if name == [str(path)] and rights == "r--s" and last - first >= HUGE_PAGE:
            yield first, int(offset, 16)


@pytest.mark.parametrize("loader", ["python", "c"])
def test_a_huge_page_may_be_mapped_as_one(tmp_path: Path, loader: str) -> None:
    """Wherever the weights begin in the file, whatever was mapped before; the larger part of what
    lies in another bundle."""
    base = write(tmp_path / "base.ingot", 0)
    paths = [base, share(base, write(tmp_path / "fine.ingot", 1))]
    for places in (1, 5, 13):
        start, data = places * ALIGNMENT_MAPPED_BYTES, base.read_bytes()
        paths.append(tmp_path / f"program{places}")
        trailer = TRAILER.pack(start, len(data), TRAILER_MAGIC)
        paths[-1].write_bytes(b"\x7fELF".ljust(start, b"\0") + data + trailer)
    with ExitStack() as stack:
        for path in paths:
            opened = CBundle(path) if loader == "c" else ingot_runtime.load(path)
            stack.callback(opened.close)
        found = [place for path in (base, *paths[2:]) for place in mapped(path)]
    assert len(found) > len(paths) - 1
    assert SIZE >= HUGE_PAGE
    assert {(address - offset) % HUGE_PAGE for address, offset in found} == {0}
