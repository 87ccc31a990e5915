"""The fused graph: which values are stored where and how, and which operations run as one kernel.

In: nothing. Out: ``FusedGraph`` (stage 6) and its parts. Not done here: making it (``fuse``), loops
(``lower``).

A ``View`` says how a logical tensor lies in a buffer: element (i0, i1, ...) is at
``offset + i0*strides[0] + ...``. Transposes, slices, broadcasts, most reshapes and haloes of zeros
are views, never work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar
from typing import Literal as OneOf

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.message import Text
from ingot_compiler.ir.sizes.profile import Profile
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.loops.loop_values import BufferNumber
from ingot_runtime.lazy_dataclass import dataclass

Position = Annotated[int, "of an input, an output or a constant; -1 for none"]
SymbolName = Annotated[str, "a symbol"]
AlsoCondition = Annotated[str, 'a symbol that must not be 0; "" for none']
Spare = Annotated[int, "a buffer by way of which others move; -1 for none"]
Source = Annotated[tuple[int, ...], "ordinals of imported nodes"]
CopyPart = OneOf["whole", "begin", "end"]


@dataclass(frozen=True, slots=True)
class View:
    """Strides and offset in elements; one stride per axis of the logical tensor (0 = broadcast)."""

    strides: tuple[Dim, ...]
    offset: Dim = 0


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """One buffer. ``index``: position of the graph input or output, or of the constant; -1 for
    workspace.

    ``element_count`` includes haloes and padding. ``device`` indexes the virtual-device table.
    """

    TEXT: ClassVar = "$dtype x $element_count, $kind$index| on device $device|"
    kind: OneOf["input", "output", "workspace", "constant"]
    dtype: DType
    element_count: Dim
    index: Position = -1
    device: int = 0


@dataclass(frozen=True, slots=True)
class Operand:
    """A logical tensor as a group sees it: value id ``value`` of ``type`` lies in ``buffer`` by
    ``view``."""

    value: int
    type: TensorType
    buffer: int
    view: View


@dataclass(frozen=True, slots=True)
class Group:
    """The operations of one kernel.

    ``method`` says how its loops are computed; ``nodes`` in order; ``operands`` are read, ``results`` written;
    values between are never stored. ``types`` gives the type of every value that the nodes name.
    ``anchor`` indexes the node that decides the loops (contraction, reduction), -1 when all are
    elementwise. ``stop_reason``: why no later operation joined, where one was offered. ``plugin``:
    the plug-in that has claimed the operations and lowers them, the method's kind is its name for them; ""
    where the device's back end does.
    """

    method: Method
    nodes: tuple[Node, ...]
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    types: tuple[tuple[int, TensorType], ...]
    anchor: int = -1
    source: tuple[int, ...] = ()
    device: int = 0
    stop_reason: str = ""
    plugin: str = ""

    @property
    def kind(self) -> str:
        """The kind of its kernel."""
        return self.method.kind

    @property
    def fills_halo(self) -> bool:
        """Whether it computes no value of the graph, but writes what stands around an image."""
        return self.kind == "fill_halo"


@dataclass(frozen=True, slots=True)
class SymbolRead:
    """``symbol = buffer[index]``: a dimension that is only known after the groups before it have
    run.

    It must be >= 0, unless it is no size but a condition or a trip count. ``source`` are the ops
    that read it; ``most`` is a number that it is never above, None where none is known.
    """

    TEXT: ClassVar = "read $is_size $symbol = $buffer[$index]: $dtype| at most $most|$source"
    symbol: SymbolName
    buffer: BufferNumber
    index: Dim
    dtype: DType
    is_size: bool = True
    source: Source = ()
    most: int | None = None


@dataclass(frozen=True, slots=True)
class SymbolSet:
    """``symbols = values``, all at once; a symbol may be set again and again."""

    TEXT: ClassVar = "set $symbols = $values"
    symbols: tuple[SymbolName, ...]
    values: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class HeldPair:
    """Output ``output`` may lie where input ``input`` does; ``row_bytes``: of one step along the
    axis along which it grows."""

    TEXT: ClassVar = "$input in $output by $row_bytes"
    input: int
    output: int
    row_bytes: Dim


@dataclass(frozen=True, slots=True)
class HoldState:
    """How some pairs of an input and an output lie, which hold the same number of rows.

    Where each output begins where its input does, ``capacity`` is for how many rows there is
    memory, ``pitch`` the same, and ``moved`` 0: the rows of the input lie in the output already.
    Else ``capacity`` is ``rows``, those of the output; ``pitch`` is ``past``, those of the input;
    ``moved`` is 1.
    """

    TEXT: ClassVar = "hold $capacity, $pitch, $moved from $past to $rows: $pairs"
    capacity: SymbolName
    pitch: SymbolName
    moved: SymbolName
    rows: Dim
    past: Dim
    pairs: tuple[HeldPair, ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        """What it binds."""
        return self.capacity, self.pitch, self.moved


@dataclass(frozen=True, slots=True)
class Grow:
    """Room for ``element_count`` elements in a workspace buffer of its own; the first ``kept``
    stay, moved by way of ``spare``."""

    TEXT: ClassVar = "grow $buffer to $element_count|, keep $kept$spare|"
    buffer: BufferNumber
    element_count: Dim
    kept: Dim = 0
    spare: Spare = -1


@dataclass(frozen=True, slots=True)
class Copy:
    """Buffer ``result`` gets the bytes of buffer ``operand``, which lies on another device;
    ``source`` are the ops that need it there.

    Where ``part`` is ``begin``, it has them behind the ``end`` of the same copy; until then nobody
    may read the one or write the other.
    """

    TEXT: ClassVar = "$part $operand to $result$source"
    operand: BufferNumber
    result: BufferNumber
    source: Source = ()
    part: CopyPart = "whole"


COPY_WORDS: Mapping[CopyPart, str] = {"whole": "copy", "begin": "begin_copy", "end": "end_copy"}
"""What the parts of a copy are called in texts and programs."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """``difference`` must be 0, or the model means nothing for these sizes; ``source`` are the ops
    that say so."""

    TEXT: ClassVar = "require $difference = 0, $what$source"
    difference: Dim
    what: Text
    source: Source = ()


@dataclass(frozen=True, slots=True)
class IfStep:
    """``then`` when the symbol ``condition`` is not 0, else ``otherwise``."""

    TEXT: ClassVar = "if $condition {\n$then} else {\n$otherwise}"
    condition: SymbolName
    then: FirstSteps
    otherwise: OtherSteps


@dataclass(frozen=True, slots=True)
class LoopStep:
    """``body`` while ``counter`` (a symbol that counts from 0) is below ``count`` and the symbol
    ``condition`` is not 0.

    ``condition`` "" is always true. ``held`` are buffers that keep their contents from one
    iteration to the next.
    """

    TEXT: ClassVar = "while $counter < $count$condition$held {\n$body}"
    counter: SymbolName
    count: Dim
    condition: AlsoCondition
    body: FirstSteps
    held: tuple[BufferNumber, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel of a group that is lowered (``expand_groups``): a group is one or
    several of them.

    ``program`` counts the programs of all groups, ``buffers`` are the kernel's.
    """

    group: Group
    program: int
    buffers: tuple[int, ...]

    @property
    def results(self) -> tuple[Operand, ...]:
        """The results of the group that are complete behind this launch."""
        return tuple(result for result in self.group.results if result.buffer in self.buffers)


