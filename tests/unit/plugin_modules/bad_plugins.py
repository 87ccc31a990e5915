"""Plug-ins that break their word, each in one way.

In: nothing. Out: targets. Not done here: what is said of them (``test_plugin_errors``).
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, cast

from ingot_compiler.ir.graph import Graph
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.plugins.claim import Offer, OpClaim
from ingot_compiler.plugins.compile_c import compile_c
from ingot_compiler.plugins.extern_call import extern_call
from ingot_compiler.plugins.plugin import Pass, Plugin
from ingot_compiler.plugins.settings import PluginSettings

_COUNTER = itertools.count()


def claim(offer: Offer) -> list[OpClaim]:
    """Every relu."""
    return [OpClaim("relu", (at,)) for at in offer.nodes if offer.graph.nodes[at].op == "relu"]


def lower(group: Group, _target: str, settings: PluginSettings) -> LoweredGroup:
    """One call of a function called like the plug-in."""
    return extern_call(group, f"{settings.plugin}_function")


def library(target: str, settings: PluginSettings) -> list[tuple[str, bytes]]:
    """The function that ``lower`` calls."""
    return [("a.c", compile_c(f"int {settings.plugin}_function(void) {{ return 0; }}", target))]


# ---- claims --------------------------------------------------------------------------------------


def claim_raises(_: Offer) -> list[OpClaim]:
    """Fail."""
    raise ValueError("no\nsecond line")


def claim_nothing(_: Offer) -> Any:
    """Forget to return."""


def claim_texts(_: Offer) -> Any:
    """Return what are no claims."""
    return ["relu"]


def claim_beyond(_: Offer) -> list[OpClaim]:
    """Claim a node that there is none of."""
    return [OpClaim("relu", (999,))]


def claim_constant(offer: Offer) -> list[OpClaim]:
    """Claim a node that was not offered."""
    nodes = offer.graph.nodes
    return [OpClaim("weight", (at,)) for at, node in enumerate(nodes) if node.op == "constant"]


def claim_apart(offer: Offer) -> list[OpClaim]:
    """Claim the ends of a chain without its middle."""
    return [OpClaim("ends", (offer.nodes[0], offer.nodes[-1]))]


def claim_cost(offer: Offer) -> list[OpClaim]:
    """State a cost that is none."""
    return [OpClaim("relu", offer.nodes[:1], cast("Any", "cheap"))]


def claim_name(offer: Offer) -> list[OpClaim]:
    """Give a claim a name that the text of a stage could not hold."""
    return [OpClaim("a relu", offer.nodes[:1])]


CLAIM_RAISES = Plugin("bad", claim=claim_raises, lower=lower)
CLAIM_NOTHING = Plugin("bad", claim=claim_nothing, lower=lower)
CLAIM_TEXTS = Plugin("bad", claim=claim_texts, lower=lower)
CLAIM_BEYOND = Plugin("bad", claim=claim_beyond, lower=lower)
CLAIM_CONSTANT = Plugin("bad", claim=claim_constant, lower=lower)
CLAIM_APART = Plugin("bad", claim=claim_apart, lower=lower)
CLAIM_COST = Plugin("bad", claim=claim_cost, lower=lower)
CLAIM_NAME = Plugin("bad", claim=claim_name, lower=lower)

# ---- lowering ------------------------------------------------------------------------------------


def lower_raises(_group: Group, _target: str, _settings: PluginSettings) -> LoweredGroup:
    """Fail without a word."""
    raise KeyError


def lower_text(_group: Group, _target: str, _settings: PluginSettings) -> Any:
    """Return something else."""
    return "relu"


def lower_reader(group: Group, target: str, settings: PluginSettings) -> LoweredGroup:
    """Give steps that read a buffer that there is none of."""
    lowered = lower(group, target, settings)
    program = lowered.programs[0]
    return replace(lowered, programs=(replace(program, buffers=program.buffers[:1]),))


def loops_other(program: LoopProgram, _target: str, _settings: PluginSettings) -> LoopProgram:
    """Change what the kernel is given."""
    return replace(program, buffers=program.buffers[:1])


LOWER_RAISES = Plugin("bad", claim=claim, lower=lower_raises)
LOWER_TEXT = Plugin("bad", claim=claim, lower=lower_text)
LOWER_READER = Plugin("bad", claim=claim, lower=lower_reader)
LOOPS_OTHER = Plugin("bad", claim=claim, lower=lower, passes=[Pass("loops", loops_other)])

# ---- code ----------------------------------------------------------------------------------------


def compile_text(_program: LoopProgram, _target: str, _settings: PluginSettings) -> Any:
    """Return a symbol without code."""
    return "symbol", "code"


def compile_other(_program: LoopProgram, target: str, _: PluginSettings) -> tuple[str, bytes]:
    """Define another symbol than the one returned."""
    return "kernel", compile_c("int another(void) { return 0; }", target)


def library_text(_target: str, _settings: PluginSettings) -> list[tuple[str, bytes]]:
    """Bring something that is no object."""
    return [("a.o", b"text")]


def library_twice(target: str, settings: PluginSettings) -> list[tuple[str, bytes]]:
    """Bring a function twice."""
    (_, content), *_ = library(target, settings)
    return [("a.c", content), ("b.c", content)]


def library_calls(target: str, settings: PluginSettings) -> list[tuple[str, bytes]]:
    """Bring a function that calls one that nobody has."""
    name = f"{settings.plugin}_function"
    source = f'int printf(const char *, ...); int {name}(void) {{ return printf("x"); }}'
    return [("a.c", compile_c(source, target))]


def library_c(target: str, _settings: PluginSettings) -> list[tuple[str, bytes]]:
    """Bring C that the compiler refuses."""
    return [("a.c", compile_c("int (", target))]


def library_writes(target: str, settings: PluginSettings) -> list[tuple[str, bytes]]:
    """Bring a function with a variable of its own: an image has no writable data."""
    source = f"static int count; int {settings.plugin}_function(void) {{ return count++ < 0; }}"
    return [("a.c", compile_c(source, target))]


COMPILE_TEXT = Plugin("bad", claim=claim, lower=lower, library=library, compile_kernel=compile_text)
COMPILE_OTHER = Plugin(
    "bad", claim=claim, lower=lower, library=library, compile_kernel=compile_other
)
LIBRARY_NONE = Plugin("bad", claim=claim, lower=lower)
LIBRARY_TEXT = Plugin("bad", claim=claim, lower=lower, library=library_text)
LIBRARY_TWICE = Plugin("bad", claim=claim, lower=lower, library=library_twice)
LIBRARY_CALLS = Plugin("bad", claim=claim, lower=lower, library=library_calls)
LIBRARY_C = Plugin("bad", claim=claim, lower=lower, library=library_c)
LIBRARY_WRITES = Plugin("bad", claim=claim, lower=lower, library=library_writes)

# ---- graphs --------------------------------------------------------------------------------------


def graph_malformed(graph: Graph, _: PluginSettings) -> Graph:
    """Forget a node that others need."""
    return replace(graph, nodes=graph.nodes[1:])


def graph_other(graph: Graph, _: PluginSettings) -> Graph:
    """Return one output more."""
    return replace(graph, outputs=(*graph.outputs, graph.inputs[0]))


def claim_random(offer: Offer) -> list[OpClaim]:
    """Give a claim another name each time."""
    return [replace(each, name=f"relu{next(_COUNTER)}") for each in claim(offer)]


def claim_unordered(offer: Offer) -> list[OpClaim]:
    """Give a claim a name that the hash seed of the process decides."""
    first = next(iter({f"relu{number}" for number in range(1000)}))
    return [replace(each, name=first) for each in claim(offer)]


GRAPH_MALFORMED = Plugin("bad", passes=[Pass("graph", graph_malformed)])
GRAPH_OTHER = Plugin("bad", passes=[Pass("graph", graph_other)])
RANDOM = Plugin("bad", claim=claim_random, lower=lower, library=library)
UNORDERED = Plugin("bad", claim=claim_unordered, lower=lower, library=library)
NO_PLUGIN = "accelerator"
