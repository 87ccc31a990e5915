"""The plug-ins of a compilation by their names, and where their hooks are.

In: the plug-ins of the options. Out: ``PluginTable``. Not done here: reading what the user says
(``plugins``), calling hooks (rules).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.making.options.compile_options import PluginOption
from ingot_build_rules.making.options.plugins import open_plugin
from ingot_build_rules.making.rules.codegen_claimed import CodegenClaimedInputs
from ingot_build_rules.making.rules.lower_claimed import LowerClaimedInputs
from ingot_build_rules.making.rules.make_library import LibraryInputs
from ingot_compiler.ir.errors import UserError
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.plugins.plugin import Plugin
from ingot_compiler.plugins.settings import PluginSettings
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

OF_PLUGINS = ("claim", "codegen_claimed", "lower_claimed", "make_library", "rewrite")
"""Rules that run the code of plug-ins."""
Hooks = tuple[tuple[str, PluginSettings], ...]
"""Where hooks are, and what the plug-in of each is told."""


@dataclass(frozen=True, slots=True)
class PluginTable:
    """In the order in which the user names them."""

    options: Sequence[PluginOption]

    def passes(self) -> Hooks:
        """What rewrites a graph before it is placed, in order."""
        return tuple(
            (hook, option.settings)
            for option in self.options
            for hook in open_plugin(option.where).passes_at("graph")
        )

    def claimers(self) -> Hooks:
        """What claims ops of a placed graph."""
        pairs = ((open_plugin(each.where).hook("claim"), each.settings) for each in self.options)
        return tuple(pair for pair in pairs if pair[0])

    def lowering(self, name: str, group: Artifact[Group], target: str) -> LowerClaimedInputs:
        """How a group of the plug-in called ``name`` is lowered.

        Raises:
            UserError: no such plug-in was named.
        """
        plugin, settings = self._find(name)
        passes = plugin.passes_at("loops")
        return LowerClaimedInputs(group, plugin.hook("lower"), passes, settings, target)

    def codegen(
        self, name: str, program: Artifact[LoopProgram], target: str
    ) -> CodegenClaimedInputs | None:
        """How a kernel of a plug-in is compiled; None where the host's code generation does it."""
        plugin, settings = self._find(name)
        hook = plugin.hook("compile_kernel")
        return CodegenClaimedInputs(program, hook, settings, target) if hook else None

    def library(self, name: str, target: str) -> LibraryInputs | None:
        """How the library of a plug-in is made, if it has one."""
        plugin, settings = self._find(name)
        hook = plugin.hook("library")
        return LibraryInputs(hook, settings, target) if hook else None

    def _find(self, name: str) -> tuple[Plugin, PluginSettings]:
        for option in self.options:
            if option.settings.plugin == name:
                plugin = open_plugin(option.where)
                if plugin.lower is not None:
                    return plugin, option.settings
        known = ", ".join(option.settings.plugin for option in self.options) or "none"
        what, why = f"no plug-in {name} that lowers", f"the graph has composites of it, got {known}"
        where, do = f"plug-in {name}", OptionRef("plugin", "MODULE:TARGET")
        raise UserError(what, where, why, do)
