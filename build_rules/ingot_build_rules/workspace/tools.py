"""All code and tools that decide what a build makes, as one digest and as files to look at.

In: digests of code, of files. Out: ``Tools``. Not done here: which code a single rule depends on (``engine.code_digest``).
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from dataclasses import dataclass

from ingot_build_rules.engine.code_digest import CodeDigests
from ingot_build_rules.engine.content import digest
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.rules.open_build import PACKAGE_FOLDERS, code_digests, tool_path
from ingot_build_rules.rules.registry import RULES

Code = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""Rule -> (file, digest) of its code."""


@dataclass(frozen=True, slots=True)
class Tools:
    """``code``: files of each rule; ``digest`` of everything; ``paths``: what changes when one of them does."""

    digests: CodeDigests
    code: Code
    digest: str
    paths: tuple[str, ...]


def tools_of(build: Scheduler, cache_file: str) -> Tools:
    """Return the tools of an open build; ``cache_file``: where digests of code are kept."""
    digests = code_digests(cache_file)
    modules = {rule.name: rule.compute.__module__ for rule in RULES}
    code = tuple((name, digests.files_of(module)) for name, module in modules.items())
    packages = sorted({item for module in modules.values() for item in digests.distributions_of(module)})
    linker = tool_path("linker")
    files = {name for _, parts in code for name, _ in parts}
    paths = [os.path.join(os.path.dirname(PACKAGE_FOLDERS[name.split("/")[0]]), name) for name in sorted(files)]
    records = [_record_of(name.split()[0]) for name, _ in packages]
    everything = (code, packages, build.files.digest(linker), sys.version)
    return Tools(digests, code, digest(everything), (*paths, *filter(None, records), linker, sys.executable))


def _record_of(package: str) -> str:
    """The list of a package's files, which changes when it is installed again."""
    for file in importlib.metadata.files(package) or ():
        if file.name == "RECORD":
            return str(file.locate())
    return ""