Step = (
    SymbolRead
    | SymbolSet
    | HoldState
    | Grow
    | Requirement
    | Copy
    | IfStep
    | LoopStep
    | Group
    | Launch
)
FirstSteps = Annotated[tuple[Step, ...], "part 0 of a step"]
OtherSteps = Annotated[tuple[Step, ...], "part 1 of a step"]


def parts_of(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The lists of steps inside a step."""
    if isinstance(step, IfStep):
        return step.then, step.otherwise
    return (step.body,) if isinstance(step, LoopStep) else ()


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step, and behind it those inside it: the order in which kernels are numbered."""
    for step in steps:
        yield step
        for part in parts_of(step):
            yield from all_steps(part)


def step_count(steps: Sequence[Step]) -> int:
    """How many numbers some steps take in the memory plan: one each, and one for the end of each
    branch and loop."""
    return sum(2 if parts_of(step) else 1 for step in all_steps(steps))


def groups_of(fused: FusedGraph) -> tuple[Group, ...]:
    """The groups of a graph, in the order of their numbers."""
    return tuple(step for step in all_steps(fused.steps) if isinstance(step, Group))


def launches_of(fused: FusedGraph) -> tuple[Launch, ...]:
    """The launches of a graph whose groups are expanded, in the order of their numbers."""
    return tuple(step for step in all_steps(fused.steps) if isinstance(step, Launch))


def buffers_of(group: Group) -> tuple[int, ...]:
    """The distinct buffers of a group's operands and results, in their order: what a kernel of the
    whole group is given."""
    return tuple(dict.fromkeys(operand.buffer for operand in (*group.operands, *group.results)))


def requirements_of(group: Group) -> tuple[Node, ...]:
    """The nodes whose conditions the group's kernel checks; it reports one by its position."""
    return tuple(node for node in group.nodes if node.op == "require")


def symbols_set(steps: Sequence[Step]) -> set[str]:
    """Symbols that steps bind, or bind again, while ``main`` runs."""
    found: set[str] = set()
    for step in all_steps(steps):
        if isinstance(step, SymbolRead):
            found.add(step.symbol)
        elif isinstance(step, SymbolSet | HoldState):
            found.update(step.symbols)
        elif isinstance(step, LoopStep):
            found.add(step.counter)
    return found


@dataclass(frozen=True, slots=True)
class Specialisation:
    """Steps from ``first_step`` on, up to those of the next one, are a version of the model for
    the sizes of ``profile``."""

    TEXT: ClassVar = "specialisation from $first_step where $profile"
    first_step: int
    profile: Profile


@dataclass(frozen=True, slots=True)
class FusedGraph:
    """Stage 6: everything that runs, in order, and where it reads and writes.

    ``inputs``/``outputs`` are the graph's tensor types; ``constants`` are expression graphs (no
    inputs, one output) whose dense bytes fill the constant buffers, in order of
    ``BufferSpec.index``. The steps before those of the ``specialisations`` are the general version;
    a call runs the first specialisation that it fits, else the general version.
    """

    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    buffers: tuple[BufferSpec, ...]
    steps: tuple[Step, ...]
    constants: tuple[Graph, ...]
    specialisations: tuple[Specialisation, ...] = ()


def buffers_named(step: Step) -> Sequence[int]:
    """The buffers that a step names itself, not those of the steps inside."""
    match step:
        case SymbolRead():
            return (step.buffer,)
        case Grow():
            return (step.buffer,) if step.spare < 0 else (step.buffer, step.spare)
        case LoopStep():
            return step.held
        case Copy():
            return step.operand, step.result
        case Launch():
            return step.buffers
        case _:
            return ()
