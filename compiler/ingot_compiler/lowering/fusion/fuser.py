"""The interface of the rules of ops: values are stored, deferred or constant, and steps are
appended in order.

In: what is known of the values (``values``), one call per decision of a rule. Out: steps and
buffers. Not done here: the decisions themselves: ``layout`` and ``grouping`` are functions,
``storage``, ``requirements`` and ``run_time_symbols`` own their state.

A value is a constant, *stored* (in a buffer, seen through a view) or *deferred*: a tree of
elementwise ops over stored leaves, with at most one *anchor* (an op with loops of its own) in it. A
deferred value becomes one kernel when somebody needs it stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.lowering.fusion.deferred import Deferred, Leaf, join
from ingot_compiler.lowering.fusion.grouping import refusal
from ingot_compiler.lowering.fusion.joined_users import joins_in_one
from ingot_compiler.lowering.fusion.layout import Halo, natural_order
from ingot_compiler.lowering.fusion.lift_scales import lift_scales
from ingot_compiler.lowering.fusion.make_group import (
    group_of_composite,
    group_of_halo,
    group_of_results,
    group_of_tree,
)
from ingot_compiler.lowering.fusion.narrow import narrow_tail
from ingot_compiler.lowering.fusion.requirements import Checked, Requirements
from ingot_compiler.lowering.fusion.run_time_symbols import RunTimeSymbols
from ingot_compiler.lowering.fusion.storage import Places, Storage, Stored
from ingot_compiler.lowering.fusion.values import FusionValues
from ingot_compiler.lowering.groups.fused import Requirement, Step
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.tuned_methods import TunedMethods
from ingot_compiler.lowering.groups.views import broadcast_view
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Region:
    """What was there when a region began."""

    steps: list[Step]
    places: Places
    deferred: dict[int, Deferred]
    checked: Checked


@dataclass(frozen=True, slots=True)
class Held:
    """A value that is output number ``output`` and may lie where an input does: in memory for
    ``capacity`` rows; ``moved`` is 0 where the input's rows lie there already."""

    output: int
    capacity: Dim
    moved: Dim


