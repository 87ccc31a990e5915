"""The build that has nothing to do: found before anything else is imported.

In: the command's arguments, a workspace's memory, the user's key. Out: True when all is as the last
build left it. Not done here: looking at files (``engine.cache.unchanged``), everything else
(``build``).
"""

import os
import sys

from ingot_build_rules.engine.cache.unchanged import (
    forget,
    remember,
    seal,
    unchanged,
    write_atomically,
)
from ingot_build_rules.tools.workspace.user_key import known_key

TYPE_CHECKING = False  # `typing` costs milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ingot_build_rules.engine.cache.unchanged import Stamp
    from ingot_build_rules.tools.workspace.build_report import Report
    from ingot_build_rules.tools.workspace.open_workspace import LoadedProject

_LOOKS_CLOSER = (
    "-n",
    "--dry-run",
    "--explain",
    "--rehash",
    "--lint",
    "--frozen",
    "--help",
    "-h",
    "--debug",
)
_SAYS_HOW = ("-k", "--keep-going", "-q", "--quiet", "--expect-cached", "--json", "--read-only")
_HOW_MANY = ("-j", "--jobs")
_TAKES_VALUE = ("--trace", "--events", "--depfile", "--check-hits")


def is_no_op(texts: "Sequence[str]") -> bool:
    """Print the last summary and return True if ``ingot build`` with these arguments has nothing to
    do."""
    if any(text in _LOOKS_CLOSER or text.split("=", 1)[0] in _TAKES_VALUE for text in texts):
        return False
    folder = _project_folder(_value_of(texts, "-C", "--folder") or ".")
    if not folder or not os.path.exists(_path(folder)):
        return False
    user_key = known_key()
    summary = unchanged(_path(folder), _key(texts), user_key)
    if not summary:
        return False
    count, _, check = summary.partition(" ")
    if "--json" in texts:
        return _print_json(folder, user_key, check)
    return "-q" in texts or "--quiet" in texts or _print(f"{count} unchanged\n")


def _print_json(folder: str, user_key: bytes, check: str) -> bool:
    try:
        with open(_json_path(folder), "rb") as file:
            content = file.read()
    except OSError:
        return False
    if seal(user_key, content).decode() != check:
        return False
    return _print(content.decode() + "\n")


def _print(text: str) -> bool:
    """Return False where standard output takes nothing: who looks closer tells of it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        return False
    return True


def remember_build(
    loaded: "LoadedProject", report: "Report", looked_at: "Mapping[str, Stamp]", started_ns: int
) -> None:
    """Let the next build with the same arguments find that nothing has changed; ``looked_at``: the
    project's own files."""
    done = all(item.is_good for item in report.results)
    found = _tools_and_outputs(report) if done else None
    content, user_key = _json(report), known_key()
    if (
        report.looked_at is None
        or found is None
        or not write_atomically(_json_path(loaded.folder), content)
    ):
        forget_build(loaded.folder)
        return
    tools, outputs = found
    sources = {**looked_at, **tools, **report.looked_at}
    count, key = len(report.results), _key(sys.argv[2:])
    summary = f"{count} {seal(user_key, content).decode()}"
    remember(_path(loaded.folder), key, user_key, summary, sources, outputs, started_ns)


def _tools_and_outputs(report: "Report") -> "tuple[dict[str, Stamp], dict[str, Stamp]] | None":
    """What the tools of a build and the files that it left look like; None if one is not there."""
    from ingot_build_rules.engine.cache.file_digests import stamp_of
    from ingot_build_rules.making.stages.lock_file import lock_path

    outputs = {item.path: item.stamp for item in report.results if item.path}
    outputs |= {lock_path(path): stamp_of(lock_path(path)) for path in outputs}
    tools = {path: stamp_of(path) for path in report.tool_paths}
    seen = {path: stamp for path, stamp in (tools | outputs).items() if stamp is not None}
    if len(seen) < len(tools) + len(outputs):
        return None
    return {path: seen[path] for path in tools}, {path: seen[path] for path in outputs}


def forget_build(folder: str) -> None:
    """Make the next build look closer."""
    forget(_path(folder))


def _json(report: "Report") -> bytes:
    plain = report.plain()
    plain["rules"] = {name: {"ran": 0, "hit": 0} for name in plain["rules"]}
    plain["targets"] = {
        name: {**item, "status": "unchanged"} for name, item in plain["targets"].items()
    }
    from ingot_runtime.json_output import json_line

    return json_line({**plain, "seconds": 0.0, "explanations": {}, "errors": {}}).encode()


def _key(texts: "Sequence[str]") -> str:
    kept: list[str] = []
    takes_value = False
    for text in texts:
        if not takes_value and text not in _SAYS_HOW and not text.startswith(_HOW_MANY):
            kept.append(text)
        takes_value = text in _HOW_MANY and not takes_value
    return repr((kept, sys.version, sys.prefix, __file__, tuple(os.uname()), os.getcwd()))


def _value_of(texts: "Sequence[str]", *names: str) -> str:
    for position, text in enumerate(texts):
        if text in names and position + 1 < len(texts):
            return texts[position + 1]
        for name in names:
            if (
                text.startswith(name)
                and len(text) > len(name)
                and (not name.startswith("--") or text[len(name)] == "=")
            ):
                return text[len(name) :].lstrip("=")
    return ""


def _project_folder(start: str) -> str:
    folder = os.path.abspath(start)
    while not os.path.isfile(os.path.join(folder, "ingot.toml")):
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
    return folder


def _path(folder: str) -> str:
    return os.path.join(folder, ".ingot", "unchanged")


def _json_path(folder: str) -> str:
    return os.path.join(folder, ".ingot", "unchanged.json")
