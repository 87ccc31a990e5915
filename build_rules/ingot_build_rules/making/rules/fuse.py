"""Rule ``fuse``: PlacedGraph to FusedGraph, per target of the host, and those parts of it on which
others depend alone.

In: a placed graph, perhaps the one for the sizes of ``--shape``, the devices' targets and back
ends. Out: ``Fused``. Not done here: fusion (``ingot_compiler.lowering``), what it is told of a
device (``ingot_compiler.backends``).
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext
from ingot_build_rules.making.options.option_rows import GENERAL, REFUSE
from ingot_build_rules.making.values.constant_batches import batches
from ingot_compiler.ir.dims import evaluate
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.precision import F32, SPEED
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.backends.backend import MakeDeviceRules
    from ingot_compiler.ir.graph import Graph
    from ingot_compiler.ir.sizes.profile import Profile
    from ingot_compiler.ir.types import TensorType
    from ingot_compiler.lowering.fusion.device_rules import DeviceRules
    from ingot_compiler.lowering.groups.fused import BufferSpec, FusedGraph, Group
    from ingot_compiler.placement.placed import PlacedGraph


@dataclass(frozen=True, slots=True)
class FuseInputs:
    """``hooks`` (``Backend.device_rules``) and ``targets``: one per device, the host's first.
    ``specialisations``: the graphs for ``profiles``, beside the general one, or, where
    ``other_shapes`` are refused, in its place. ``methods``: of layers, by the number of a node, as
    they were measured."""

    placed: Artifact[PlacedGraph]
    hooks: tuple[str, ...]
    targets: tuple[str, ...]
    specialisations: tuple[Artifact[PlacedGraph], ...] = ()
    profiles: tuple[Profile, ...] = ()
    other_shapes: str = GENERAL
    precision: str = F32
    optimize: str = SPEED
    methods: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FusedConstant:
    """One constant: the digest of the expression that packs it, that and those packed with it, its
    place among their bytes, the numbers of the weights that it reads, its bytes when packed, those
    of the largest value on the way, and the device that has it."""

    name: str
    expressions: Artifact[tuple[Graph, ...]]
    start_bytes: int
    leaves: tuple[str, ...]
    size_bytes: int
    work_bytes: int
    device: int


@dataclass(frozen=True, slots=True)
class Fused:
    """``groups``: one per kernel launch, in canonical numbers, so that equal layers are one
    artifact; ``sources`` and ``devices``: the imported nodes of each, where it runs, and the
    plug-in that has claimed it ("" for none); ``inputs`` and ``outputs``: types of the graph's."""

    fused: Artifact[FusedGraph]
    groups: tuple[Artifact[Group], ...]
    sources: tuple[tuple[int, ...], ...]
    devices: tuple[int, ...]
    plugins: tuple[str, ...]
    constants: tuple[FusedConstant, ...]
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]


def _compute(context: RuleContext, inputs: FuseInputs) -> Fused:
    from ingot_compiler.host_program.specialisation import append_specialisation, refuse_others
    from ingot_compiler.lowering import fuse as lowering
    from ingot_compiler.lowering.groups.canonical_group import canonical_group
    from ingot_compiler.lowering.groups.fused import groups_of

    hooks = zip(inputs.hooks, inputs.targets, strict=True)
    devices = [_device_rules(context, *pair) for pair in hooks]
    wishes = (inputs.precision, inputs.optimize, inputs.methods)
    fused = lowering.fuse(inputs.placed.value(), devices, *wishes)
    if inputs.profiles and inputs.other_shapes == REFUSE:
        fused = refuse_others(fused, inputs.profiles)
    for profile, placed in zip(inputs.profiles, inputs.specialisations, strict=True):
        specialised = lowering.fuse(placed.value(), devices, *wishes)
        fused = append_specialisation(fused, specialised, profile)
    groups = groups_of(fused)
    return Fused(
        context.keep(fused),
        tuple(context.keep(canonical_group(group)) for group in groups),
        tuple(group.source for group in groups),
        tuple(group.device for group in groups),
        tuple(group.plugin for group in groups),
        _constants(context, fused),
        fused.inputs,
        fused.outputs,
    )


def _device_rules(context: RuleContext, hook: str, target: str) -> DeviceRules:
    make: MakeDeviceRules = context.load(hook)
    return make(target)


def _constants(context: RuleContext, fused: FusedGraph) -> tuple[FusedConstant, ...]:
    """Return the constants in the order of ``fused.constants``, each with what its buffer says."""
    from ingot_compiler.ir.digest import graph_digest

    buffers = {buffer.index: buffer for buffer in fused.buffers if buffer.kind == "constant"}
    names = [graph_digest(expression) for expression in fused.constants]
    sizes = [_size_bytes(buffers[index]) for index in range(len(names))]
    work = [_work_bytes(expression) for expression in fused.constants]
    places: dict[str, tuple[Artifact[tuple[Graph, ...]], int]] = {}
    for batch in batches(list(zip(names, work, strict=True))):
        kept = context.keep(tuple(fused.constants[index] for index in batch))
        starts = accumulate((sizes[index] for index in batch), initial=0)
        places |= {names[index]: (kept, start) for index, start in zip(batch, starts, strict=False)}
    return tuple(
        FusedConstant(
            name,
            *places[name],
            _leaves(fused.constants[index]),
            sizes[index],
            work[index],
            buffers[index].device,
        )
        for index, name in enumerate(names)
    )


def _size_bytes(buffer: BufferSpec) -> int:
    from ingot_compiler.ir.types import dtype_size_bytes

    if not isinstance(buffer.element_count, int):
        raise InternalError("a constant has a symbolic size", where=f"constant {buffer.index}")
    return buffer.element_count * dtype_size_bytes(buffer.dtype)


def _work_bytes(expression: Graph) -> int:
    """Return the bytes of the largest value of an expression."""
    return max(int(evaluate(tensor_type.size_bytes, {})) for tensor_type in expression.types)


def _leaves(expression: Graph) -> tuple[str, ...]:
    """The constants that an expression reads, each once, in its order."""
    read = (node.text("weight") for node in expression.nodes if node.op == "constant")
    return tuple(dict.fromkeys(read))


FUSE = Rule(
    "fuse",
    1,
    (
        "placed",
        "hooks",
        "targets",
        "specialisations",
        "profiles",
        "other_shapes",
        "precision",
        "optimize",
        "methods",
    ),
    _compute,
    loads=("hooks",),
)
