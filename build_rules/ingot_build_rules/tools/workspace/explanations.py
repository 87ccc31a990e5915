"""Why things ran, in the user's words: files, tensors, nodes and attributes instead of digests
alone.

In: reasons, the artifacts of both builds as far as the cache still has them. Out: lines of text.
Not done here: finding reasons (``engine.events.explain``), what an import made of a model
(``import_differences``).

What is different is told where it came in: of the model by its import; of the artifacts of a rule
whose code, tools or options are other ones by who reads them. All that follows from these is told
by digests and producers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ingot_build_rules.engine.events.differ import differences
from ingot_build_rules.engine.events.explain import Change, Reason, name_of
from ingot_build_rules.engine.events.trace_file import TracedAction
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.rules.import_model import IMPORT_MODEL, Imported
from ingot_build_rules.making.rules.infer_types import INFER_TYPES
from ingot_build_rules.tools.workspace.difference_text import difference_text, short, short_texts
from ingot_build_rules.tools.workspace.import_differences import import_differences
from ingot_compiler.ir.graph import Names

_SHOWN_MAX = 4
_IMPORT_SHOWN_MAX = 8
_MADE_BY = {
    ("plan_memory", "steps"): "lower",
    ("codegen_main", "steps"): "lower",
    ("codegen_main", "symbols"): "codegen",
    ("codegen_main", "kernel_indices"): "codegen",
    ("codegen_main", "constant_offsets"): "fuse",
    ("codegen_main", "weights_bytes"): "fuse",
    ("codegen_main", "inputs"): "fuse",
    ("codegen_main", "outputs"): "fuse",
    ("names", "inputs"): "fuse",
    ("names", "outputs"): "fuse",
    ("bundle", "interface"): "names",
    ("bundle", "ranges"): "fuse",
    ("bundle", "weights_bytes"): "fuse",
    ("digest_weights", "weights_bytes"): "fuse",
    ("bundle", "weights"): "import_model",
    ("bundle", "sizes"): "import_model",
    ("fuse", "sizes"): "import_model",
    ("optimize", "sizes"): "import_model",
    ("run_test", "bundle"): "bundle",
}
"""(rule, ingredient) -> the rule that made it, for those that are no artifacts."""
_ASKED_FOR = frozenset(
    (
        "target", "planner", "precision", "optimize", "methods", "options", "shapes", "place", "devices", "device_count",
        "relative_tolerance", "absolute_tolerance", "threads", "executor",
    )
)  # fmt: skip
"""Ingredients that ``ingot.toml`` and the command line decide."""
_OF_MACHINE = frozenset(("variant", "features"))
"""Ingredients that the machine decides which runs a test."""


class Explainer:
    """Explains over the cache of an open build; what the cache has no more is told by digests
    alone."""

    def __init__(
        self,
        build: Scheduler,
        names: Names | None,
        files: Mapping[str, str],
        reasons: Sequence[Reason],
    ) -> None:
        """``names`` are those of the model as it is now; ``files``: the file behind ingredients."""
        self._build = build
        self._names = names
        self._files = files
        self._worth_telling = {
            ref for reason in reasons if _is_origin(reason) for ref in reason.action.refs
        }

    def lines(self, reason: Reason) -> list[str]:
        """Return lines that say why an action ran, each with what is different behind it."""
        head = name_of(reason.action)
        if reason.kind == "lost":
            return [f"{head}: the cache had no result for key {short(reason.action.key)}"]
        head = f"{head} is new" if reason.kind == "new" else head
        return [
            line
            for change in reason.changes
            for line in (
                f"{head}: {self._change(reason.action, change)}",
                *self._inside(reason, change),
            )
        ]

    def _change(self, item: TracedAction, change: Change) -> str:
        """One ingredient: its name, what it was, what it is, where that comes from."""
        digests = short(change.old), short(change.new)
        old, new = short_texts(change.old_text, change.new_text) or digests
        maker = change.maker or _MADE_BY.get((item.rule, change.name), "")
        name = change.name
        if name.startswith("read "):
            name, maker = self._read(item, name.removeprefix("read "))
        text = f"{name} {'changed ' if change.old else ''}{old} -> {new}"
        if maker:
            return f"{text}, made by {maker}"
        if change.name in self._files:
            return f"{text}, file {self._files[change.name]}"
        if change.name in _OF_MACHINE:
            return f"{text}, the code that this machine can run"
        return f"{text}, asked for by the project" if change.name in _ASKED_FOR else text

    def _read(self, item: TracedAction, name: str) -> tuple[str, str]:
        """What an action found while running: a file beside the model, or a constant by its
        number."""
        if item.rule == IMPORT_MODEL.name:
            return f"file {os.path.join(os.path.dirname(self._files['source']), name)}", ""
        weights = self._names.weights if self._names else ()
        if item.rule == INFER_TYPES.name and name.isdecimal() and int(name) < len(weights):
            return f"tensor {weights[int(name)]!r}", IMPORT_MODEL.name
        return name, ""

    def _inside(self, reason: Reason, change: Change) -> Iterator[str]:
        for name, old, new in change.files:
            yield f"  file {name} {short(old)} -> {short(new)}"
        if reason.action.rule == IMPORT_MODEL.name:
            yield from self._import(reason) if change is reason.changes[-1] else ()
        elif change.old_parts and len(change.old_parts) == len(change.new_parts):
            parts = zip(change.old_parts, change.new_parts, strict=True)
            for old, new in islice(parts, _SHOWN_MAX):
                yield from self._parts(old, new)

    def _parts(self, old: str, new: str) -> Iterator[str]:
        """What is different inside an artifact, told to the first who reads it."""
        if new not in self._worth_telling:
            return
        self._worth_telling.remove(new)
        was, now = self._load(old), self._load(new)
        if was is None or now is None:
            return
        for item in islice(differences(was, now), _SHOWN_MAX):
            node = self._node(item.path, now)
            yield f"  {f'{node}, ' if node else ''}{difference_text(item, now)}"

    def _import(self, reason: Reason) -> Iterator[str]:
        """What an import made of the old file and makes of the new one."""
        was, now = self._result(reason.before), self._result(reason.action)
        if not isinstance(was, Imported) or not isinstance(now, Imported):
            return
        stages = [self._load(item.digest) for item in (was.names, now.names, was.model, now.model)]
        if None in stages:
            return
        found = list(import_differences(was, now, *stages))
        yield from (f"  {line}" for line in found[:_IMPORT_SHOWN_MAX])
        if len(found) > _IMPORT_SHOWN_MAX:
            yield f"  and {len(found) - _IMPORT_SHOWN_MAX} more"
        if not found and any(change.name == "source" for change in reason.changes):
            yield "  nothing in it that decides a result (doc strings, metadata)"

    def _node(self, path: tuple[str | int, ...], value: Any) -> str:
        """The user's name of the node that a path leads through."""
        if self._names is None or len(path) < 2 or path[0] not in ("nodes", "graph"):
            return ""
        if path[0] == "graph":
            return self._node(path[1:], getattr(value, "graph", None))
        index, nodes = path[1], getattr(value, "nodes", ())
        if not isinstance(index, int) or index >= len(nodes):
            return ""
        source = getattr(nodes[index], "source", (index,))
        known = [ordinal for ordinal in source if ordinal < len(self._names.nodes)]
        return f"node {self._names.describe(known)}" if known else ""

    def _load(self, digest: str) -> Any:
        try:
            return self._build.values.load(digest, raw=False)
        except Exception:  # noqa: BLE001
            # An explanation never fails a build: the cache may have dropped anything.
            return None

    def _result(self, item: TracedAction | None) -> object:
        if item is None or not item.where:
            return None
        record = self._build.cache.record(bytes.fromhex(item.where))
        if record is None:
            return None
        values = self._build.values
        try:
            return values.codec.decode(record.result, values)
        except ValueError:
            return None


def _is_origin(reason: Reason) -> bool:
    """Whether an action ran for more than what others made for it; an import tells of the model
    itself."""
    rule = reason.action.rule
    return rule != IMPORT_MODEL.name and any(
        not change.maker
        and (rule, change.name) not in _MADE_BY
        and not change.name.startswith("read ")
        for change in reason.changes
    )
