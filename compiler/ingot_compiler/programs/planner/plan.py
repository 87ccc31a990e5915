"""Plans a program: every expression gets a device.

In: a program, perhaps annotated. Out: ``Plan``: the same program with all devices written down.
Not done here: the steps (one file each).
"""

from __future__ import annotations

from ingot_compiler.placement.configuration import Configuration
from ingot_compiler.programs.infer_types import infer_types
from ingot_compiler.programs.plan_devices import plan_configuration, with_own_devices
from ingot_compiler.programs.planner.capture import capture
from ingot_compiler.programs.planner.collect import collect
from ingot_compiler.programs.planner.defaults import give_defaults
from ingot_compiler.programs.planner.function_order import function_order
from ingot_compiler.programs.planner.name_devices import name_devices
from ingot_compiler.programs.planner.network import Network
from ingot_compiler.programs.planner.prepare import prepare
from ingot_compiler.programs.planner.solution import Solution
from ingot_compiler.programs.planner.solve import solve
from ingot_compiler.programs.program import Program
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned program, and how it came about: ``prepared`` is the program that ``network`` and
    ``solution`` are about."""

    program: Program
    prepared: Program
    network: Network
    solution: Solution


def plan(program: Program, configuration: Configuration | None = None) -> Plan:
    """Plan a program that ``verify_program`` accepts.

    Raises:
        ModelError: annotations contradict one another, or name a kind of device that there is none
            of.
        UserError: no host is declared.
    """
    program = with_own_devices(program)
    configuration = configuration or plan_configuration(program)
    prepared = prepare(program)
    types = infer_types(prepared).types
    order = function_order(prepared)
    network = collect(prepared, types, configuration, order)
    solution = solve(network)
    give_defaults(prepared, order, network, solution, configuration)
    planned = capture(prepared, network, solution)
    return Plan(name_devices(planned), prepared, network, solution)
