"""Targets from outside, as the user names them: ``MODULE:TARGET[,ATTRIBUTE=VALUE]...``.

In: such texts. Out: ``PluginOption``; the ``Plugin`` behind one. Not done here: calling hooks
(``ingot_compiler.plugins``), the digest of a plug-in's code (``outside_code``).

A plug-in is a program of the user's choice that runs with the user's rights: it is imported where
the user names it, and nowhere else.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ingot_build_rules.engine.actions.rule import Rulebook, module_of
from ingot_build_rules.making.options.compile_options import PluginOption
from ingot_build_rules.making.options.outside_code import outside_code
from ingot_compiler.ir.errors import PluginError, UserError
from ingot_compiler.ir.suggest import suggest
from ingot_compiler.plugins.plugin import Plugin
from ingot_compiler.plugins.settings import AttributeValue, PluginSettings
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.option_ref import OptionRef

_FORM = "MODULE:TARGET[,ATTRIBUTE=VALUE]..."
_FLAGS = {"true": True, "false": False}


def read_plugins(texts: Sequence[str], folder: str | None = None) -> tuple[PluginOption, ...]:
    """Read plug-ins in the order in which they are named; the same text twice is one plug-in.

    Their modules are found where Python finds modules, and then in ``folder``.

    Raises:
        UserError: no such module or target, an unknown attribute, two plug-ins of one name.
        PluginError: it cannot be imported, or is not what it has to be.
    """
    if texts and folder is not None and os.path.abspath(folder) not in sys.path:
        sys.path.append(os.path.abspath(folder))
    found: dict[str, tuple[str, PluginOption]] = {}
    for text in dict.fromkeys(texts):
        option = _read(text)
        other, known = found.setdefault(option.settings.plugin, (text, option))
        if known != option:
            why = f"{other} has the same name, {option.settings.plugin}"
            do = "name one of them, or give one of them another name"
            raise UserError("two plug-ins have one name", OptionRef("plugin", text), why, do)
    return tuple(option for _, option in found.values())


def open_plugin(where: str) -> Plugin:
    """Import a plug-in that the user has named.

    Raises:
        UserError: no such module, or nothing of this name in it. PluginError: the module fails, or
            the target is no ``Plugin``.
    """
    module, _, name = where.partition(":")
    place = OptionRef("plugin", where)
    try:
        imported = importlib.import_module(module)
    except IngotError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _failed(error, where) from error
        why = f"Python finds no module {error.name}"
        do = "check the name; install the module, or run where it lies"
        raise UserError("no such plug-in", place, why, do) from None
    except (Exception, SystemExit) as error:
        raise _failed(error, where) from error
    if not hasattr(imported, name):
        names = [key for key, value in vars(imported).items() if isinstance(value, Plugin)]
        why = f"module {module} has the targets {', '.join(names) or 'none'}, not {name}"
        raise UserError("no such plug-in", place, why, suggest(name, names))
    plugin = getattr(imported, name)
    if not isinstance(plugin, Plugin):
        why = f"expected Plugin, got {type(plugin).__name__}"
        do = "make it a Plugin of ingot_compiler.plugins.plugin"
        raise PluginError("a plug-in is not what it has to be", place, why, do)
    return plugin


def with_plugins(rulebook: Rulebook, options: Iterable[PluginOption]) -> Rulebook:
    """A rulebook whose rules may load what the plug-ins bring."""
    hooks = (hook for option in options for hook in open_plugin(option.where).hooks())
    return replace(rulebook, outside=tuple(dict.fromkeys(hooks)))


def plugin_files(options: Sequence[PluginOption]) -> tuple[tuple[str, str], ...]:
    """Path and digest of every file of the code that the plug-ins bring."""
    hooks = (hook for option in options for hook in open_plugin(option.where).hooks())
    modules = dict.fromkeys(
        module_of(where) for where in (*(option.where for option in options), *hooks)
    )
    pairs = (pair for module in modules for pair in outside_code(module).files)
    return tuple(sorted({(path, file.digest) for path, file in pairs}))


def _read(text: str) -> PluginOption:
    where, *parts = text.split(",")
    module, colon, name = where.partition(":")
    if not (colon and name.isidentifier() and all(map(str.isidentifier, module.split(".")))):
        why = f"expected {_FORM}, got {text!r}"
        place = OptionRef("plugin", text)
        raise UserError("a plug-in is not understood", place, why, f"write {_FORM}")
    plugin = open_plugin(where)
    outside_code(module)  # of a module that has changed since it was imported it says so
    attributes = {**plugin.attributes}
    for part in parts:
        attribute, value = _attribute(text, plugin, part)
        attributes[attribute] = value
    settings = PluginSettings(plugin.name, tuple(sorted(attributes.items())))
    return PluginOption(where, settings)


def _attribute(text: str, plugin: Plugin, part: str) -> tuple[str, AttributeValue]:
    name, equals, value = part.partition("=")
    place = OptionRef("plugin", text)
    if not equals or name not in plugin.attributes:
        known: Mapping[str, AttributeValue] = plugin.attributes
        why = f"plug-in {plugin.name} has the attributes {', '.join(known)}"
        do = suggest(name, list(known))
        if not known:
            why, do = f"plug-in {plugin.name} has no attributes", "leave it out"
        raise UserError(f"unknown attribute {part!r}", place, why, do)
    default = plugin.attributes[name]
    if isinstance(default, bool) and value in _FLAGS:
        return name, _FLAGS[value]
    if isinstance(default, str):
        return name, value
    if not isinstance(default, bool) and value.lstrip("-").isdecimal() and value.isascii():
        return name, int(value)
    expected = "true or false" if isinstance(default, bool) else "a whole number"
    why = f"expected {expected}, got {value!r}"
    do = f"the default is {str(default).lower()}"
    raise UserError(f"wrong value of attribute {name!r}", place, why, do)


def _failed(error: BaseException, where: str) -> PluginError:
    last = traceback.extract_tb(error.__traceback__)[-1]
    lines = f"{type(error).__name__}: {error}".splitlines()
    why = f"{lines[0]} (line {last.lineno} of {os.path.basename(last.filename)})"
    place = OptionRef("plugin", where)
    return PluginError("a plug-in cannot be imported", place, why, "correct its module")
