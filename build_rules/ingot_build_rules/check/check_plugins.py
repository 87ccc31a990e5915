"""What plug-ins gave, asked of them a second time.

In: a compilation. Out: nothing, or ``PluginError`` that names a plug-in which gave something else.
Not done here: whether it is right (``self_check``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.compilation.plugins import with_plugins
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.perform import perform
from ingot_build_rules.engine.actions.values import MemoryBlobs, Values
from ingot_build_rules.rules.registry import RULEBOOK
from ingot_compiler.ir.errors import PluginError
from ingot_compiler.plugins.settings import PluginSettings

if TYPE_CHECKING:
    from ingot_build_rules.compilation.compile_model import CompiledModel


def check_plugins(compiled: CompiledModel) -> None:
    """Run every action of a plug-in once more, beside the cache, and compare.

    Raises:
        PluginError: a result is another one; or a hook fails now.
    """
    options = compiled.options.plugins
    rulebook = with_plugins(RULEBOOK, options)
    for rule, inputs, result in compiled.compilation.plugin_actions:
        values = Values(MemoryBlobs(), Codec(RULEBOOK.types))
        outcome = perform(rule, inputs, values, rulebook)
        if outcome.error is not None:
            raise outcome.error
        if values.codec.encode(result)[0] != outcome.result:
            settings: PluginSettings | tuple[PluginSettings, ...] = inputs.settings
            told = settings if isinstance(settings, tuple) else (settings,)
            names = " and ".join(dict.fromkeys(each.plugin for each in told))
            raise PluginError(
                f"another result the second time in plug-in {names}",
                f"plug-in {names}, rule {rule.name}",
                "expected the same for the same inputs, got something else",
                "let its hooks depend on what they are given alone: no time, no order of a set",
            )
