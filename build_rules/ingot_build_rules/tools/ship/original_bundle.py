"""A bundle in its original form: without what was added after it was compiled.

In: a path. Out: the path of the same bundle without signatures and selftests. Not done here:
comparing (``reproduce``).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_runtime.format import header as head


@contextmanager
def original_bundle(path: str) -> Generator[str]:
    """Yield the path itself where nothing was added, else that of a copy, which exists for the time
    of the block."""
    with opened(path) as source:
        later = (head.SIGNATURE, head.SELFTEST)
        added = frozenset(key for key in source.by_key if key[0] in later)
        if not added:
            yield path
            return
        with tempfile.TemporaryDirectory(prefix="ingot-") as folder:
            copy = os.path.join(folder, "original.ingot")
            rewrite_bundle(source, Changes(dropped=added), copy)
            yield copy
