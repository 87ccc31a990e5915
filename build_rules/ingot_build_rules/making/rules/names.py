"""Rule ``names``: the user's names joined with types: inputs and outputs as outsiders see them.

In: names of an import, types. Out: ``Interface``, and
warnings of what the file says wrongly. Not done here: joining names to reports
(``bundle``, errors). A renamed node changes this artifact and none between it and ``bundle``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.values.interface import Interface, check_interface, make_interface
from ingot_compiler.ir.in_names import text_in_names
from ingot_compiler.ir.value_forms import count_of, of_tensors
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import Names
    from ingot_compiler.ir.message import Text
    from ingot_compiler.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class NamesInputs:
    """Types of the graph's inputs and outputs, in order; ``contradictions``: what to warn of;
    ``forms``: of inputs and outputs, none where all are tensors."""

    names: Artifact[Names]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    contradictions: Artifact[tuple[Text, ...]] | None = None
    forms: tuple[tuple[str, ...], ...] = ()


def _compute(context: RuleContext, inputs: NamesInputs) -> Interface:
    names = inputs.names.value()
    for ignored in names.ignored:
        context.warn(f"ignored {ignored}")
    for text in inputs.contradictions.value() if inputs.contradictions else ():
        context.warn(text_in_names(text, names))
    interface = make_interface(inputs.inputs, inputs.outputs, of_tensors(names, inputs.forms))
    interface = replace(interface, values=_values(names, inputs.forms))
    check_interface(interface)
    return interface


def _values(
    names: Names, forms: tuple[tuple[str, ...], ...]
) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Name and form of each input, and of each output."""
    if not forms:
        return ()
    given, made = forms
    firsts = accumulate(map(count_of, given), initial=0)
    called = [names.inputs[first] for first, _ in zip(firsts, given, strict=False)]
    pairs = zip(called, given, strict=True), zip(names.outputs, made, strict=True)
    return tuple(map(tuple, pairs))


NAMES = Rule("names", 1, ("names", "inputs", "outputs", "contradictions", "forms"), _compute)
