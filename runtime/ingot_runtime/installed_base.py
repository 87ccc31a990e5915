"""The other bundle that an installed one has its weights in: it lies in the same folder.

In: an open bundle, a folder. Out: the other bundle there, under the name that it must have. Not
done here: when it comes and goes (``install``), what is shared (``format.shared``).

Where the folder or another installation has the same bytes, the file gets one more name instead of
a copy (a hard link): then the page cache has the weights once, and removing one of the names takes
nothing from the others.
"""

import os

from .errors import BundleError, InputError
from .files import Files
from .format import header as head
from .format.shared import Shared
from .format.source import Source, open_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CHUNK_SIZE_BYTES = 1 << 22


def base_of(path: str) -> str:
    """Return the name of the other bundle that the one at `path` has weights in; "" if it has all
    of them, or is no whole bundle."""
    try:
        source = open_file(path)
        try:
            own = source.by_key[head.WEIGHTS, 0].size_bytes
            return Shared(source.section(head.SHARED), own).name
        finally:
            source.close()
    except (BundleError, KeyError):
        return ""


def content(source: Source) -> "Iterator[bytes]":
    """Yield the bytes of a bundle that is open.

    Raises:
        ChangedError: the file was written to meanwhile.
    """
    for at in range(0, source.size_bytes, _CHUNK_SIZE_BYTES):
        yield source.read(at, _CHUNK_SIZE_BYTES)
    source.require_unchanged()


def near(folder: str, source: Source, name: str) -> "list[str]":
    """Return the paths in an installation's folder where the bundle may lie: under `name`, or as
    one that is installed."""
    digest = source.root_digest.hex()[:16]
    found = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, each) for each in found if each == name or digest in each]


class Base:
    """The other bundle, open and verified; ``name``: the one that it must have; ``near``: paths
    where the same bytes may lie already."""

    __slots__ = ("name", "near", "source")

    def __init__(self, source: Source, name: str, near: "Iterable[str]" = ()) -> None:
        self.source, self.name, self.near = source, name, tuple(near)

    def require_disk_space(self, folder: str) -> None:
        """Raise ``InputError`` if another bundle, or another file, has its name in `folder`. One
        with the same root digest and other bytes is damaged, and will be replaced."""
        path = os.path.join(folder, self.name)
        if os.path.lexists(path) and _digest_at(path) != self.source.root_digest:
            why = f"expected the bundle with root digest {self.source.root_digest.hex()}, in which weights lie"
            do = "install into a folder of its own, or `ingot share` with a bundle of another name"
            raise InputError(
                "another file has the name of the bundle with the weights", path, why, do
            )

    def place(self, folder: str, part: str, files: Files) -> None:
        """Give it its name in `folder`, unless it is there; it is made at `part`.

        Raises:
            OSError: the disk refused it.
        """
        path = os.path.join(folder, self.name)
        if self._lies_at(path):
            return
        if any(self._lies_at(each) and _linked(each, part, files) for each in self.near):
            files.sync(part)
        else:
            files.write_all(part, content(self.source))
        files.rename(part, path)

    def _lies_at(self, path: str) -> bool:
        try:
            found = open_file(path, self.source.root_digest.hex())
        except BundleError:
            return False
        try:
            return found.size_bytes == self.source.size_bytes and all(
                one == other
                for one, other in zip(content(found), content(self.source), strict=True)
            )
        except BundleError:
            return False
        finally:
            found.close()


def _digest_at(path: str) -> bytes:
    try:
        found = open_file(path)
    except BundleError:
        return b""
    found.close()
    return found.root_digest


def _linked(path: str, name: str, files: Files) -> bool:
    """Give a file one more name; False where the file system cannot, or is another one."""
    try:
        files.hard_link(path, name)
    except OSError:
        return False
    return True
