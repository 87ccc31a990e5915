"""The part of our own code that decides results: the files and packages that a rule can run, and
the programs that rules call.

In: a rule, or a module; digests of files. Out: a digest, or what it is made of. Not done here: the
digests of files (``engine.cache.code_digest``), where a cache keeps them (``open_build``).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable

import ingot_artifacts
import ingot_build_rules
import ingot_compiler
import ingot_runtime
from ingot_build_rules.engine.actions.rule import Rule, module_of
from ingot_build_rules.engine.cache.code_digest import CodeDigests
from ingot_compiler.backends.host.zig import zig_path

_PACKAGES = (ingot_artifacts, ingot_build_rules, ingot_compiler, ingot_runtime)
_DEVICES = importlib.util.find_spec("ingot_runtime_devices")  # not everybody has it
PACKAGE_FOLDERS = {
    name: os.path.dirname(file)
    for name, file in (
        *((package.__name__, str(package.__file__)) for package in _PACKAGES),
        *([(_DEVICES.name, str(_DEVICES.origin))] if _DEVICES else []),
    )
}
_DISTRIBUTIONS = ("llvmlite", "msgpack", "numpy", "onnx")
"""Packages whose code decides results; each module has the name of its distribution."""
_ENCODING = (
    "ingot_build_rules/engine/actions/codec.py",
    "ingot_build_rules/engine/actions/message_pack.py",
)
Code = tuple[tuple[str, str], ...]
"""(file, package or program, digest)."""


def tool_path(tool: str) -> str:
    """The program that a rule calls by this name."""
    assert tool == "zig", tool
    return zig_path()


def code_of(digests: CodeDigests) -> Callable[[Rule[object, object]], str]:
    """Return the function from a rule to the digest of its code."""
    return lambda rule: loaded_code_of(digests)(rule.compute.__module__)


def loaded_code_of(digests: CodeDigests) -> Callable[[str], str]:
    """Return the function from a module or "module:function", perhaps of a plug-in, to the digest
    of the code that it can run."""

    def code(where: str) -> str:
        include_outside(digests, where)
        return digest_of(code_parts(digests, where))

    return code


def include_outside(digests: CodeDigests, where: str) -> None:
    """Let digests of our own code know that of a plug-in's module as well."""
    if not digests.knows(where):
        from ingot_build_rules.making.options.outside_code import outside_code

        code = outside_code(module_of(where))
        files = [file for _, file in code.files if not digests.knows(file.module)]
        digests.include(files, dict(code.distributions), sys.path)


def digest_of(code: Code) -> str:
    """Name what code is made of: 64 hex digits."""
    text = "".join(f"{name}\n{item}\n" for name, item in code)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@functools.cache
def code_parts(digests: CodeDigests, where: str) -> Code:
    """What decides results besides inputs: the code that a module or "module:function" can run, the
    encoding of results, the Python that runs it.

    The codec's own files alone: it can import every class of an artifact, and imports those that
    the rule's own code names.
    """
    python = (f"python {sys.version_info[0]}.{sys.version_info[1]}", "")
    return (
        *digests.files_of(where, _ENCODING),
        *digests.distributions_of(where),
        python,
    )


@functools.cache
def code_digests(cache_file: str | None, *, saves: bool = True, key: bytes = b"") -> CodeDigests:
    """Digests of our own code and of the packages that it calls: what runs in this process does not
    change any more."""
    distributions = {name: name for name in _DISTRIBUTIONS}
    return CodeDigests(PACKAGE_FOLDERS, cache_file, distributions, sys.path, saves=saves, key=key)
