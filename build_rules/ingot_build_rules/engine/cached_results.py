"""Results of actions in the cache: found before an action runs, kept when it has run.

In: actions, outcomes. Out: records, and where they are. Not done here: what the cache is made of
(``cache.action_cache``), what is made again where something is lost (``scheduler``).
"""

from __future__ import annotations

from functools import partial

from ingot_artifacts.store.blobs import BlobDamaged, BlobMissing
from ingot_build_rules.engine.actions.action import Action
from ingot_build_rules.engine.actions.checked_result import checked_result
from ingot_build_rules.engine.actions.errors import HitDiffersError
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.actions.record import Record
from ingot_build_rules.engine.actions.rule import FileDigests
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.cache.action_cache import ActionCache, Resolve
from ingot_build_rules.engine.cache.file_digests import WatchedFiles
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CachedResults:
    """What one build finds in its cache and keeps there; ``files``: what actions have noted."""

    cache: ActionCache
    values: Values
    files: FileDigests

    def find(self, action: Action) -> tuple[bytes, Record] | None:
        """Return the record of an action and where it is, if there is one."""
        try:
            return self.cache.find(action.key, _resolver(action, self.files))
        except (BlobMissing, BlobDamaged):
            # What the action noted is resolved by an artifact that is lost.
            return None
        except (ValueError, LookupError, TypeError):  # no run of this rule has noted such a name
            self.cache.forget(action.key.digest)
            return None

    def keep(self, action: Action, outcome: Outcome) -> object:
        """Keep what came of an action and note in it what its record says; return the result.

        Raises:
            BlobMissing, BlobDamaged: an artifact that the action noted, or that its result names,
            is lost. ActionError: no result. HitDiffersError: another one than is ``expected``. An
            error of the disk.
        """
        result = checked_result(action.rule.name, outcome, self.values)
        if action.expected is not None and action.expected.result != outcome.result:
            self.cache.forget(action.where)
            raise _differs(action)
        files = WatchedFiles(self.files)
        resolve = _resolver(action, files)
        reads = tuple((name, resolve(name)) for name in outcome.reads) if resolve else None
        # What changed while the action ran is not what it has read: the result may not be found by
        # what it is now.
        lasting = all(files.is_steady(path, action.started) for path in files.paths)
        action.where, record = self.cache.keep(
            action.key, action.rule.name, outcome, reads, lasting=lasting
        )
        action.refs, action.reads = record.refs, record.reads
        action.result_bytes = len(outcome.result) + sum(map(self._size_bytes, record.refs))
        return result

    def _size_bytes(self, digest: str) -> int:
        return self.values.blobs.size_bytes(digest) or 0


def _resolver(action: Action, files: FileDigests) -> Resolve | None:
    resolve = action.rule.resolve
    return None if resolve is None else partial(resolve, files, action.inputs)


def _differs(action: Action) -> HitDiffersError:
    return HitDiffersError(
        f"{action.rule.name} gave another result than the cache had",
        action.label,
        f"key {action.key.digest.hex()[:16]}",
        "the cache has forgotten it; if it happens again, a rule depends on more than its key: "
        "report it",
    )
