"""What has changed since a bundle was built, as far as files tell: nothing is run to find out.

In: a project, what its workspace remembers. Out: lines of text, none when the bundle is up to date. Not done here: what a build would
make of it (``ingot build -n``).
"""

from __future__ import annotations

import os

from ingot_build_rules.engine.file_digests import DiskFiles, stamp_of
from ingot_build_rules.engine.trace_file import TargetTrace
from ingot_build_rules.project.compile_requests import compile_requests
from ingot_build_rules.rules.open_build import code_digests
from ingot_build_rules.rules.registry import RULES
from ingot_build_rules.workspace.build_project import request_digest
from ingot_build_rules.workspace.open_workspace import LoadedProject
from ingot_build_rules.workspace.state import WorkspaceState

_DIGITS = 12


def pending_changes(loaded: LoadedProject, state: WorkspaceState, name: str, trace: TargetTrace | None) -> list[str]:
    """Return what makes the next build look at the bundle again."""
    known = state.bundles.get(name)
    if known is None or trace is None:
        return ["it was never built here"]
    (request,) = compile_requests(loaded.project, (name,), loaded.path)
    files, lines = DiskFiles(None), list[str]()
    for path, digest in known.sources:
        now = files.digest(path)
        if now != digest:
            lines.append(f"file {os.path.relpath(path)} changed {digest[:_DIGITS]} -> {now[:_DIGITS] or 'gone'}")
    if known.request != request_digest(request):
        lines.append(f"{os.path.relpath(loaded.path)} asks for other options")
    if known.stamp != stamp_of(known.output):
        lines.append(f"file {os.path.relpath(known.output)} is not as the last build left it")
    return [*lines, *_code_changes(trace)]


def _code_changes(trace: TargetTrace) -> list[str]:
    before = {path: digest for _, files in trace.code for path, digest in files}
    digests = code_digests(None)
    now = {path: digest for rule in RULES for path, digest in digests.files_of(rule.compute.__module__)}
    return [
        f"file {path} changed {before.get(path, 'new')[:_DIGITS]} -> {now.get(path, 'gone')[:_DIGITS]}"
        for path in sorted(before | now)
        if before.get(path) != now.get(path)
    ]
