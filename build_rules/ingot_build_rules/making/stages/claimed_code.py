"""The code that plug-ins bring to an image: their libraries, joined to the support code.

In: a variant's kernels and support code. Out: the support code that its image is linked with. Not
done here: linking.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.making.rules.join_libraries import JOIN_LIBRARIES, JoinInputs, NamedObjects
from ingot_build_rules.making.rules.make_library import MAKE_LIBRARY, LibraryObjects
from ingot_build_rules.making.stages.model_stages import ModelStages
from ingot_build_rules.making.stages.target_stages import Compiled, TargetStages
from ingot_build_rules.making.values.native_objects import KernelObject
from ingot_compiler.ir.errors import PluginError


async def claimed_support(
    model: ModelStages,
    stages: TargetStages,
    compiled: Sequence[Compiled],
    support: Artifact[memoryview],
) -> Artifact[memoryview]:
    """Return ``support`` with the libraries of all plug-ins that have claimed something.

    Raises:
        PluginError: what kernels call is nowhere, or something is there twice.
    """
    plugins = (await stages.fused()).plugins
    pairs = [(plugin, own) for plugin, (_, own) in zip(plugins, compiled, strict=True)]
    if not any(plugins):
        return support
    _check_symbols(pairs)
    kernels: dict[str, dict[str, Artifact[memoryview]]] = {}
    for plugin, own in pairs:
        if plugin:
            found = kernels.setdefault(plugin, {})
            found.update({kernel.symbol: kernel.content for kernel in own})
    libraries: list[tuple[str, LibraryObjects]] = []
    for plugin in kernels:
        inputs = model.plugins.library(plugin, stages.target)
        if inputs is not None:
            libraries.append((plugin, await model.need(MAKE_LIBRARY, inputs, stages.target)))
    own_kernels: NamedObjects = tuple(
        (plugin, tuple(sorted(found.items()))) for plugin, found in kernels.items()
    )
    join = JoinInputs(support, tuple(libraries), own_kernels, stages.target)
    return await model.need(JOIN_LIBRARIES, join, stages.target)


def _check_symbols(pairs: Sequence[tuple[str, Sequence[KernelObject]]]) -> None:
    """That two kernels of one symbol are one."""
    known: dict[str, tuple[str, str]] = {}
    for plugin, kernels in pairs:
        for kernel in kernels:
            first, digest = known.setdefault(kernel.symbol, (plugin, kernel.content.digest))
            if digest != kernel.content.digest:
                named = plugin or first
                raise PluginError(
                    f"two kernels have one symbol in plug-in {named}",
                    f"plug-in {named}, compile_kernel",
                    f"expected a symbol that names the code, got {kernel.symbol} for two",
                    "make the symbol of the digest of the program and of the plug-in's name",
                )
