"""Which bundles a cache can make again, by their root digests.

In: a cache, the first digits of a root digest. Out: bundles, and what made them. Not done here:
records and blobs by their own digests (``ingot_artifacts.store.lookup``).
"""

from __future__ import annotations

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.survey import take_survey
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.cache.action_cache import ActionCache
from ingot_build_rules.making.rules.bundle import BUNDLE, BundleParts
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CachedBundle:
    """``keys``: of the records that made it; ``roots``: names of those that keep one of them."""

    digest: str
    size_bytes: int
    keys: tuple[str, ...]
    roots: tuple[str, ...]


def bundles_in_cache(cache: Cache, prefix: str) -> tuple[CachedBundle, ...]:
    """Return the bundles whose root digest starts with ``prefix`` (hex digits), sorted."""
    survey = take_survey(cache)
    actions = ActionCache(cache.index, cache.blobs)
    values = Values(cache.blobs, Codec(RULEBOOK.types))
    found: dict[tuple[str, int], list[bytes]] = {}
    for entry in survey.records:
        if entry.key is None or entry.facts is None or entry.facts.rule != BUNDLE.name:
            continue
        parts = _parts(actions, values, entry.key)
        if parts is not None and parts.root.startswith(prefix):
            found.setdefault((parts.root, parts.size_bytes), []).append(entry.key)
    return tuple(
        CachedBundle(
            root,
            size_bytes,
            tuple(key.hex() for key in keys),
            tuple(kept.root.name for kept in survey.roots if not kept.keys.isdisjoint(keys)),
        )
        for (root, size_bytes), keys in sorted(found.items())
    )


def _parts(actions: ActionCache, values: Values, key: bytes) -> BundleParts | None:
    """The result of a record; None where it is of another version, or has lost a part."""
    record = actions.record(key)
    try:
        result = values.codec.decode(record.result, values) if record else None
    except ValueError:
        return None
    return result if isinstance(result, BundleParts) else None
