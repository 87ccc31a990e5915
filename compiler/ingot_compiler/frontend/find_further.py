"""What else of a model has no translation, where import refuses some of it: one error lists all.

In: a model with what import refuses, its small constants. Out: findings. Not done here: what import
finds itself (``import_model``), the translation (``infer_types``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.translation import Translation
from ingot_compiler.frontend.infer_types import find_untranslated
from ingot_compiler.frontend.model.findings import ImportFinding
from ingot_compiler.frontend.model.imported import ImportedModel
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.constants import ConstantReader, ConstantWriter
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.in_names import text_in_names
from ingot_compiler.ir.message import NodeRef, message
from ingot_runtime.lazy_dataclass import dataclass

_SMALL_BYTES_MAX = 1 << 16


@dataclass(frozen=True, slots=True)
class SmallConstants:
    """Stores constants, and keeps those from which a shape may be read."""

    store: ConstantWriter
    kept: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def write(self, content: memoryview) -> str:
        """Store one; return its number."""
        number = self.store(content)
        if content.nbytes <= _SMALL_BYTES_MAX:
            self.kept[number] = bytes(content)
        return number

    def read(self, number: str) -> memoryview:
        """Return the bytes of a small one.

        Raises:
            ModelError: a large one, which decides no type.
        """
        if number not in self.kept:
            raise ModelError("a large constant decides a shape", f"weight {number}")
        return memoryview(self.kept[number])


@dataclass(frozen=True, slots=True)
class Refused:
    """``model``: without the inputs and initializers that Ingot does not read; ``inputs`` and
    ``initializers``: the tensor ordinals of those that it has."""

    model: ImportedModel
    names: Names
    inputs: Sequence[int]
    initializers: Sequence[int]


def find_further(
    found: Refused, findings: Sequence[ImportFinding], read: ConstantReader
) -> list[ImportFinding]:
    """Return what ``findings`` lack, in the user's names."""
    refused = {finding.node for finding in findings}
    nodes = enumerate(found.names.nodes)
    ordinals = [ordinal for ordinal, (name, _) in nodes if f"node {name!r}" in refused]
    translation = Translation(GraphBuilder(found.model.inputs), read)
    values = {ordinal: value for value, ordinal in enumerate(found.inputs)}
    context = OpContext.of_constant(translation)
    for ordinal, constant in zip(found.initializers, found.model.initializers, strict=True):
        values[ordinal] = context.constant(constant)
    further = find_untranslated(found.model, values, ordinals, translation)
    return [_in_names(finding, found.names) for finding in further]


def _in_names(finding: ImportFinding, names: Names) -> ImportFinding:
    """A finding with names where there were numbers."""
    assert isinstance(finding.node, NodeRef)
    name, _ = names.nodes[finding.node.ordinal]
    reason = text_in_names(message(finding.reason), names)
    return replace(finding, node=f"node {name!r}", reason=reason)
