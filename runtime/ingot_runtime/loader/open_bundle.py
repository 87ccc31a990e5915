"""A bundle opened as the user asks, beside what it shares weights with.

In: what ``load`` was given. Out: a ``Source``. Not done here: its plan (``format.source``).
"""

from ..errors import InputError
from ..format.source import IN_MEMORY, Source, checked_digest, open_file
from . import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from ..format.source import Bundle

    Keys = Sequence[str | bytes | os.PathLike[str]] | str | os.PathLike[str] | None


def open_bundle(bundle: "Bundle", digest: "str | None", keys: "Keys") -> Source:
    """Return the source, which one of `keys` has signed, where any are given."""
    if isinstance(bundle, IN_MEMORY):
        source = Source(system.sealed_file(bundle), "bundle in memory", checked_digest(digest))
    else:
        source = open_file(bundle, digest)
    if keys is not None:
        from .signatures import require_signed

        require_signed(source, keys)
    return source


def open_base(source: Source, bundle: "Bundle") -> None:
    """Open what `source`, whose plan was read, shares weights with, if it does."""
    if source.shared is None:
        return
    if isinstance(bundle, IN_MEMORY):
        why, do = "the bundle that has the rest is looked for beside it", "give its path"
        raise InputError("weights are shared with another bundle", source.name, why, do)
    from ..format.base import open_base

    open_base(source)
