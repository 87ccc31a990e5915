"""Calls a hook of a plug-in; whatever it raises is told as an error of the plug-in.

In: a hook, its arguments. Out: what it returns, or ``PluginError``. Not done here: whether what it
returns is right beyond its type.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from ingot_compiler.ir.errors import PluginError
from ingot_compiler.ir.message import Text, message
from ingot_compiler.plugins.settings import PluginSettings
from ingot_runtime.ingot_error import IngotError

Value = TypeVar("Value")


def call_hook(
    settings: PluginSettings, hook: str, expected: type[Value], call: Callable[[], object]
) -> Value:
    """Return what ``call``, which runs the plug-in's ``hook``, returns.

    Raises:
        PluginError: it raises something, or returns something that is not ``expected``.
    """
    try:
        result = call()
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"line {place.lineno}, function {place.name}"
        raise plugin_error(settings, f"{hook} failed", _words(error), where) from error
    if not isinstance(result, expected):
        why = f"expected {expected.__name__}, got {type(result).__name__}"
        raise plugin_error(settings, f"{hook} returned something else", why)
    return result


def call_hook_for_items(
    settings: PluginSettings, hook: str, call: Callable[[], object]
) -> tuple[object, ...]:
    """Return the items of the list or tuple that ``call``, which runs the plug-in's ``hook``,
    returns."""
    result = call_hook(settings, hook, object, call)
    if not isinstance(result, list | tuple):
        why = f"expected a list or a tuple, got {type(result).__name__}"
        raise plugin_error(settings, f"{hook} returned something else", why)
    return tuple(cast("Sequence[object]", result))


def plugin_error(settings: PluginSettings, what: str, why: Text, where: Text = "") -> PluginError:
    """An error that names the plug-in."""
    place = (
        message(f"plug-in {settings.plugin}, ", where) if where else f"plug-in {settings.plugin}"
    )
    do = "correct the plug-in, or build without it"
    return PluginError(f"{what} in plug-in {settings.plugin}", place, why, do)


def _words(error: BaseException) -> Text:
    """What an error says of itself, in one line."""
    if isinstance(error, IngotError):
        what, _, why, _ = error.parts
        return message(what, ": ", why) if why else message(what)
    lines = f"{type(error).__name__}: {error}".splitlines()
    return lines[0] if lines else type(error).__name__
