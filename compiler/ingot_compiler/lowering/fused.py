"""The fused graph: which values are stored where and how, and which operations run as one kernel.

In: nothing. Out: ``FusedGraph`` (stage 6) and its parts. Not done here: making it (``fuse``), loops (``lower``).

A ``View`` says how a logical tensor lies in a buffer: element (i0, i1, ...) is at ``offset + i0*strides[0] + ...``.
Transposes, slices, broadcasts, most reshapes and haloes of zeros are views, never work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.types import DType, TensorType


@dataclass(frozen=True, slots=True)
class View:
    """Strides and offset in elements; one stride per axis of the logical tensor (0 = broadcast)."""

    strides: tuple[Dim, ...]
    offset: Dim = 0


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """One buffer. ``index``: position of the graph input or output, or of the constant; -1 for workspace.

    ``element_count`` includes haloes and padding. ``device`` indexes the virtual-device table.
    """

    kind: OneOf["input", "output", "workspace", "constant"]
    dtype: DType
    element_count: Dim
    index: int = -1
    device: int = 0


@dataclass(frozen=True, slots=True)
class Operand:
    """A logical tensor as a group sees it: value id ``value`` of ``type`` lies in ``buffer`` by ``view``."""

    value: int
    type: TensorType
    buffer: int
    view: View


@dataclass(frozen=True, slots=True)
class Group:
    """The operations of one kernel.

    ``kind`` picks the lowering; ``nodes`` in order; ``operands`` are read, ``results`` written; values between are
    never stored. ``types`` gives the type of every value that the nodes name. ``anchor`` indexes the node that
    decides the loops (contraction, reduction), -1 when all are elementwise. ``ends``: why no later operation joined, where
    one was offered.
    """

    kind: str
    nodes: tuple[Node, ...]
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    types: tuple[tuple[int, TensorType], ...]
    anchor: int = -1
    source: tuple[int, ...] = ()
    device: int = 0
    ends: str = ""


@dataclass(frozen=True, slots=True)
class SymbolRead:
    """``symbol = buffer[index]``: a dimension that is only known after the groups before it have run."""

    symbol: str
    buffer: int
    index: Dim
    dtype: DType


@dataclass(frozen=True, slots=True)
class Requirement:
    """``difference`` must be 0, or the model means nothing for these sizes; ``source`` are the ops that say so."""

    difference: Dim
    what: str
    source: tuple[int, ...] = ()


Step = Group | SymbolRead | Requirement


@dataclass(frozen=True, slots=True)
class Special:
    """Steps from ``first_step`` on are another way to run the model, for the sizes (symbol, value) given; those before
    it work for any size."""

    first_step: int
    sizes: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class FusedGraph:
    """Stage 6: everything that runs, in order, and where it reads and writes.

    ``inputs``/``outputs`` are the graph's tensor types; ``constants`` are expression graphs (no inputs, one output)
    whose dense bytes fill the constant buffers, in order of ``BufferSpec.index``.
    """

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    buffers: tuple[BufferSpec, ...]
    steps: tuple[Step, ...]
    constants: tuple[Graph, ...]
    special: Special | None = None
