"""What the last build of a workspace left: for each bundle what it was made from, for each test
what it was run on.

In: the folder ``.ingot``, the user's key. Out: ``WorkspaceState``, and the file again. Not done
here: deciding what is up to date (``build_project``).

A state is a memory and never a promise: one that is damaged, of another version, project or user is
an empty one, and everything is looked at again.
"""

from __future__ import annotations

import os
import urllib.parse
from dataclasses import field
from typing import Any, cast

from ingot_build_rules.engine.cache.state_file import is_state_file, read_state, write_state
from ingot_build_rules.engine.cache.unchanged import Stamp
from ingot_runtime.lazy_dataclass import dataclass

_KIND = "workspace 5"
FOLDER_NAME = ".ingot"


@dataclass(frozen=True, slots=True)
class BundleState:
    """``request``: digest of what was asked for; ``code``: of all code and tools; ``sources``:
    (path, digest); the file ``output`` as it was left, with its ``root`` digest; ``lock``: what its
    lock file looked like; ``options``: as a lock has them; ``earlier``: files that builds have
    left for this bundle elsewhere, before its output changed."""

    request: str
    code: str
    sources: tuple[tuple[str, str], ...]
    output: str
    stamp: Stamp
    root: str
    lock: Stamp | None = None
    options: str = ""
    earlier: tuple[tuple[str, Stamp], ...] = ()

    def outputs(self) -> tuple[tuple[str, Stamp], ...]:
        """Every file that builds have left for it, as it was left; the present one first."""
        return ((self.output, self.stamp), *self.earlier)

    def outputs_beside(self, output: str) -> tuple[tuple[str, Stamp], ...]:
        """The files that builds left at other paths than ``output``."""
        return tuple(pair for pair in self.outputs() if pair[0] != output)


@dataclass(frozen=True, slots=True)
class PassedTest:
    """``key``: of the action that passed; ``code``: of all code and tools when it did."""

    key: str
    code: str


@dataclass(frozen=True, slots=True)
class ExportState:
    """``key``: digest of what was asked for, of the bundle and of all code and tools; ``files``:
    (path, digest) of what was written."""

    key: str
    files: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class WorkspaceState:
    """By their names, bundles, exports, and the tests that have passed."""

    bundles: dict[str, BundleState] = field(default_factory=dict[str, BundleState])
    tests: dict[str, PassedTest] = field(default_factory=dict[str, PassedTest])
    exports: dict[str, ExportState] = field(default_factory=dict[str, ExportState])


def state_folder(project_folder: str) -> str:
    """Where a workspace keeps what it remembers."""
    return os.path.join(project_folder, FOLDER_NAME)


def trace_path(project_folder: str, bundle: str) -> str:
    """Where the trace of a bundle's last build that succeeded is."""
    return _trace_path(project_folder, "traces", bundle)


def trace_path_of_test(project_folder: str, test: str) -> str:
    """Where the trace of a test's last run that passed is."""
    return _trace_path(project_folder, "test_traces", test)


def _trace_path(project_folder: str, kind: str, name: str) -> str:
    """Any name makes a plain file name."""
    file = urllib.parse.quote(name, safe="") + ".trace"
    return os.path.join(state_folder(project_folder), kind, file)


def failed_trace_path(trace: str) -> str:
    """Where that of a later build is that failed, beside the trace of the last that succeeded; its
    explanation is the error."""
    return f"{trace}.failed"


def read_workspace(project_folder: str, key: bytes) -> WorkspaceState:
    """Return the state, empty where there is none."""
    found = cast("Any", read_state(os.path.join(state_folder(project_folder), "state"), _KIND, key))
    try:
        bundles, tests, exports = found
        return WorkspaceState(
            {str(name): _bundle_state(project_folder, item) for name, item in bundles.items()},
            {str(name): PassedTest(str(key), str(code)) for name, (key, code) in tests.items()},
            {str(name): _export_state(project_folder, *item) for name, item in exports.items()},
        )
    except (TypeError, ValueError, AttributeError):
        return WorkspaceState()


def is_of_another_key(project_folder: str, key: bytes) -> bool:
    """Whether builds with another key, or damage, have left what is remembered here."""
    path = os.path.join(state_folder(project_folder), "state")
    return is_state_file(path) and read_state(path, _KIND, key) is None


def _bundle_state(folder: str, item: object) -> BundleState:
    """Take what has the right shape: its writer may have been anybody."""
    match item:
        case (
            str(), str(), tuple(), str(), (int(), int(), int(), int()), str(),
            None | (int(), int(), int(), int()), str(), tuple(),
        ):  # fmt: skip
            request, code, sources, output, stamp, root, lock, options, more = cast("Any", item)
        case _:
            raise ValueError("not the state of a bundle")
    pairs = tuple((os.path.join(folder, str(path)), str(digest)) for path, digest in sources)
    path = os.path.join(folder, output)
    earlier = tuple((os.path.join(folder, str(other)), _stamp(was)) for other, was in more)
    return BundleState(request, code, pairs, path, stamp, root, lock, options, earlier)


def _export_state(folder: str, key: object, files: Any) -> ExportState:
    pairs = ((os.path.join(folder, str(path)), str(digest)) for path, digest in files)
    return ExportState(str(key), tuple(pairs))


def _stamp(item: object) -> Stamp:
    mtime_ns, size_bytes, inode, ctime_ns = map(int, cast("Any", item))
    return mtime_ns, size_bytes, inode, ctime_ns


def write_workspace(project_folder: str, state: WorkspaceState, key: bytes) -> None:
    """Keep the state; a folder that cannot be written forgets it."""
    bundles = {
        name: _plain_bundle(project_folder, item) for name, item in sorted(state.bundles.items())
    }
    path = os.path.join(state_folder(project_folder), "state")
    tests = {name: (item.key, item.code) for name, item in sorted(state.tests.items())}
    exports = {
        name: (
            item.key,
            tuple((_inside(project_folder, path), digest) for path, digest in item.files),
        )
        for name, item in sorted(state.exports.items())
    }
    write_state(path, _KIND, (bundles, tests, exports), key)


def _plain_bundle(folder: str, item: BundleState) -> tuple[object, ...]:
    """What ``_bundle_state`` takes."""
    sources = tuple((_inside(folder, path), digest) for path, digest in item.sources)
    output = _inside(folder, item.output)
    return (
        item.request, item.code, sources, output, item.stamp, item.root, item.lock, item.options,
        tuple((_inside(folder, path), stamp) for path, stamp in item.earlier),
    )  # fmt: skip


def _inside(folder: str, path: str) -> str:
    """Paths in the project are kept by what they are called in it: a copy of a project has nothing
    to do with the first one."""
    start = os.path.join(folder, "")
    return path.removeprefix(start)
