"""A layer that is a folder: of this cache, which is written, or of another one, which is only read.

In: a folder. Out: ``FolderLayer``; its blobs again in another process. Not done here: making
folders (``cache``), other kinds of layers (``layers``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ingot_artifacts.store.folder_blobs import FolderBlobs
from ingot_artifacts.store.layout import inner_folders, versioned
from ingot_artifacts.store.ownership import check_ownership
from ingot_artifacts.store.trust import ANYONE, Trust

if TYPE_CHECKING:
    from ingot_artifacts.store.index.index_layer import IndexLayer

_WRITTEN, _READ = "written", "read"


class FolderLayer:
    """``folder`` is the one inside the cache's that has the version of the layout as its name.
    Implements ``Layer``."""

    def __init__(self, folder: str, *, read_only: bool = False) -> None:
        self._folder = folder
        self._read_only = read_only
        self._index: IndexLayer | None = None
        self.blobs = FolderBlobs(folder, read_only=read_only)

    @property
    def index(self) -> IndexLayer:
        """The index; diskcache costs 20 ms, paid by who asks for it."""
        from ingot_artifacts.store.index.index_database import IndexDatabase
        from ingot_artifacts.store.index.index_reader import IndexReader

        if self._index is None:
            self._index = (
                IndexReader(self._folder) if self._read_only else IndexDatabase(self._folder)
            )
        return self._index

    @property
    def address(self) -> str:
        """What kind of layer it is, and where."""
        return f"folder:{_READ if self._read_only else _WRITTEN}:{self._folder}"

    @property
    def folders(self) -> tuple[str, ...]:
        """The one folder."""
        return (self._folder,)


def open_layer(folder: str, trust: Trust = ANYONE) -> FolderLayer:
    """Open a cache's folder as a layer that is only read.

    Raises:
        CacheAuthorityError: it is not the user's alone, and ``trust`` does not say that it is
            shared; or a link is in it.
    """
    path = os.path.abspath(folder)
    check_ownership(path, inner_folders(versioned(path)), shared=trust.shared)
    return FolderLayer(versioned(path), read_only=True)


def open_blobs(where: str) -> FolderBlobs:
    """Open the blobs of a folder: ``where`` is what follows the kind in ``address``.

    Raises:
        ValueError: not an address.
    """
    access, _, folder = where.partition(":")
    if access not in (_WRITTEN, _READ):
        raise ValueError(f"no folder of a cache has the address {where!r}")
    return FolderBlobs(folder, read_only=access == _READ)
