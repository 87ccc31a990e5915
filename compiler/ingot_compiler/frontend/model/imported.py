"""Stage 2, ``ImportedModel``: the model file's operations with ordinals for names and numbers for
weights.

In: what ``import_model`` read. Out: the frozen stage. Not done here: reading files, text
(``print_imported``), types (``infer_types``).

Tensor ordinals: graph inputs, then initializers, then node results in topological order; -1 is an
absent optional tensor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.sizes.profile import Profile
from ingot_compiler.ir.types import DType, TensorType
from ingot_runtime.lazy_dataclass import dataclass

ABSENT = -1


@dataclass(frozen=True, slots=True)
class ImportedRegion:
    """A graph that is an attribute. Its tensors' ordinals continue after those it can see, and are
    used nowhere else.

    Initializers follow the inputs in the order of ordinals; node ``i`` has the ordinal
    ``first_node + i``.
    """

    inputs: tuple[int, ...]
    initializers: tuple[tuple[int, ConstantSource], ...]
    nodes: tuple[ImportedNode, ...]
    outputs: tuple[int, ...]
    first_node: int


ImportedAttribute = (
    int
    | float
    | str
    | tuple[int, ...]
    | tuple[float, ...]
    | tuple[str, ...]
    | ConstantSource
    | ImportedRegion
)


@dataclass(frozen=True, slots=True)
class ImportedNode:
    """One node as in the file; its ordinal is its position. ``domain`` is "" for the ONNX
    domain."""

    op: str
    domain: str
    attributes: tuple[tuple[str, ImportedAttribute], ...]  # sorted by name
    operands: tuple[int, ...]
    results: tuple[int, ...]
    mark: str = ""

    def reads(self) -> tuple[int, ...]:
        """Its operands, and the tensors outside that its regions read; each once."""
        return tuple(dict.fromkeys((*self.operands, *_captured(self))))


def _captured(node: ImportedNode) -> Iterator[int]:
    for _, region in node.attributes:
        if isinstance(region, ImportedRegion):
            made = {result for inner in region.nodes for result in inner.results}
            own = {*region.inputs, *(ordinal for ordinal, _ in region.initializers), *made}
            reads = (
                *(ordinal for inner in region.nodes for ordinal in inner.reads()),
                *region.outputs,
            )
            yield from (ordinal for ordinal in reads if ordinal not in own and ordinal != ABSENT)


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """What the file says of a tensor; None: says nothing (of the element type, the rank, a
    dimension)."""

    dtype: DType | None
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """Every op is recognised, every operand is defined before its use; names are beside it
    (``ir.graph.Names``)."""

    inputs: tuple[TensorType, ...]
    initializers: tuple[ConstantSource, ...]
    nodes: tuple[ImportedNode, ...]
    outputs: tuple[int, ...]
    declared: tuple[DeclaredType, ...]  # one per output
    opsets: tuple[tuple[str, int], ...]  # sorted by domain
    profiles: tuple[Profile, ...] = ()  # what ``--shape`` asks for, in the order of preference
    expanded_bytes: int = (
        0  # of the bodies that took the place of calls of the model's own functions
    )
    alike: tuple[tuple[str, ...], ...] = ()  # symbols of inputs that the file calls by one name
    defaults: tuple[tuple[int, ConstantSource], ...] = ()  # of inputs, by position
    declared_inside: tuple[tuple[int, DeclaredType], ...] = ()  # of nodes' results, by ordinal
    seed: int | None = None  # the input that random numbers come from
    # How many tensors make up each input of the file, and what they are (``value_forms``); none
    # where all are tensors.
    forms: tuple[str, ...] = ()

    def opset(self, domain: str) -> int:
        """The opset version of a domain that some node uses."""
        return dict(self.opsets)[domain]


def fits_input(default: TensorType, tensor_type: TensorType) -> bool:
    """Whether a value of one type may be an input of another, which may have open sizes."""
    pairs = zip(default.shape, tensor_type.shape, strict=False)
    same = default.dtype == tensor_type.dtype and default.rank == tensor_type.rank
    return same and all(size == dim or not isinstance(dim, int) for size, dim in pairs)
