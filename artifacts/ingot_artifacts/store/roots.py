"""Named roots: what a collection keeps whatever its age.

In: a name, keys of records, digests of blobs. Out: the same, by name. Not done here: what a record
needs (``collect``).

One file per root in ``roots/``, named by the sha256 of its name; its content starts with the sha256
of the rest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from ingot_artifacts.errors import read_only_error
from ingot_artifacts.store.atomic import atomic_file
from ingot_artifacts.store.blob_file import is_digest
from ingot_artifacts.store.records import RecordError, unpack_map
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.lazy_dataclass import dataclass

_SEAL_BYTES = 32


@dataclass(frozen=True, slots=True)
class Root:
    """``keys``: of records, 32 bytes each; ``digests``: of blobs, 64 hex digits each; both
    sorted."""

    name: str
    keys: tuple[bytes, ...]
    digests: tuple[str, ...]


class Roots:
    """The roots of one cache."""

    def __init__(self, folder: str, read_only: bool = False) -> None:
        self._folder = folder
        self._read_only = read_only

    def add(self, name: str, keys: Iterable[bytes], digests: Iterable[str] = ()) -> None:
        """Keep records and blobs by a name, instead of what the name kept so far.

        Raises:
            OutputError: no space, no permission. ``StoreReadOnly`` in a cache that is only read.
        """
        root = Root(name, tuple(sorted(set(keys))), tuple(sorted(set(digests))))
        # A path need not be UTF-8: its bytes are kept then.
        shown = name if _is_utf8(name) else os.fsencode(name)
        body = pack({"digests": root.digests, "keys": root.keys, "name": shown})
        with atomic_file(self._path(name)) as file:
            file.write(hashlib.sha256(body).digest() + body)

    def remove(self, name: str) -> bool:
        """Forget a root; whether there was one.

        Raises:
            StoreReadOnly: the cache is only read.
        """
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            return False
        return True

    def forget_gone(self) -> None:
        """Forget the roots of files that are gone: a bundle that is not there keeps nothing."""
        for root in self.roots():
            if os.path.isabs(root.name) and not os.path.exists(root.name):
                self.remove(root.name)

    def roots(self) -> tuple[Root, ...]:
        """Return all roots, sorted by name; damaged ones are left out."""
        found = [_read(path) for path in self._files()]
        return tuple(
            sorted((root for root in found if root is not None), key=lambda root: root.name)
        )

    def damaged(self) -> tuple[str, ...]:
        """Return the paths of damaged roots, and of files that are none, sorted."""
        return tuple(path for path in self._files() if _read(path) is None)

    def _path(self, name: str) -> str:
        if self._read_only:
            raise read_only_error(self._folder)
        return os.path.join(self._folder, "roots", hashlib.sha256(os.fsencode(name)).hexdigest())

    def _files(self) -> list[str]:
        folder = os.path.join(self._folder, "roots")
        try:
            # A name that starts with a dot is being written.
            return [
                os.path.join(folder, name)
                for name in sorted(os.listdir(folder))
                if not name.startswith(".")
            ]
        except FileNotFoundError:
            return []


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read(path: str) -> Root | None:
    try:
        with open(path, "rb") as file:
            content = file.read()
        body = content[_SEAL_BYTES:]
        if hashlib.sha256(body).digest() != content[:_SEAL_BYTES]:
            return None
        plain = unpack_map(body)
        keys: list[bytes] = [key for key in plain["keys"] if isinstance(key, bytes)]
        digests: list[str] = [digest for digest in plain["digests"] if is_digest(digest)]
        name: object = plain["name"]
        text = os.fsdecode(name) if isinstance(name, bytes) else str(name)
        return Root(text, tuple(keys), tuple(digests))
    except (OSError, RecordError, KeyError, TypeError):
        return None
