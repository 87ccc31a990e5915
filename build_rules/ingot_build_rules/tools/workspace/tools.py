"""All code and tools that decide what a build makes, as one digest and as files to look at.

In: digests of code, of files. Out: ``Tools``. Not done here: which code a single rule depends on
(``engine.cache.code_digest``).
"""

from __future__ import annotations

import os
import sys

from ingot_build_rules.engine.actions.content import digest
from ingot_build_rules.engine.actions.rule import FileDigests
from ingot_build_rules.engine.cache.code_digest import CodeDigests
from ingot_build_rules.engine.events.explain import Code
from ingot_build_rules.making.rules.registry import RULEBOOK, RULES
from ingot_build_rules.making.stages.own_code import (
    PACKAGE_FOLDERS,
    code_parts,
    digest_of,
    tool_path,
)
from ingot_compiler.backends.tags.read_tags import TAGS_PATH
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Tools:
    """``code``: files and packages of each rule, and of each module that rules load by name;
    ``digest`` of everything; ``paths``: what changes when one of them does."""

    digests: CodeDigests
    code: Code
    digest: str
    paths: tuple[str, ...]


def tools_of(files: FileDigests, digests: CodeDigests) -> Tools:
    """Return the tools of today."""
    zig = tool_path("zig")
    places = {rule.name: rule.compute.__module__ for rule in RULES}
    places |= {where: where for rule in RULES for where in RULEBOOK.code_of(rule)[1:]}
    code = tuple((name, code_parts(digests, where)) for name, where in places.items())
    names = sorted({name for _, parts in code for name, _ in parts})
    everything = (
        tuple((name, digest_of(parts)) for name, parts in code),
        files.digest(zig),
        sys.version,
    )
    return Tools(
        digests,
        code,
        digest(everything),
        (
            *filter(None, map(_path_of, names)),
            *digests.records(),
            zig,
            sys.executable,
            str(TAGS_PATH),  # what a tag stands for is in no key, but decides what is asked for
        ),
    )


def _path_of(name: str) -> str:
    """The file of a name in a table of code; "" of packages and programs."""
    package, _, inside = name.partition("/")
    return os.path.join(PACKAGE_FOLDERS[package], inside) if inside else ""
