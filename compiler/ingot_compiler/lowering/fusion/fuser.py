"""The state of fusion: what is stored where, what waits to be fused, and the steps so far.

In: a graph, visited in order. Out: groups and buffers. Not done here: what each op asks for (``anchors``, ``movement``).

A value is a constant, *stored* (in a buffer, seen through a view) or *deferred*: a tree of elementwise ops over stored
leaves, with at most one *anchor* (an op with loops of its own) in it. A deferred value becomes one kernel when
somebody needs it stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from ingot_compiler.ir.dims import Dim, dim_add, dim_max, dim_min, symbols_of
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.message import Text, message
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ranges import is_nonnegative
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.constant_expression import constant_values, extract
from ingot_compiler.lowering.fused import BufferSpec, Copy, Group, Operand, Requirement, Step, View
from ingot_compiler.lowering.typical import typical
from ingot_compiler.lowering.views import dense_view, haloed_view, is_dense, storage_order
from ingot_compiler.targets.target import Target
from ingot_runtime.format.limits import ELEMENT_COUNT_MAX

Halo = tuple[tuple[Dim, ...], tuple[Dim, ...]]  # (before, after) per axis
CHEAP = frozenset(("literal", "iota", "dim_values", "cast"))
CHANNELS_LAST = frozenset(("conv", "conv_transpose", "depthwise", "pool"))  # kinds whose lanes are channels
BARE = frozenset(("argument_reduce", "cumsum", "scatter_elements", "scatter_nd"))  # kinds that store what they compute
FUSED_NODES_MAX = 48  # keeps kernels small: code generation is quadratic in the length of a block


@dataclass(frozen=True, slots=True)
class Stored:
    """A value in a buffer."""

    buffer: int
    view: View


@dataclass(frozen=True, slots=True)
class Deferred:
    """A value that no kernel has computed yet. ``leaves``: (value, where) of what it reads."""

    nodes: tuple[int, ...]
    leaves: tuple[tuple[int, Stored], ...]
    kind: str = "pointwise"
    anchor: int = -1

    @property
    def anchored(self) -> bool:
        """Whether the loops are decided by an anchor."""
        return self.anchor >= 0


@dataclass(frozen=True, slots=True)
class Scope:
    """What was known when a region began."""

    steps: list[Step]
    stored: dict[int, Stored]
    deferred: dict[int, Deferred]
    images: dict[int, tuple[Stored, Halo]]
    checked_sizes: set[Dim]
    checked_counts: set[Dim]


class Fuser:
    """Walks the graph once; a private context, not an API."""

    def __init__(
        self, graph: Graph, device_of: Sequence[int], targets: Sequence[Target], region_outputs: Sequence[int] = ()
    ) -> None:
        """``device_of[value]`` indexes ``targets``; values beyond it, those of regions, live on the host."""
        self.graph = graph
        self.region_outputs = region_outputs
        self.device_of = [*device_of, *[0] * (len(graph.types) - len(device_of))]
        self.targets = targets
        self.nodes = list(graph.nodes)  # anchors are replaced by their lowered form
        self.types = list(graph.types)
        self.constant_ids = constant_values(graph)
        self.uses = self._count_uses()
        self.made_by = {result: node.source for node in graph.nodes for result in node.results}
        self.halos, self.image_inputs = _image_consumers(graph)
        self.stored: dict[int, Stored] = {}
        self.deferred: dict[int, Deferred] = {}
        self.ends: dict[int, str] = {}  # value -> why no user took it into its own kernel
        self.images: dict[int, tuple[Stored, Halo]] = {}  # values that lie channels-last with a zero halo
        self.buffers: list[BufferSpec] = []
        self.steps: list[Step] = []
        self.checked_sizes: set[Dim] = set()
        self.checked_counts = {graph.types[value].element_count for value in graph.inputs}
        self.constants: list[Graph] = []
        self.constant_buffers: dict[tuple[Graph, int], int] = {}
        self.counters: dict[int, Dim] = {}  # a loop's iteration -> the symbol that counts
        self.late_symbols: set[str] = set()  # those that are bound while main runs
        self.grown: set[int] = set()  # buffers whose room a step makes
        self._symbol_count = 0
        for position, value in enumerate(graph.inputs):
            kind = self.types[value]
            self.buffers.append(BufferSpec("input", kind.dtype, kind.element_count, position))
            self.stored[value] = Stored(position, dense_view(kind.shape))

    def enter(self) -> Scope:
        """Begin a region: its steps are collected, what it stores is forgotten when it ends."""
        checked = set(self.checked_sizes), set(self.checked_counts)
        scope = Scope(self.steps, dict(self.stored), dict(self.deferred), dict(self.images), *checked)
        self.steps = []
        return scope

    def leave(self, scope: Scope) -> tuple[Step, ...]:
        """End a region; its steps."""
        steps, self.steps = self.steps, scope.steps
        self.stored, self.deferred, self.images = scope.stored, scope.deferred, scope.images
        self.checked_sizes, self.checked_counts = scope.checked_sizes, scope.checked_counts
        return tuple(steps)

    def new_symbol(self) -> str:
        """A name that no size has."""
        taken = {name for kind in self.types for dim in kind.shape for name in symbols_of(dim)}
        while True:
            self._symbol_count += 1
            name = f"control{self._symbol_count}"
            if name not in taken:
                return name

    def defer_node(self, node: Node) -> None:
        """A value that a node without operands computes, which the graph does not hold."""
        self.nodes.append(node)
        self.deferred[node.results[0]] = Deferred((len(self.nodes) - 1,), ())

    def _count_uses(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        for node in self.graph.nodes:
            if any(result in self.constant_ids for result in node.results):
                continue
            for operand in set(node.operands):
                counts[operand] = counts.get(operand, 0) + 1
        for output in (*self.graph.outputs, *self.region_outputs):
            counts[output] = counts.get(output, 0) + 1
        return counts

    # ---- buffers ----------------------------------------------------------------------------------------------------

    def new_value(self, kind: TensorType, device: int) -> int:
        """A value id for something the graph does not name (a packed weight)."""
        self.types.append(kind)
        self.device_of.append(device)
        return len(self.types) - 1

    def new_buffer(self, spec: BufferSpec) -> int:
        """Append a buffer."""
        self.buffers.append(spec)
        return len(self.buffers) - 1

    def workspace(self, kind: TensorType, order: Sequence[int], device: int, halo: Halo | None = None) -> Stored:
        """A new workspace buffer on a device for a tensor stored in ``order``."""
        none = (0,) * kind.rank
        before, after = halo or (none, none)
        view, count = haloed_view(kind.shape, order, before, after)
        return Stored(self.new_buffer(BufferSpec("workspace", kind.dtype, count, device=device)), view)

    def constant(self, expression: Graph, device: int) -> tuple[int, Stored]:
        """(new value id, where) of a folded expression, stored dense; equal expressions on one device share a buffer."""
        kind = expression.types[expression.outputs[0]]
        key = expression, device
        if key not in self.constant_buffers:
            spec = BufferSpec("constant", kind.dtype, kind.element_count, len(self.constants), device)
            self.constants.append(expression)
            self.constant_buffers[key] = self.new_buffer(spec)
        return self.new_value(kind, device), Stored(self.constant_buffers[key], dense_view(kind.shape))

    def is_constant(self, value: int) -> bool:
        """Whether the build folds the value."""
        return value in self.constant_ids

    def expression(self, value: int) -> Graph:
        """How a constant value is computed."""
        return extract(self.graph, value)

    # ---- stored values ----------------------------------------------------------------------------------------------

    def where(self, value: int) -> Stored:
        """Where the value lies; a deferred value is computed now."""
        if value not in self.stored:
            if self.is_constant(value):
                self.stored[value] = self.constant(self.expression(value), self.device_of[value])[1]
            else:
                self.materialise(value)
        return self.stored[value]

    def leaf(self, value: int) -> tuple[int, Stored]:
        """A value as a kernel's operand."""
        return value, self.where(value)

    def leaf_at(self, value: int, stored: Stored) -> tuple[int, Stored]:
        """A kernel's operand in a layout of its own; a copy gets its own id, for the epilogue may read the value itself."""
        if self.stored.get(value) == stored:
            return value, stored
        copied = self.new_value(self.types[value], self.device_of[value])
        self.stored[copied] = stored
        return copied, stored

    def materialise(self, value: int, into: Stored | None = None) -> Stored:
        """Emit the kernel of a deferred value, into a given place or a buffer of its natural layout."""
        deferred = self.deferred.pop(value)
        place = into or self._place(value, deferred)
        self._emit(value, deferred, place)
        self.stored[value] = place
        return place

    def _place(self, value: int, deferred: Deferred) -> Stored:
        kind = self.types[value]
        halo = self.halos.get(value)
        order = self._natural_order(value, deferred)
        place = self.workspace(kind, order, self.device_of[value], halo)
        if halo is not None:
            self.fill_halo(value, place, halo)
        return place

    def _natural_order(self, value: int, deferred: Deferred) -> Sequence[int]:
        kind = self.types[value]
        if value in self.image_inputs or (deferred.kind in CHANNELS_LAST and kind.rank > 2):
            return channels_last(kind.rank)
        if deferred.kind == "attention":
            return 0, 2, 1, 3
        if deferred.kind == "resize":
            source, stored = deferred.leaves[0]
            return storage_order(stored.view, self.types[source].shape)
        if deferred.kind in ("matmul", "matmul_integer", "reduce", "argument_reduce", "cumsum", "depthwise_plane"):
            return range(kind.rank)
        for leaf, stored in deferred.leaves:
            same = self.types[leaf].shape == kind.shape
            if same and all(
                size == 1 or stride != 0 for size, stride in zip(kind.shape, stored.view.strides, strict=True)
            ):
                return storage_order(stored.view, kind.shape)
        return range(kind.rank)

    def fill_halo(self, value: int, place: Stored, halo: Halo) -> None:
        """Emit the kernel that zeroes the border, and remember the image."""
        before, after = halo
        attributes = make_attributes({"before": before, "after": after})
        node = Node(cast("OpName", "fill_halo"), (), (value,), attributes)  # of fusion's own: in no graph
        kind = self.types[value]
        result = Operand(value, kind, place.buffer, place.view)
        source = self.made_by.get(value, ())
        device = self.device_of[value]
        self.steps.append(Group("fill_halo", (node,), (), (result,), ((value, kind),), 0, source, device))
        self.images[value] = place, halo

    def _emit(self, value: int, deferred: Deferred, place: Stored) -> None:
        if self.types[value].element_count == 0:
            return  # nothing to write
        nodes = tuple(self.nodes[index] for index in deferred.nodes)
        operands: dict[int, Operand] = {}
        for leaf, stored in deferred.leaves:
            operands.setdefault(leaf, Operand(leaf, self.types[leaf], stored.buffer, stored.view))
        result = Operand(value, self.types[value], place.buffer, place.view)
        named = {*operands, value, *(item for node in nodes for item in (*node.operands, *node.results))}
        # A literal is shared by all who write it: the ops that use it are the ones to name.
        named_by = [node.source for node in nodes if node.op != "literal"] or [self.made_by.get(value, ())]
        source = tuple(sorted({ordinal for ordinals in named_by for ordinal in ordinals}))
        anchor = deferred.nodes.index(deferred.anchor) if deferred.anchored else -1
        types = tuple((item, self.types[item]) for item in sorted(named))
        ends = self.ends.get(value, "") if nodes else ""
        device = self.device_of[value]
        group = Group(deferred.kind, nodes, tuple(operands.values()), (result,), types, anchor, source, device, ends)
        self.steps.append(group)

    def emit_at_once(self, kind: str, node: Node, leaves: Sequence[tuple[int, Stored]], extra: Sequence[int]) -> None:
        """Emit an op of several results, each in a dense buffer; ``extra`` values are its own workspace."""
        operands = tuple(
            Operand(leaf, self.types[leaf], stored.buffer, stored.view) for leaf, stored in dict(leaves).items()
        )
        results: list[Operand] = []
        for value in (*node.results, *extra):
            place = self.workspace(self.types[value], range(self.types[value].rank), self.device_of[value])
            self.stored[value] = place
            results.append(Operand(value, self.types[value], place.buffer, place.view))
        named = {*(operand.value for operand in operands), *(result.value for result in results)}
        types = tuple((item, self.types[item]) for item in sorted(named))
        device = self.device_of[node.results[0]]
        self.steps.append(Group(kind, (node,), operands, tuple(results), types, 0, node.source, device))

    def copy(self, value: int, place: Stored) -> None:
        """Emit a kernel that copies a stored value to another place."""
        stored = self.where(value)
        self._emit(value, Deferred((), ((value, stored),)), place)

    def relaid(self, value: int, order: Sequence[int], halo: Halo | None = None) -> Stored:
        """A copy of a value in another layout."""
        place = self.workspace(self.types[value], order, self.device_of[value], halo)
        self.copy(value, place)
        if halo is not None:
            self.fill_halo(value, place, halo)
        return place

    def transfer(self, value: int, result: int, source: tuple[int, ...]) -> None:
        """Copy a stored value to the device of ``result``: its whole buffer, in the layout that it has.

        A value that is only a part of its buffer is cut out first.
        """
        stored, kind = self.where(value), self.types[value]
        if typical(self.buffers[stored.buffer].element_count) > typical(kind.element_count):
            stored = self.relaid(value, storage_order(stored.view, kind.shape))
        spec = replace(self.buffers[stored.buffer], kind="workspace", index=-1, device=self.device_of[result])
        buffer = self.new_buffer(spec)
        self.steps.append(Copy(stored.buffer, buffer, source))
        self.stored[result] = Stored(buffer, stored.view)

    def contiguous(self, value: int) -> Stored:
        """The value with stride 1 along its last axis (a copy if it does not lie so)."""
        stored = self.where(value)
        kind = self.types[value]
        if stored.view.strides[-1] == 1 or kind.shape[-1] == 1:
            return replace(stored, view=View((*stored.view.strides[:-1], 1), stored.view.offset))
        return self.relaid(value, range(kind.rank))

    def dense(self, value: int) -> Stored:
        """The value row-major without gaps (a copy if it does not lie so)."""
        stored = self.where(value)
        kind = self.types[value]
        relative = View(stored.view.strides, 0)
        return stored if is_dense(relative, kind.shape) else self.relaid(value, range(kind.rank))

    def image(self, value: int, before: tuple[Dim, ...], after: tuple[Dim, ...]) -> Stored:
        """The value channels-last with a zero halo of at least ``before``/``after`` spatial elements."""
        pads: Halo = ((0, 0, *before), (0, 0, *after))
        wanted = self.halos.get(value, pads)
        if value not in self.images:
            stored = self.where(value)  # may make the image
            if value not in self.images:
                kind = self.types[value]
                fits = stored.view.strides[1] == 1 and not any(pads[0]) and not any(pads[1])
                if fits and self._rows_adjacent(stored, kind):
                    return stored
                none: Halo | None = wanted if any(wanted[0]) or any(wanted[1]) else None
                place = self.relaid(value, channels_last(kind.rank), none)
                self.images[value] = place, wanted
        return self.images[value][0]

    @staticmethod
    def _rows_adjacent(stored: Stored, kind: TensorType) -> bool:
        del kind
        return all(stride != 0 for stride in stored.view.strides[2:])

    def require_sizes(self, node: Node) -> None:
        """Check at run time that every size of the results is at least 0, unless it is known to be."""
        dims = [dim for result in node.results for dim in self.types[result].shape if dim not in self.checked_sizes]
        for dim in dict.fromkeys(dims):
            if not is_nonnegative(dim):
                self.require(dim_min(dim, 0), message("a size is negative: ", dim), node)
        self.checked_sizes.update(dims)

    def require_countable(self, node: Node) -> None:
        """Check at run time that a value that may never be stored, so that no memory bounds it, has no more elements than a
        tensor may have."""
        counts = [self.types[operand].element_count for operand in node.operands]
        for result in node.results:
            count = self.types[result].element_count
            if not isinstance(count, int) and count not in (*counts, *self.checked_counts):
                what = message(f"expected at most {ELEMENT_COUNT_MAX} elements, got ", count)
                self.require(dim_max(dim_add(count, -ELEMENT_COUNT_MAX), 0), what, node)
                self.checked_counts.add(count)

    def require(self, difference: Dim, what: Text, node: Node) -> None:
        """Check at run time that ``difference`` is 0."""
        requirement = Requirement(difference, what, node.source)
        if requirement not in self.steps:
            self.steps.append(requirement)

    # ---- deferring --------------------------------------------------------------------------------------------------

    def is_cheap(self, deferred: Deferred) -> bool:
        """Whether computing the value again costs nothing."""
        return all(self.nodes[index].op in CHEAP for index in deferred.nodes) and not deferred.leaves

    def absorb(self, value: int, shape: tuple[Dim, ...], *, anchor_allowed: bool) -> Deferred | None:
        """The deferred tree of an operand, if a kernel over ``shape`` may contain it; else None."""
        deferred = self.deferred.get(value)
        if deferred is None:
            return None
        if self.is_cheap(deferred):
            return deferred
        refusal = self._refusal(value, deferred, shape, anchor_allowed=anchor_allowed)
        if refusal:
            self.ends[value] = refusal
        return None if refusal else deferred

    def _refusal(self, value: int, deferred: Deferred, shape: tuple[Dim, ...], *, anchor_allowed: bool) -> str:
        """Why a kernel over ``shape`` may not contain the tree; empty if it may."""
        same = self.types[value].shape == shape
        uses = self.uses.get(value, 0)
        if uses != 1:
            return f"the value has {uses} users"
        if deferred.anchored and deferred.kind in BARE:
            return f"{deferred.kind} stores what it computes"
        if len(deferred.nodes) >= FUSED_NODES_MAX and not deferred.anchored:
            return f"a kernel has at most {FUSED_NODES_MAX} operations"
        if not same and (deferred.anchored or len(deferred.nodes) > 2):
            return "its user has another shape and would compute it again"
        if deferred.anchored and not anchor_allowed:
            return "its user has loops of its own"
        return ""

    def defer(self, index: int, parts: Sequence[Deferred], leaves: Sequence[tuple[int, Stored]]) -> None:
        """Make the result of node ``index`` one deferred tree."""
        nodes = {index, *(node for part in parts for node in part.nodes)}
        all_leaves = [leaf for part in parts for leaf in part.leaves] + list(leaves)
        anchored = next((part for part in parts if part.anchored), None)
        kind, anchor = (anchored.kind, anchored.anchor) if anchored else ("pointwise", -1)
        self.deferred[self.nodes[index].results[0]] = Deferred(
            tuple(sorted(nodes)), tuple(dict(all_leaves).items()), kind, anchor
        )

    def defer_anchor(
        self, index: int, node: Node, kind: str, leaves: Sequence[tuple[int, Stored]], parts: Sequence[Deferred] = ()
    ) -> None:
        """Make an op with loops of its own a deferred tree, ready to take elementwise followers."""
        self.nodes[index] = node
        nodes = tuple(sorted({index, *(item for part in parts for item in part.nodes)}))
        all_leaves = [leaf for part in parts for leaf in part.leaves] + list(leaves)
        self.deferred[node.results[0]] = Deferred(nodes, tuple(dict(all_leaves).items()), kind, index)


def channels_last(rank: int) -> tuple[int, ...]:
    """Storage order N, spatial.., C."""
    return 0, *range(2, rank), 1


def _image_consumers(graph: Graph) -> tuple[dict[int, Halo], frozenset[int]]:
    """(halo that the convolutions reading a value need, values that should lie channels-last)."""
    halos: dict[int, Halo] = {}
    images: set[int] = set()
    for node in graph.nodes:
        if node.op not in ("conv", "max_pool", "average_pool"):
            continue
        value = node.operands[0]
        images.add(value)
        if node.op != "conv":
            continue
        before, after = ((0, 0, *node.dims(name)) for name in ("pads_before", "pads_after"))
        if value in halos:
            before = tuple(map(dim_max, before, halos[value][0]))
            after = tuple(map(dim_max, after, halos[value][1]))
        halos[value] = before, after
    needed = {value: halo for value, halo in halos.items() if any(halo[0]) or any(halo[1])}
    return needed, frozenset(images)
