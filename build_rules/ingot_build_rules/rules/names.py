"""Rule ``names``: the user's names joined with types: inputs and outputs as outsiders see them.

In: names of an import, types. Out: ``Interface``. Not done here: joining names to reports
(``bundle``, errors). A renamed node changes this artifact and none between it and ``bundle``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.rules.interface import Interface, check_interface, make_interface

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Names
    from ingot_compiler.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class NamesInputs:
    """Types of the graph's inputs and outputs, in order."""

    names: Artifact[Names]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]


def _compute(_: RuleContext, inputs: NamesInputs) -> Interface:
    interface = make_interface(inputs.inputs, inputs.outputs, inputs.names.value())
    check_interface(interface)
    return interface


NAMES = Rule("names", 1, ("names", "inputs", "outputs"), _compute)
