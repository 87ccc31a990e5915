"""The build that has nothing to do: found before anything else is imported.

In: the command's arguments, a workspace's memory. Out: True when all is as the last build left it. Not done here: looking at files
(``engine.unchanged``), everything else (``build``).
"""

import os
import sys
import time

from ingot_build_rules.engine.unchanged import forget, remember, unchanged

TYPE_CHECKING = False  # `typing` costs milliseconds
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingot_build_rules.workspace.open_workspace import LoadedProject
    from ingot_build_rules.workspace.run_build import Report

_LOOKS_CLOSER = ("-n", "--dry-run", "--explain", "--rehash", "--lint", "--frozen", "--help", "-h", "--debug")
_SAYS_HOW = ("-k", "--keep-going", "-q", "--quiet", "--expect-cached", "--json", "--read-only")
_HOW_MANY = ("-j", "--jobs")
_TAKES_VALUE = ("--trace", "--events", "--depfile", "--check-hits")


def is_no_op(texts: "Sequence[str]") -> bool:
    """Print the last summary and return True if ``ingot build`` with these arguments has nothing to do."""
    if any(text in _LOOKS_CLOSER or text.split("=", 1)[0] in _TAKES_VALUE for text in texts):
        return False
    folder = _project_folder(_value_of(texts, "-C", "--folder") or ".")
    summary = folder and unchanged(_path(folder), _key(texts))
    if not summary:
        return False
    count, _, as_json = summary.partition(" ")
    if "--json" in texts:
        sys.stdout.write(as_json + "\n")
    elif "-q" not in texts and "--quiet" not in texts:
        sys.stdout.write(f"{count} unchanged\n")
    return True


def remember_build(loaded: "LoadedProject", report: "Report") -> None:
    """Let the next build with the same arguments find that nothing has changed."""
    results = report.results
    sources = [*loaded.watched(), *report.tool_paths, *sorted({path for item in results for path in item.sources})]
    outputs = [item.path for item in results if item.path]
    if any(item.how not in ("built", "unchanged") for item in results):
        forget(_path(loaded.folder))
        return
    remember(_path(loaded.folder), _key(sys.argv[2:]), _summary(report), sources, outputs, time.time_ns())


def forget_build(folder: str) -> None:
    """Make the next build look closer."""
    forget(_path(folder))


def _summary(report: "Report") -> str:
    import json

    plain = report.plain()
    plain["rules"] = {name: {"ran": 0, "hit": 0} for name in plain["rules"]}
    plain["targets"] = {name: {**item, "how": "unchanged"} for name, item in plain["targets"].items()}
    return f"{len(report.results)} {json.dumps({**plain, 'seconds': 0.0, 'explanations': {}})}"


def _key(texts: "Sequence[str]") -> str:
    kept: list[str] = []
    takes_value = False
    for text in texts:
        if not takes_value and text not in _SAYS_HOW and not text.startswith(_HOW_MANY):
            kept.append(text)
        takes_value = text in _HOW_MANY and not takes_value
    return repr((kept, sys.version, sys.prefix, os.getcwd()))


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
