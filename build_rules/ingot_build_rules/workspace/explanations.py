"""Why things ran, in the user's words: files, tensors, nodes and attributes instead of digests alone.

In: reasons, the artifacts of both builds as far as the cache still has them. Out: lines of text. Not done here: finding reasons
(``engine.explain``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from ingot_build_rules.engine.differ import Difference, differences
from ingot_build_rules.engine.explain import Change, Reason
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.engine.trace_file import TracedAction
from ingot_build_rules.rules.import_model import Imported
from ingot_compiler.ir.graph import Names

_SHOWN_MAX = 4
_DIGITS = 12


class Explainer:
    """Explains over the cache of an open build; what the cache has no more is told by digests alone."""

    def __init__(self, build: Scheduler, names: Names | None, sources: tuple[str, ...]) -> None:
        """``names`` are those of the model as it is now; ``sources`` its files."""
        self._build = build
        self._names = names
        self._sources = sources

    def lines(self, reason: Reason) -> list[str]:
        """Return one line that says why an action ran, and behind it what is different."""
        item = reason.action
        head = f"{item.rule} ({item.label})" if item.label else item.rule
        if reason.kind == "new":
            return [f"{head}: nothing like it was built here before"]
        if reason.kind == "lost":
            return [f"{head}: the cache had no result for key {item.key[:_DIGITS]}"]
        return [
            line
            for change in reason.changes
            for line in (self._change(head, change, item), *self._inside(reason, change))
        ]

    def _change(self, head: str, change: Change, item: TracedAction) -> str:
        old, new = _value(change.old_text, change.old), _value(change.new_text, change.new)
        text = f"{head}: {change.name} changed {old} -> {new}"
        if change.name == "source" and item.rule == "import_model" and self._sources:
            return f"{text}, file {self._sources[0]}"
        return f"{text}, made by {change.maker}" if change.maker else text

    def _inside(self, reason: Reason, change: Change) -> Iterator[str]:
        for name, old, new in change.files:
            yield f"  file {name} {_short(old)} -> {_short(new)}"
        if change.name == "source" or change.name.startswith("read "):
            yield from self._import(reason)
        elif change.old_parts and len(change.old_parts) == len(change.new_parts):
            for old, new in islice(zip(change.old_parts, change.new_parts, strict=True), _SHOWN_MAX):
                yield from self._parts(old, new)

    def _parts(self, old: str, new: str) -> Iterator[str]:
        was, now = self._load(old), self._load(new)
        if was is None or now is None:
            return
        for item in islice(differences(was, now), _SHOWN_MAX):
            yield f"  {self._place(item, now)}: {_text(item.old)} -> {_text(item.new)}"

    def _import(self, reason: Reason) -> Iterator[str]:
        """What an import made of the old file and makes of the new one."""
        was, now = self._result(reason.before), self._result(reason.action)
        if not isinstance(was, Imported) or not isinstance(now, Imported):
            return
        found = list(self._imported(was, now))
        yield from found[:_SHOWN_MAX]
        if len(found) > _SHOWN_MAX:
            yield f"  and {len(found) - _SHOWN_MAX} more"
        if not found:
            yield "  nothing in it that decides a result (doc strings, metadata)"

    def _imported(self, was: Imported, now: Imported) -> Iterator[str]:
        old_names, new_names = self._load(was.names.digest), self._load(now.names.digest)
        old_model, new_model = self._load(was.model.digest), self._load(now.model.digest)
        if not isinstance(old_names, Names) or not isinstance(new_names, Names):
            return
        old = dict(zip(old_names.weights, was.weights, strict=False))
        new = dict(zip(new_names.weights, now.weights, strict=False))
        for name in sorted(old.keys() | new.keys()):
            before, after = old.get(name), new.get(name)
            if before != after:
                yield f"  tensor {name!r} {_digest_of(before)} -> {_digest_of(after)}"
        for item in differences(old_model, new_model):
            yield f"  {self._place(item, new_model)}: {_text(item.old)} -> {_text(item.new)}"
        for item in differences(old_names, new_names):
            yield f"  name {'.'.join(map(str, item.path))}: {_text(item.old)} -> {_text(item.new)}"

    def _place(self, item: Difference, value: Any) -> str:
        """A path into a stage, with the user's node in front where one is on the way."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in item.path)
        path = "".join(steps).lstrip(".")
        node = self._node(item.path, value)
        return f"{node}, {path}" if node else path

    def _node(self, path: tuple[str | int, ...], value: Any) -> str:
        if self._names is None or len(path) < 2 or path[0] not in ("nodes", "graph"):
            return ""
        if path[0] == "graph":
            return self._node(path[1:], getattr(value, "graph", None))
        index = path[1]
        nodes = getattr(value, "nodes", ())
        if not isinstance(index, int) or index >= len(nodes):
            return ""
        source = getattr(nodes[index], "source", (index,))
        known = [ordinal for ordinal in source if ordinal < len(self._names.nodes)]
        return f"node {self._names.describe(known)}" if known else ""

    def _load(self, digest: str) -> Any:
        try:
            return self._build.values.load(digest, raw=False)
        except Exception:  # noqa: BLE001  # an explanation never fails a build: the cache may have dropped anything
            return None

    def _result(self, item: TracedAction | None) -> object:
        if item is None or not item.where:
            return None
        record = self._build.cache.record(bytes.fromhex(item.where))
        try:
            return self._build.values.codec.decode(record.result, self._build.values) if record else None
        except ValueError:
            return None


def _value(text: str, digest: str) -> str:
    """A short value as people write it, or the beginning of its digest; a value that is a digest, as that."""
    return _short(text or digest) if not text or len(text) == 64 else text


def _short(digest: str) -> str:
    return digest[:_DIGITS] or "nothing"


def _digest_of(artifact: object) -> str:
    return _short(str(getattr(artifact, "digest", "")))


def _text(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
