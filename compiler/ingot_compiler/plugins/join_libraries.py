"""Joins the libraries of plug-ins to the support code of an image, so that its linker finds them.

In: the support object, the objects of each plug-in, those of the kernels that it lowered. Out: one
object. Not done here: the image (``backends``).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence

from ingot_compiler.backends.host.link import link_image
from ingot_compiler.backends.host.zig import run_zig
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.plugins.call_hook import plugin_error
from ingot_compiler.plugins.elf_symbols import read_symbols
from ingot_compiler.plugins.settings import PluginSettings
from ingot_compiler.targets.target import parse_target

Objects = Sequence[tuple[str, bytes]]
"""Name and content of each."""


def join_libraries(
    support: bytes, libraries: Mapping[str, Objects], kernels: Mapping[str, Objects], target: str
) -> bytes:
    """Return an object with all of ``support`` and ``libraries``; these and ``kernels`` by plug-in.

    Raises:
        PluginError: a symbol is missing, or defined twice; or the linker refuses the objects.
        BuildError: no linker on this machine.
    """
    owners = dict.fromkeys(read_symbols(support).defined, "the support code of Ingot")
    for plugin, objects in libraries.items():
        for name, content in objects:
            for symbol in sorted(read_symbols(content).defined):
                _claim_symbol(plugin, name, symbol, owners)
    for plugin in libraries.keys() | kernels.keys():
        for name, content in (*kernels.get(plugin, ()), *libraries.get(plugin, ())):
            _check_wanted(plugin, name, content, owners.keys())
    for plugin, objects in libraries.items():
        _try_link(plugin, objects, support, target)
    parts = [content for objects in libraries.values() for _, content in objects]
    return _joined([support, *parts], list(libraries), target) if parts else support


def _claim_symbol(plugin: str, name: str, symbol: str, owners: dict[str, str]) -> None:
    if symbol in owners:
        why = f"expected names that nobody else has, got {symbol}, which {owners[symbol]} has"
        what = "library defines a function that is there already"
        raise plugin_error(PluginSettings(plugin), what, why, name)
    owners[symbol] = f"{name} of plug-in {plugin}"


def _check_wanted(plugin: str, name: str, content: bytes, known: Collection[str]) -> None:
    if missing := sorted(read_symbols(content).undefined - set(known)):
        why = f"expected a library that defines {', '.join(missing)}, got none"
        what = "library lacks a function"
        raise plugin_error(PluginSettings(plugin), what, why, f"called by {name}")


def _try_link(plugin: str, objects: Objects, support: bytes, target: str) -> None:
    """Link a library as an image would have it, so that what an image refuses is told of the
    plug-in that brings it."""
    symbols = sorted({each for _, content in objects for each in read_symbols(content).defined})
    try:
        link_image((*objects, ("support", support)), symbols, {}, parse_target(target))
    except InternalError as error:
        what = "a library does not fit into an image"
        raise plugin_error(PluginSettings(plugin), what, error.why, error.where) from error


def _joined(objects: Sequence[bytes], plugins: Sequence[str], target: str) -> bytes:
    emulation = parse_target(target).family.linker_emulation
    names = [f"{index}.o" for index in range(len(objects))]
    with tempfile.TemporaryDirectory(prefix="ingot-join-") as folder:
        for name, content in zip(names, objects, strict=True):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        done = run_zig(("ld.lld", "-m", emulation, "-r", "-o", "joined.o", *names), folder)
        if done.returncode:
            why = " ".join(done.stderr.split("\n", 1)[0].split())
            settings = PluginSettings(" and ".join(plugins))
            raise plugin_error(settings, "a library does not link", why, f"target {target}")
        with open(os.path.join(folder, "joined.o"), "rb") as file:
            return file.read()
