"""What plug-ins gave, asked of them again: in this process, and in one of its own.

In: a compilation. Out: nothing, or ``PluginError`` that names a plug-in which gave something else.
Not done here: whether it is right (``self_check``).

What a process remembers shows when a hook runs again in it; what its hash seed decides, in another
one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, cast

from ingot_artifacts.store.cache import Cache
from ingot_build_rules.engine.actions.action_spec import Cost, specify
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.actions.leaves import leaves
from ingot_build_rules.engine.actions.perform import Outcome, perform
from ingot_build_rules.engine.actions.rule import AnyRule, Rulebook
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.executors.pool import PoolExecutor
from ingot_build_rules.making.options.plugins import with_plugins
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_compiler.ir.errors import PluginError
from ingot_compiler.plugins.settings import PluginSettings

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.compile_model import CompiledModel

_RunAgain = Callable[[AnyRule, Any], tuple[Outcome, ...]]


def check_plugins(compiled: CompiledModel) -> None:
    """Run every action of a plug-in again, beside the cache, and compare.

    Raises:
        PluginError: a result is another one; or a hook fails now.
    """
    actions = compiled.compilation.plugin_actions
    if not actions:
        return
    codec = Codec(RULEBOOK.types)
    with _runner(with_plugins(RULEBOOK, compiled.options.plugins)) as run_again:
        for rule, inputs, result in actions:
            for outcome in run_again(rule, inputs):
                if outcome.error is not None:
                    raise outcome.error
                if codec.encode(result)[0] != outcome.result:
                    raise _differs(rule, inputs.settings)


@contextmanager
def _runner(rulebook: Rulebook) -> Generator[_RunAgain]:
    """What runs an action here and in another process, over a cache that goes away."""
    with tempfile.TemporaryDirectory(prefix="ingot-") as folder, closing(Cache(folder)) as cache:
        values = Values(cache.blobs, Codec(RULEBOOK.types))
        addresses = [layer.address for layer in cache.layers]
        pool = PoolExecutor(rulebook, addresses, os.path.join(folder, "workers"))
        pool.grow(1)
        keys = KeyMaker(lambda _: "", lambda _: "", lambda _: "")

        def run(rule: AnyRule, inputs: Any) -> tuple[Outcome, ...]:
            for leaf in leaves(inputs):
                _keep(values, leaf)
            here = perform(rule, inputs, values, rulebook)
            pool.submit(specify(rule, keys.key(rule, inputs), inputs, values, Cost()))
            ended: list[Outcome] = []
            while not ended:
                ended = [outcome for _, outcome in pool.wait(None)]
            return here, *ended

        try:
            yield run
        finally:
            pool.close(kill=True)


def _keep(values: Values, leaf: object) -> None:
    """Let another process find a part of inputs."""
    if isinstance(leaf, Artifact):
        content = cast("object", leaf.value())
        if isinstance(content, memoryview):
            values.keep_bytes(cast("memoryview", content))
        else:
            values.keep(content)


def _differs(rule: AnyRule, settings: PluginSettings | tuple[PluginSettings, ...]) -> PluginError:
    plugins = settings if isinstance(settings, tuple) else (settings,)
    names = " and ".join(dict.fromkeys(each.plugin for each in plugins))
    return PluginError(
        f"another result the second time in plug-in {names}",
        f"plug-in {names}, rule {rule.name}",
        "expected the same for the same inputs, got something else",
        "let its hooks depend on what they are given alone: no time, no order of a set",
    )
