"""A cache: one folder with blobs, the action index, leases and roots; other layers below it, which
are only read.

In: a folder, layers. Out: their parts. Not done here: what is cached (the engine), where the folder
is by default (the command), kinds of layers (``folder_layer``).

A folder that others can write to is refused (``ownership``), what is remembered in it is sealed
(``trust``).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from ingot_artifacts.errors import OutputError
from ingot_artifacts.store.blobs import BlobStore
from ingot_artifacts.store.folder_layer import FolderLayer
from ingot_artifacts.store.layer import Layer
from ingot_artifacts.store.layout import inner_folders, versioned
from ingot_artifacts.store.leases import Leases
from ingot_artifacts.store.ownership import check_ownership
from ingot_artifacts.store.roots import Roots
from ingot_artifacts.store.seal_names import note_seal
from ingot_artifacts.store.trust import ANYONE, Trust
from ingot_runtime.option_ref import OptionClause, OptionRef

if TYPE_CHECKING:
    from ingot_artifacts.store.index.index import ActionIndex

_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of Ingot: it can be deleted, and backups may leave it out "
    "(https://bford.info/cachedir/).\n"
)


class Cache:
    """The parts of a cache; several processes may use one folder at once.

    Raises:
        CacheAuthorityError: it is not the user's alone, and ``trust`` does not say that it is
            shared; or a link is in it.
        OutputError: the folder cannot be made or written, and ``read_only`` is not asked for.
    """

    def __init__(
        self,
        folder: str,
        lower: Sequence[Layer] = (),
        read_only: bool = False,
        trust: Trust = ANYONE,
    ) -> None:
        self.path = os.path.abspath(folder)
        self.folder = versioned(self.path)
        self.read_only = read_only
        self.trust = trust
        check_ownership(self.path, inner_folders(self.folder), shared=trust.shared)
        if not read_only:
            _make_folders(self.path, self.folder)
            note_seal(self.folder, trust)
        own: Layer = FolderLayer(self.folder, read_only=read_only)
        self.layers = (own, *lower)
        self.blobs = BlobStore([layer.blobs for layer in self.layers])
        self.leases = Leases(self.folder, read_only)
        self.roots = Roots(self.folder, read_only)

    @cached_property
    def index(self) -> ActionIndex:
        """The action index; opened when it is first asked for, since diskcache costs 20 ms."""
        from ingot_artifacts.store.index.index import ActionIndex

        return ActionIndex([layer.index for layer in self.layers], self.trust)

    @property
    def temporary(self) -> str:
        """The folder for files of the moment: the next collection deletes what is left there."""
        return os.path.join(self.folder, "tmp")

    def building(
        self, waiting: Callable[[int], None] | None = None
    ) -> AbstractContextManager[None]:
        """Keep what is in the cache from being collected meanwhile; see ``Leases.building``."""
        return self.leases.building(waiting)

    def close(self) -> None:
        """Close the index of all layers, give the leases back."""
        if "index" in self.__dict__:
            self.index.close()
        self.leases.close()


def _make_folders(path: str, folder: str) -> None:
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        with (
            suppress(FileExistsError),
            open(os.path.join(path, "CACHEDIR.TAG"), "x", encoding="ascii") as file,
        ):
            file.write(_TAG)
        for inner in inner_folders(folder):
            os.makedirs(inner, 0o700, exist_ok=True)
            if not os.access(inner, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), inner)
    except OSError as error:
        where = str(error.filename or path)
        do = (
            "name another folder for the cache (",
            OptionRef("cache", "DIR"),
            ")",
            OptionClause(OptionRef("read-only"), ", or use this one for reading alone ({})"),
        )
        raise OutputError(
            "cannot use the cache", where, error.strerror or str(error), do
        ) from error
