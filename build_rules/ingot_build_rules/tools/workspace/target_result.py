"""What became of one bundle or test of a build.

In: nothing. Out: ``TargetResult``. Not done here: deciding it (``build_project``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_build_rules.engine.cache.unchanged import Stamp
from ingot_build_rules.engine.events.trace_file import TracedAction
from ingot_build_rules.making.stages.compilation import Compilation
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(slots=True)
class TargetResult:
    """``how``: built, passed (a test), unchanged, failed, skipped, would-build, or of a test
    would-run and would-pass (the cache knows that it passes); ``sources``: (path, digest) of all
    files that it was made from; ``stamp``: what the bundle looks like; ``placement``: how much of a
    bundle that was made runs where, nothing if all runs on the host; ``test``: the name of a test
    without its kind, "" for a bundle."""

    name: str
    status: str
    path: str
    root: str = ""
    size_bytes: int = 0
    error: BaseException | None = None
    sources: tuple[tuple[str, str], ...] = ()
    stamp: Stamp | None = None
    actions: tuple[TracedAction, ...] = ()
    compilation: Compilation | None = None
    toolchain: tuple[tuple[str, str], ...] = ()
    test: str = ""
    placement: Sequence[Mapping[str, object]] = ()

    @property
    def is_bundle_made(self) -> bool:
        """Whether this build asked for a bundle anew, whether or not its bytes are other ones."""
        return self.compilation is not None and self.is_good

    @property
    def is_good(self) -> bool:
        """Whether it is as it should be now."""
        return self.status in ("built", "passed", "unchanged")
