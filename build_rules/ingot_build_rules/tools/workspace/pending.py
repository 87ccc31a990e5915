"""What has changed since a bundle was built, as far as files tell: nothing is run to find out.

In: a project, what its workspace remembers. Out: lines of text, none when the bundle is up to date.
Not done here: what a build would make of it (``ingot build -n``).
"""

from __future__ import annotations

import json
import os
from typing import cast

from ingot_build_rules.engine.cache.file_digests import DiskFiles, stamp_of
from ingot_build_rules.engine.events.explain import Code
from ingot_build_rules.engine.events.trace_file import TargetTrace
from ingot_build_rules.making.project.compile_requests import compile_requests
from ingot_build_rules.making.stages.lock_file import lock_path
from ingot_build_rules.tools.workspace.build_project import options_text, request_digest
from ingot_build_rules.tools.workspace.code_tables import read_code
from ingot_build_rules.tools.workspace.difference_text import short
from ingot_build_rules.tools.workspace.open_workspace import LoadedProject
from ingot_build_rules.tools.workspace.present import Present
from ingot_build_rules.tools.workspace.state import BundleState, WorkspaceState, is_of_another_key
from ingot_build_rules.tools.workspace.user_key import key_path, known_key


def pending_changes(
    loaded: LoadedProject,
    state: WorkspaceState,
    name: str,
    trace: TargetTrace | None,
    present: Present,
) -> list[str]:
    """Return what makes the next build look at the bundle again."""
    known = state.bundles.get(name)
    if trace is not None and is_of_another_key(loaded.folder, known_key()):
        why = "what the last build left here is sealed with another key than yours, or damaged"
        return [f"{why}: restore that key ({key_path()}), or build again"]
    if known is None or trace is None:
        return ["it was never built here"]
    (request,) = compile_requests(loaded.project, (name,), loaded.path)
    lines = _source_changes(known, present.files)
    if known.request != request_digest(request):
        lines += _other_options(known.options, options_text(request.options)) or [
            f"{os.path.relpath(loaded.path)} asks for another model"
        ]
    if known.stamp != stamp_of(known.output):
        lines.append(_touched(known.output))
    elif known.lock is None or known.lock != stamp_of(lock_path(known.output)):
        lines.append(_touched(lock_path(known.output)))
    if known.output != os.path.normpath(os.path.join(loaded.folder, request.bundle.output)):
        lines.append(f"{os.path.relpath(loaded.path)} asks for another output")
    tools = present.tools
    if known.code != tools.digest:
        lines += _code_changes(read_code(loaded.folder, trace.code), tools.code)
    return lines


def _source_changes(known: BundleState, files: DiskFiles) -> list[str]:
    now = [(path, digest, files.digest(path)) for path, digest in known.sources]
    return [
        f"file {os.path.relpath(path)} changed {short(old)} -> {short(new)}"
        for path, old, new in now
        if old != new
    ]


def _touched(path: str) -> str:
    return f"file {os.path.relpath(path)} is not as the last build left it"


def _other_options(old: str, new: str) -> list[str]:
    before, now = (cast("dict[str, object]", json.loads(text or "{}")) for text in (old, new))
    before, now = ({**each, "ops": _ops(each.get("ops"))} for each in (before, now))
    return [
        f"option {name} changed {json.dumps(before.get(name))} -> {json.dumps(now.get(name))}"
        for name in sorted(before | now)
        if before.get(name) != now.get(name)
    ]


def _ops(plain: object) -> dict[str, str]:
    """The user's ops and their files; what is in these, they tell themselves."""
    ops = cast("list[dict[str, str]]", plain or [])
    return {each["op"]: each["file"] for each in ops}


def _code_changes(old: Code, new: Code) -> list[str]:
    """Name files and packages; of Python and zig it is only known that one of them must be another
    one."""
    before, now = _files(old), _files(new)
    lines = [
        f"{path} changed {short(before.get(path, ''))} -> {short(now.get(path, ''))}"
        for path in sorted(before | now)
        if before.get(path) != now.get(path)
    ]
    return (lines if old else []) or ["Ingot, Python or zig is another one"]


def _files(code: Code) -> dict[str, str]:
    return {path: digest for _, files in code for path, digest in files}