class Fuser:
    """The interface of the rules; its own state is what waits, and the steps so far."""

    def __init__(
        self,
        values: FusionValues,
        inputs: Sequence[int],
        targets: Sequence[KernelTarget],
        precision: str,
        optimize: str,
        methods: TunedMethods,
    ) -> None:
        """``targets``: what each device runs, by its index."""
        self.values = values
        self.targets = tuple(targets)
        self.precision = precision
        self.optimize = optimize
        self.methods = methods
        self.storage = Storage([(value, values.type_of(value)) for value in inputs])
        self.requirements = Requirements(values, inputs)
        self.symbols = RunTimeSymbols()
        self._held: dict[int, Held] = {}
        self._deferred: dict[int, Deferred] = {}
        self._ends: dict[int, str] = {}  # value -> why no user took it into its own kernel
        self._steps: list[Step] = []

    # ---- steps -----------------------------------------------------------------------------------

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps so far, outside of regions."""
        return tuple(self._steps)

    def append(self, step: Step) -> None:
        """Append a step."""
        self._steps.append(step)

    def require(self, requirements: Sequence[Requirement]) -> None:
        """Append checks that are not there yet."""
        for requirement in requirements:
            if requirement not in self._steps:
                self._steps.append(requirement)

    def enter(self) -> Region:
        """Begin a region: its steps are collected, what it stores is forgotten when it ends."""
        region = Region(
            self._steps, self.storage.places(), dict(self._deferred), self.requirements.checked()
        )
        self._steps = []
        return region

    def leave(self, region: Region) -> tuple[Step, ...]:
        """End a region; its steps."""
        steps, self._steps = self._steps, region.steps
        self._deferred = region.deferred
        self.storage.forget_since(region.places)
        self.requirements.forget_since(region.checked)
        return tuple(steps)

    # ---- states ----------------------------------------------------------------------------------

    def hold(self, value: int, held: Held) -> None:
        """Say that a value is a state's output."""
        self._held[value] = held

    def held(self, value: int) -> Held | None:
        """How a value lies that is a state's output."""
        return self._held.get(value)

    # ---- stored values ---------------------------------------------------------------------------

    def where(self, value: int) -> Stored:
        """Where the value lies; a deferred value is computed now."""
        stored = self.storage.find(value)
        if stored is not None:
            return stored
        if not self.values.is_constant(value):
            return self.compute(value)
        stored = self.folded(value)
        self.storage.put(value, stored)
        return stored

    def folded(self, value: int) -> Stored:
        """Where all elements of a constant lie, dense."""
        _, stored = self.constant(self.values.expression(value), self.values.device_of(value))
        return stored

    def keep_repeats(self, value: int) -> None:
        """Let a constant that repeats a smaller one lie as that one does, seen through a view: for
        who reads single elements, which are fewer, and whose place may be the same in all lanes."""
        maker = self.values.maker(value)
        is_stored = self.storage.find(value) is not None or not self.values.is_constant(value)
        if is_stored or maker is None or maker.op != "broadcast_to":
            return
        (operand,) = maker.operands
        stored, types = self.where(operand), self.values.type_of
        view = broadcast_view(stored.view, types(operand).shape, types(value).shape)
        self.storage.put(value, Stored(stored.buffer, view))

    def is_known(self, value: int) -> bool:
        """Whether the nodes so far make the value."""
        is_made = value in self._deferred or self.storage.find(value) is not None
        return is_made or self.values.is_constant(value)

    def leaf(self, value: int) -> Leaf:
        """A value as a kernel's operand."""
        return value, self.where(value)

    def leaf_at(self, value: int, stored: Stored) -> Leaf:
        """A kernel's operand in a layout of its own; a copy gets its own id, for the epilogue may
        read the value itself."""
        if self.storage.find(value) == stored:
            return value, stored
        copied = self.values.add(self.values.type_of(value), self.values.device_of(value))
        self.storage.put(copied, stored)
        return copied, stored

    def constant(self, expression: Graph, device: int) -> Leaf:
        """A folded expression as a kernel's operand, dense: a new value."""
        stored = self.storage.constant(expression, device)
        return self.values.add(expression.types[expression.outputs[0]], device), stored

    def compute(self, value: int, into: Stored | None = None) -> Stored:
        """Append the kernel of a deferred value, into a given place or a buffer of its natural
        layout."""
        tree = self._deferred.pop(value)
        place = into or self._place(value, tree)
        self._compute(value, tree, place)
        self.storage.put(value, place)
        return place

    def store(self, value: int, place: Stored) -> None:
        """Compute a value into a place if nobody else reads it, else copy it there."""
        if value in self._deferred and self.values.use_count(value) == 1:
            self.compute(value, place)
        else:
            self.copy(value, place)

    def copy(self, value: int, place: Stored) -> None:
        """Append a kernel that copies a stored value to another place."""
        self._compute(value, Deferred((), (self.leaf(value),)), place)

    def fill_halo(self, value: int, place: Stored, halo: Halo) -> None:
        """Append the kernel that writes what stands around an image."""
        self._steps.append(group_of_halo(self.values, value, place, halo))

    def compute_results(
        self, kind: Kind, node: Node, leaves: Sequence[Leaf], extra: Sequence[int] = ()
    ) -> None:
        """Append the kernel of an op of several results, each where it was put already or in a dense
        buffer; ``extra`` values are its own workspace."""
        stored = ((value, self.storage.find(value)) for value in (*node.results, *extra))
        results = [(value, place or self._dense_place(value)) for value, place in stored]
        for value, place in results:
            self.storage.put(value, place)
        self._steps.append(group_of_results(self.values, kind, node, leaves, results))

    def compute_composite(self, node: Node, nodes: Sequence[Node], leaves: Sequence[Leaf]) -> None:
        """Append the kernel of a composite that consists of ``nodes``, its results dense."""
        results = [(value, self._dense_place(value)) for value in node.results]
        for value, place in results:
            self.storage.put(value, place)
        self._steps.append(group_of_composite(self.values, node, nodes, leaves, results))

    def _dense_place(self, value: int) -> Stored:
        tensor_type = self.values.type_of(value)
        return self.storage.workspace(
            tensor_type, range(tensor_type.rank), self.values.device_of(value)
        )

    def _place(self, value: int, tree: Deferred) -> Stored:
        tensor_type, halo = self.values.type_of(value), self.values.halo_of(value)
        first = self._read_by_anchor(tree)
        leaves = sorted(tree.leaves, key=lambda leaf: leaf[0] not in first)
        operands = [(self.values.type_of(leaf), stored.view) for leaf, stored in leaves]
        order = natural_order(
            tensor_type, tree.kind.result_layout, operands, is_image=self.values.is_image(value)
        )
        place = self.storage.workspace(tensor_type, order, self.values.device_of(value), halo)
        if halo is not None:
            self.fill_halo(value, place, halo)
            self.storage.put_image(value, place)
        return place

    def _read_by_anchor(self, tree: Deferred) -> tuple[int, ...]:
        return self.values.node(tree.anchor).operands[:1] if tree.anchored else ()

    def _compute(self, value: int, tree: Deferred, place: Stored) -> None:
        if self.values.type_of(value).element_count != 0:  # else there is nothing to write
            tree = lift_scales(self.values, self.storage, value, tree)
            self._steps.append(
                group_of_tree(self.values, value, tree, place, self._ends.get(value, ""))
            )

    # ---- deferred values -------------------------------------------------------------------------

    def deferred(self, value: int) -> Deferred | None:
        """The tree of a value that no kernel has computed yet."""
        return self._deferred.get(value)

    def read_leaf_at(self, value: int, leaf: int, place: Stored) -> None:
        """Let the tree of a value read one of its leaves elsewhere."""
        tree = self._deferred[value]
        leaves = tuple((each, place if each == leaf else old) for each, old in tree.leaves)
        self._deferred[value] = replace(tree, leaves=leaves)

    def ops_of(self, tree: Deferred) -> list[OpName]:
        """The ops of a tree."""
        return [self.values.node(index).op for index in tree.nodes]

    def is_cheap(self, tree: Deferred) -> bool:
        """Whether computing the value again costs nothing."""
        return not tree.leaves and all(
            Trait.CHEAP in OPS_BY_NAME[op].traits for op in self.ops_of(tree)
        )

    def absorb(
        self, value: int, shape: tuple[Dim, ...], *, anchor_allowed: bool
    ) -> Deferred | None:
        """The deferred tree of an operand, if a kernel over ``shape`` may contain it; else None."""
        tree = self._deferred.get(value)
        if tree is None or self.is_cheap(tree):
            return tree
        same_shape = self.values.type_of(value).shape == shape
        is_joined = tree.anchored and joins_in_one(self.values, value)
        count = 1 if is_joined else self.values.use_count(value)
        reason = refusal(tree, count, same_shape=same_shape, anchor_allowed=anchor_allowed)
        if not reason:
            return tree
        self._ends[value] = reason
        return self._deferred[value] if same_shape and self._store_narrow(value, tree) else None

    def store_because(self, value: int, reason: str) -> None:
        """Compute a deferred value now: its user does not take it in for the reason given."""
        self._ends[value] = reason
        tree = self._deferred.get(value)
        if tree is None or not self._store_narrow(value, tree):
            self.where(value)

    def _store_narrow(self, value: int, tree: Deferred) -> bool:
        """Whether a narrow value in the tree is stored, from which each user computes the tree's
        result."""
        tail = narrow_tail(self.values, tree, value)
        if tail is None:
            return False
        if tail.source in self._deferred and value in self._ends:
            self._ends[tail.source] = self._ends[value]
        leaves = [self.leaf(leaf) for leaf in (tail.source, *tail.others)]
        self._deferred[value] = Deferred(tail.nodes, tuple(leaves))
        return True

    def defer(self, index: int, parts: Sequence[Deferred], leaves: Sequence[Leaf]) -> None:
        """Make the result of node ``index`` one deferred tree."""
        self._deferred[self.values.node(index).results[0]] = join(index, parts, leaves)

    def defer_added(self, node: Node, leaves: Sequence[Leaf] = ()) -> None:
        """Make the result of a node that the graph does not hold a deferred tree."""
        self.defer(self.values.add_node(node), (), leaves)

    def defer_anchor(
        self,
        index: int,
        node: Node,
        kind: Kind,
        leaves: Sequence[Leaf],
        parts: Sequence[Deferred] = (),
        method: Method | None = None,
    ) -> None:
        """Make an op with loops of its own a deferred tree, ready to take elementwise followers;
        ``node``: as its kernel reads it. ``method``: where its kind has several."""
        self.values.replace_node(index, node)
        self._deferred[node.results[0]] = join(index, parts, leaves, (kind, index, method))
