"""A layer of a cache: a place that blobs and records lie in. A cache is a list of layers, of which
the first is written to.

In: nothing. Out: ``Layer``. Not done here: any kind of layer (``folder_layer``), leases and roots,
which are of one folder (``cache``).
"""

from __future__ import annotations

from typing import Protocol

from ingot_artifacts.store.blobs import BlobLayer
from ingot_artifacts.store.index.index_layer import IndexLayer


class Layer(Protocol):
    """Blobs, and an index of records that name them."""

    @property
    def blobs(self) -> BlobLayer:
        """The layer's blobs."""
        ...

    @property
    def index(self) -> IndexLayer:
        """The layer's part of the action index; opened when it is first asked for."""
        ...

    @property
    def address(self) -> str:
        """What another process of this machine opens the layer's blobs by (``open_blobs``); empty
        where none can."""
        ...

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders of this machine that the layer reads its files in, for whoever watches what a
        program reads."""
        ...
