"""Keeps what each bundle was made from, each test run on, and says why what ran did.

In: results of a build. Out: lines of explanation; traces in the workspace's folder. Not done here:
reasons (``engine.events.explain``), words (``explanations``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_build_rules.engine.events.explain import Files, changed_files, explain
from ingot_build_rules.engine.events.trace_file import TargetTrace, read_trace, write_trace
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.tools.workspace.code_tables import keep_code, read_code
from ingot_build_rules.tools.workspace.explanations import Explainer
from ingot_build_rules.tools.workspace.state import (
    failed_trace_path,
    trace_path,
    trace_path_of_test,
)
from ingot_build_rules.tools.workspace.target_result import TargetResult
from ingot_build_rules.tools.workspace.tools import Tools


class TraceKeeper:
    """The traces of one workspace in one build."""

    def __init__(self, folder: str, build: Scheduler, tools: Tools) -> None:
        """Keep the table of today's code."""
        self._folder, self._build, self._tools = folder, build, tools
        self._changed: dict[str, dict[str, Files]] = {}
        keep_code(folder, tools.digest, tools.code)

    def keep(self, result: TargetResult) -> tuple[str, ...]:
        """Explain the actions of a bundle or test that ran, and keep its trace; a build in which nothing ran
        keeps the last explanation.

        The next build is compared with the last that succeeded; one that failed is kept beside it.
        """
        path = trace_path_of(self._folder, result)
        old = read_trace(path)
        new = TargetTrace(result.actions, self._tools.digest, old.explanation if old else ())
        lines = self._explain(result, old, new)
        if result.error is None:
            write_trace(path, replace(new, explanation=lines) if lines else new)
        elif result.status == "failed":
            error = tuple(str(result.error).splitlines())
            write_trace(failed_trace_path(path), replace(new, explanation=error))
        return lines

    def _explain(
        self, result: TargetResult, old: TargetTrace | None, new: TargetTrace
    ) -> tuple[str, ...]:
        reasons = explain(old, new, self._changed_files(old) if old else {})
        if old is None and reasons:
            actions = "1 action" if len(reasons) == 1 else f"{len(reasons)} actions"
            return (f"first build here: {actions} had no result in the cache",)
        if not reasons:
            return ()
        names = (
            self._build.run(result.compilation.names())
            if result.compilation and result.error is None
            else None
        )
        explainer = Explainer(self._build, names, _files(result), reasons)
        return tuple(line for reason in reasons for line in explainer.lines(reason))

    def _changed_files(self, old: TargetTrace) -> dict[str, Files]:
        if old.code not in self._changed:
            before = (
                read_code(self._folder, old.code)
                if old.code != self._tools.digest
                else self._tools.code
            )
            self._changed[old.code] = changed_files(before, self._tools.code) if before else {}
        return self._changed[old.code]


def trace_path_of(folder: str, result: TargetResult) -> str:
    """Return where the trace of a bundle or test is."""
    if result.test:
        return trace_path_of_test(folder, result.test)
    return trace_path(folder, result.name)


def _files(result: TargetResult) -> dict[str, str]:
    """The file behind each ingredient that is the digest of one."""
    paths = [path for path, _ in result.sources]
    return dict(zip(("inputs", "outputs") if result.test else ("source",), paths, strict=False))
