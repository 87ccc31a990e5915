"""Rule ``digest_weights``: the tree over a bundle's weights; other code, names or options leave it
alone.

In: packed weights and their places. Out: the tree (FORMAT.md). Not done here: the digests
(``ingot_compiler.backends.host.support``), the bundle.
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.values.packed_constant import PackedConstant
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class DigestInputs:
    """``packed``: in the order of the file; ``weights_bytes``: of each section; ``support``: the
    support functions of the bundle's first ``target``, which compute the digests where this machine
    can run them. The digests do not depend on it."""

    packed: tuple[PackedConstant, ...]
    weights_bytes: tuple[int, ...]
    support: Artifact[memoryview]
    target: str


def _compute(context: RuleContext, inputs: DigestInputs) -> Artifact[memoryview]:
    from ingot_artifacts.bundle.weights_tree import weights_tree
    from ingot_compiler.backends.host.support.host import HostDigests
    from ingot_compiler.targets.host_target import host_target
    from ingot_compiler.targets.target import parse_target

    can_run = not parse_target(inputs.target).missing_on(host_target().features)
    digests = HostDigests(bytes(inputs.support.value()) if can_run else b"")
    chunks = (
        (packed.offset_bytes, packed.part_of(packed.content.value())) for packed in inputs.packed
    )
    return context.keep_bytes(weights_tree(chunks, inputs.weights_bytes, digests.mib_tree_entry))


DIGEST_WEIGHTS = Rule("digest_weights", 2, ("packed", "weights_bytes"), _compute)
