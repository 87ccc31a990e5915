"""What a plug-in says of itself: its name, its attributes, and its hooks.

In: functions of the plug-in. Out: ``Plugin``, the types of its hooks. Not done here: calling a hook
(``call_hook`` and the modules named after stages).

A hook is a function of values alone: what it gets and returns are stages, texts and bytes. It is
found again, in another process, by its module and name; an action whose inputs name it has the code
of that module in its key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, cast, get_args

from ingot_compiler.ir.errors import PluginError
from ingot_compiler.plugins.settings import AttributeValue, PluginSettings
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Graph
    from ingot_compiler.lowering.groups.fused import Group
    from ingot_compiler.lowering.groups.group_steps import LoweredGroup
    from ingot_compiler.lowering.loops.program import LoopProgram
    from ingot_compiler.plugins.claim import Offer, OpClaim

Phase = Literal["graph", "loops"]
"""``graph``: before values get their devices, ``RewriteGraph``; ``loops``: behind the lowering of
what the plug-in has claimed, ``RewriteLoops``."""
PHASES: tuple[Phase, ...] = get_args(Phase)

RewriteGraph = Callable[["Graph", PluginSettings], "Graph"]
"""A graph -> one with inputs and outputs of the same types."""
RewriteLoops = Callable[["LoopProgram", str, PluginSettings], "LoopProgram"]
"""(loops of a kernel, target of the host, settings) -> loops over the same buffers."""
ClaimOps = Callable[["Offer"], "Sequence[OpClaim]"]
"""What is offered -> the ops that the plug-in wants to compute; what it leaves out, or what others
compute at less cost, the host computes."""
LowerClaimed = Callable[["Group", str, PluginSettings], "LoweredGroup"]
"""(a claimed group, target of the host, settings) -> its launches and their loops."""
CompileClaimed = Callable[["LoopProgram", str, PluginSettings], tuple[str, bytes]]
"""(loops of a claimed kernel, target of the host, settings) -> (its symbol, an ELF object that
defines it)."""
MakeLibrary = Callable[[str, PluginSettings], Sequence[tuple[str, bytes]]]
"""(target of the host, settings) -> name and ELF object of each part of the library."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A function that runs at a phase; those of one phase run in the order of the list."""

    phase: Phase
    run: RewriteGraph | RewriteLoops


@dataclass(frozen=True, slots=True)
class Plugin:
    """A target from outside.

    ``attributes``: name -> default, whose type is the attribute's. ``claim`` and ``lower`` belong
    together. Without ``compile_kernel`` the host's own code generation compiles what ``lower``
    gives.

    Raises:
        PluginError: a part is not what it has to be.
    """

    name: str
    claim: ClaimOps | None = None
    lower: LowerClaimed | None = None
    compile_kernel: CompileClaimed | None = None
    library: MakeLibrary | None = None
    passes: Sequence[Pass] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict[str, AttributeValue])

    def __post_init__(self) -> None:
        _check(self)

    def hook(self, name: Literal["claim", "lower", "compile_kernel", "library"]) -> str:
        """Where a hook is, "module:attribute"; "" where there is none."""
        function = getattr(self, name)
        return "" if function is None else where_is(function)

    def passes_at(self, phase: Phase) -> tuple[str, ...]:
        """Where the functions of a phase are, in their order."""
        return tuple(where_is(item.run) for item in self.passes if item.phase == phase)

    def hooks(self) -> tuple[str, ...]:
        """Where all that it brings is."""
        own = [self.hook("claim"), self.hook("lower"), self.hook("compile_kernel")]
        found = [*own, self.hook("library"), *(where_is(item.run) for item in self.passes)]
        return tuple(dict.fromkeys(filter(None, found)))


def where_is(function: Callable[..., object]) -> str:
    """The "module:attribute" of a function of a module."""
    return f"{function.__module__}:{function.__qualname__}"


# ---- what a plug-in has to be --------------------------------------------------------------------


def _check(plugin: Plugin) -> None:
    name = cast("object", plugin.name)  # a plug-in need not be checked by anybody
    if not isinstance(name, str) or not (name.isidentifier() and name.isascii()):
        raise _wrong("a plug-in", "name", "letters, digits and _, such as 'accelerator'", name)
    what = f"plug-in {name}"
    for hook in ("claim", "lower", "compile_kernel", "library"):
        if getattr(plugin, hook) is not None:
            _check_function(what, hook, getattr(plugin, hook))
    if (plugin.claim is None) != (plugin.lower is None):
        given = "claim" if plugin.claim else "lower"
        raise _wrong(what, "claim and lower", "both, or none of them", f"{given} alone")
    _check_passes(what, plugin.passes)
    _check_attributes(what, plugin.attributes)


def _check_function(what: str, part: str, function: object) -> None:
    name = getattr(function, "__qualname__", "")
    if not callable(function) or not getattr(function, "__module__", "") or not name.isidentifier():
        raise _wrong(what, part, "a function that its module names", function)


def _check_passes(what: str, passes: object) -> None:
    if not isinstance(passes, list | tuple):
        raise _wrong(what, "passes", "a list of Pass", passes)
    for number, item in enumerate(cast("Sequence[object]", passes)):
        part = f"passes[{number}]"
        if not isinstance(item, Pass):
            raise _wrong(what, part, "a Pass", item)
        if item.phase not in PHASES:
            raise _wrong(what, f"{part}.phase", f"one of {', '.join(PHASES)}", item.phase)
        _check_function(what, f"{part}.run", item.run)


def _check_attributes(what: str, attributes: object) -> None:
    if not isinstance(attributes, Mapping):
        raise _wrong(what, "attributes", "names with their defaults", attributes)
    for name, default in cast("Mapping[object, object]", attributes).items():
        if not isinstance(name, str) or not name.isidentifier():
            raise _wrong(what, "attributes", "names of letters, digits and _", name)
        if not isinstance(default, str | int | bool):
            expected = "a text, a whole number or a truth value as the default"
            raise _wrong(what, f"attribute {name}", expected, default)


def _wrong(what: str, part: str, expected: str, got: object) -> PluginError:
    why = f"expected {expected}, got {got if isinstance(got, str) else repr(got)}"
    return PluginError("a plug-in is not what it has to be", f"{what}, {part}", why, _DO)


_DO = "correct the plug-in: docs/plugins.md says what each part is"
