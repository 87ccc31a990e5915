"""Keeps what a bundle's last build was made from, and says why what ran did.

In: the result of a build. Out: lines of explanation; the trace in the workspace's folder. Not done here: reasons (``engine.explain``),
words (``explanations``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_build_rules.engine.explain import explain
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.engine.trace_file import TargetTrace, read_trace, write_trace
from ingot_build_rules.workspace.build_project import TargetResult
from ingot_build_rules.workspace.explanations import Explainer
from ingot_build_rules.workspace.state import trace_path
from ingot_build_rules.workspace.tools import Tools


def keep_trace(folder: str, result: TargetResult, build: Scheduler, tools: Tools) -> tuple[str, ...]:
    """Explain a bundle's actions that ran, and keep its trace; a build in which nothing ran keeps the last explanation."""
    path = trace_path(folder, result.name)
    old = read_trace(path)
    new = TargetTrace(result.actions, tools.code, old.explanation if old else ())
    names = build.run(result.compilation.names()) if result.compilation and result.error is None else None
    explainer = Explainer(build, names, result.sources)
    reasons = explain(old, new)
    if old is None and reasons:
        lines: tuple[str, ...] = (f"first build here: {len(reasons)} actions had no result in the cache",)
    else:
        lines = tuple(line for reason in reasons for line in explainer.lines(reason))
    if result.error is None:
        write_trace(path, replace(new, explanation=lines) if lines else new)
    return lines
