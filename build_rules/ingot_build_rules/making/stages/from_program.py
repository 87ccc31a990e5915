"""A program in its text form as a model: ``ingot compile FILE.ingot-text``.

In: the text. Out: ``ProgramModel``: the graph of its plan, the names of its inputs and nodes, its
devices. Not done here: planning (``programs.planner``), compiling (``from_text``).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from ingot_build_rules.making.options.compile_options import CompileOptions, DeviceOption
from ingot_build_rules.making.options.configure import configure
from ingot_build_rules.making.options.option_rows import FORBID
from ingot_build_rules.making.stages.from_text import device_text, read_text
from ingot_build_rules.making.stages.stage_weights import StageWeights, constants_of, weight_number
from ingot_compiler.backends.target_forms import GivenTargets
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import message
from ingot_compiler.placement.configuration import HOST
from ingot_compiler.placement.control import nodes_inside
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.lower_program import ENTRY, LoweredProgram, lower_program
from ingot_compiler.programs.parse_program import parse_program
from ingot_compiler.programs.plan_devices import with_own_devices
from ingot_compiler.programs.planner.plan import Plan, plan
from ingot_compiler.programs.planner.plan_steps import plan_steps
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef


@dataclass(frozen=True, slots=True)
class ProgramModel:
    """``devices``: beside the host, by name, as ``--device`` says them; ``names``: as the file of
    weights has them."""

    graph: Graph
    devices: dict[str, str]
    names: dict[str, Any]

    def named(self, given: StageWeights) -> StageWeights:
        """The weights with the names of the program, where their file says none."""
        return given if given.names is not None else StageWeights(given.weights, self.names)


def read_program(path: str, targets: GivenTargets = ()) -> ProgramModel:
    """Read, plan and lower a program; ``targets``: of the host, which devices without a target
    follow.

    Raises:
        UserError: no such file, no host. ModelError: it is no program, or its annotations
            contradict. UnsupportedError: it is no graph, or on a kind of device without code.
    """

    def target_of(device: VirtualDevice) -> str:
        with suppress(UserError, UnsupportedError):  # told where the device is used
            return configure(targets, {"d": device_text(device)}).named("d").target
        return device.target

    planned = plan(with_own_devices(parse_program(read_text(path)), target_of))
    made = planned.program
    lowered = lower_program(made)
    nodes = (each for node in lowered.graph.nodes for each in (node, *nodes_inside(node)))
    used = {node.mark for node in nodes} - {"", HOST}
    devices = {one.name: device_text(one.device) for one in made.devices if one.name in used}
    return ProgramModel(lowered.graph, devices, _names(path, planned, lowered))


def check_options(options: CompileOptions, devices: tuple[DeviceOption, ...], path: str) -> None:
    """Refuse options for what the text of a program says itself; ``devices``: what it says of them.

    Raises:
        UserError: names the option.
    """
    given = {
        "shape": bool(options.shapes),
        "place": bool(options.place),
        "device": options.devices not in ((), devices),
        "fallback": options.choices.fallback != FORBID,
    }
    for name in filter(given.__getitem__, given):
        what = message(OptionRef(name, ""), " with a program")
        raise UserError(what, path, "its text says it already", "leave it out")


def _names(path: str, planned: Plan, lowered: LoweredProgram) -> dict[str, Any]:
    graph, program = lowered.graph, planned.program
    steps = plan_steps(planned)
    weight_count = 1 + max(map(weight_number, constants_of(graph)), default=-1)
    return {
        "model": os.path.splitext(os.path.basename(path))[0],
        "inputs": [parameter.name for parameter in program.functions[ENTRY].parameters],
        "outputs": [f"output{index}" for index in range(len(graph.outputs))],
        "nodes": [[place, expression] for place, expression in lowered.sources],
        "plans": [steps.get(place, ()) for place, _ in lowered.sources],
        "symbols": [],
        "weights": [f"weight{index}" for index in range(weight_count)],
    }
