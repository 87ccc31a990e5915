"""The visible list of kinds of layers, and a layer by its address.

In: "KIND:WHERE", or the path of a folder. Out: ``Layer``; blobs of layers in another process. Not
done here: any kind of layer (a module each, imported when it is asked for).

The module of a kind has ``open_layer(where, trust)``, which opens a layer that is only read, and
``open_blobs(where)`` for what follows the kind in an ``address`` of its layers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

from ingot_artifacts.store.blobs import BlobLayer, BlobStore
from ingot_artifacts.store.layer import Layer
from ingot_artifacts.store.trust import ANYONE, Trust

FILES = {"folder": "folder_layer"}
"""Kind -> its module."""


def open_layer(address: str, trust: Trust = ANYONE) -> Layer:
    """Open a layer that is only read.

    Raises:
        CacheAuthorityError: others decide what is in it, and ``trust`` does not say that it is
            shared.
    """
    kind, where = _parts(address)
    return cast("Layer", _module(kind).open_layer(where, trust))


def whole_address(text: str) -> str:
    """Return an address that means the same in every folder."""
    kind, where = _parts(text)
    return os.path.abspath(where) if kind == "folder" else text


def open_blobs(addresses: Sequence[str]) -> BlobStore:
    """Open the blobs of a cache's layers by their addresses, in another process than the one that
    has the cache.

    Raises:
        ValueError: not an address.
    """
    return BlobStore([_blobs(address) for address in addresses])


def _blobs(address: str) -> BlobLayer:
    kind, _, where = address.partition(":")
    if kind not in FILES:
        raise ValueError(f"no layer of a cache has the address {address!r}")
    return cast("BlobLayer", _module(kind).open_blobs(where))


def _parts(address: str) -> tuple[str, str]:
    """Kind and place; what begins with no kind is a folder."""
    kind, colon, where = address.partition(":")
    return (kind, where) if colon and kind in FILES else ("folder", address)


def _module(kind: str) -> Any:
    return import_module(f"ingot_artifacts.store.{FILES[kind]}")
