"""Lowers a claimed group by the hook of its plug-in, and runs its functions of the phase ``loops``.

In: a group, hooks. Out: ``LoweredGroup``, verified. Not done here: machine code
(``compile_claimed``).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.message import Text, nodes_text
from ingot_compiler.lowering.groups.fused import Group, buffers_of
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, launches_in
from ingot_compiler.lowering.groups.verify_lowered import verify_lowered
from ingot_compiler.lowering.loops.program import CallExtern, LoopProgram
from ingot_compiler.lowering.loops.verify_loops import verify_loops
from ingot_compiler.plugins.call_hook import call_hook, plugin_error
from ingot_compiler.plugins.plugin import LowerClaimed, RewriteLoops
from ingot_compiler.plugins.settings import PluginSettings


def lower_claimed(
    group: Group,
    target: str,
    settings: PluginSettings,
    lower: LowerClaimed,
    passes: Sequence[RewriteLoops],
) -> LoweredGroup:
    """Return what runs for the group.

    Raises:
        PluginError: a hook fails, or what it gives is malformed or does not fit the group.
    """
    call = functools.partial(lower, group, target, settings)
    lowered = call_hook(settings, "lower", LoweredGroup, call)
    for rewrite in passes:
        programs = (_rewritten(program, target, settings, rewrite) for program in lowered.programs)
        lowered = replace(lowered, programs=tuple(programs))
    try:
        _verify(lowered, group)
    except (InternalError, AttributeError, TypeError) as error:
        why = error.why if isinstance(error, InternalError) else str(error)
        what = f"lower gave wrong steps for {group.kind}"
        raise plugin_error(settings, what, why, _where(error, group)) from error
    return lowered


def _rewritten(
    program: LoopProgram, target: str, settings: PluginSettings, rewrite: RewriteLoops
) -> LoopProgram:
    call = functools.partial(rewrite, program, target, settings)
    made = call_hook(settings, "a pass at phase loops", LoopProgram, call)
    same = made.buffers == program.buffers and made.scalars == program.scalars
    if not same:
        why = "expected a program of the same buffers and scalars, got another"
        raise plugin_error(settings, "a pass at phase loops made a wrong program", why)
    return made


def _verify(lowered: LoweredGroup, group: Group) -> None:
    verify_lowered(lowered)
    by_buffer = {operand.buffer: operand for operand in (*group.operands, *group.results)}
    own = [by_buffer[buffer].type.element_count for buffer in buffers_of(group)]
    if lowered.steps.group_buffer_count > len(own):
        why = f"expected at most {len(own)} buffers, got {lowered.steps.group_buffer_count}"
        raise InternalError("a wrong group", why=why)
    counts = [*own, *(count for _, count in lowered.steps.workspace)]
    for launch in launches_in(lowered.steps.steps):
        program = lowered.programs[launch.program]
        verify_loops(program, [counts[buffer] for buffer in launch.buffers])
        if any(isinstance(each, CallExtern) and each.number for each in program.body):
            raise InternalError("a wrong group", why="expected calls with number 0, got another")


def _where(error: Exception, group: Group) -> Text:
    if isinstance(error, InternalError) and error.where:
        return error.where
    return nodes_text(group.source)
