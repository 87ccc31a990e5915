"""Places what is inside of control flow: the branches of ``if``, the body of ``loop``.

In: a node of control flow, where the values around it live, which of its inner nodes a device runs.
Out: the same node, whose regions have their own copies and name the device of each node that is not
the host's. Not done here: the graph around it (``place``).

Control flow itself is the host's, and so are the inputs and outputs of its regions. A node inside
runs where a glob puts it, else on the host: it follows no operand. What it reads from another
device is copied where that happens least often (``copies_ahead``), so that a branch that is not
taken copies nothing; what the host reads inside is copied outside, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.types import TensorType
from ingot_compiler.placement.control import is_control, is_made_of_nothing
from ingot_compiler.placement.copies_ahead import CopiesAhead, DeviceOfNode, ReadOn
from ingot_compiler.placement.op_work import Setting, settings_inside
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(slots=True)
class Around:
    """What a region sees: the device of a value of the enclosing graph, the node that makes it of
    nothing if it is such a value, what stands for it on the host, and its copy on a device, if
    there is one already."""

    device_of: Callable[[int], int]
    maker_of: Callable[[int], Node | None]
    on_host: Mapping[int, int]
    copy_of: Callable[[ReadOn], int | None]


@dataclass(frozen=True, slots=True)
class RegionPlacer:
    """``names`` of all devices; ``types`` of all values so far: a new value is the next."""

    names: Sequence[str]
    types: list[TensorType]
    runs_on: DeviceOfNode
    ahead: CopiesAhead

    def read_on_host(self, node: Node) -> set[int]:
        """The values around a node of control flow that the host reads inside."""
        found: set[int] = set()
        for region in node.regions if is_control(node) else ():
            own = set(region.inputs) | {value for each in region.nodes for value in each.results}
            reads = set(region.outputs)
            for inner in region.nodes:
                reads |= self.read_on_host(inner)
                reads |= set(() if self.runs_on(inner, region) else inner.operands)
            found |= reads - own
        return found

    def copied_before(
        self, node: Node, setting: Setting, early_reads: frozenset[ReadOn]
    ) -> list[ReadOn]:
        """What is copied ahead of a node for those inside of it; ``asked``: what is copied in the
        graph that has the node."""
        return (
            sorted(early_reads & self.ahead.before(node, setting).keys())
            if is_control(node)
            else []
        )

    def placed(self, node: Node, setting: Setting, around: Around) -> Node:
        """The node with its regions placed; its operands are left; ``setting``: the graph that has
        it, before copies."""
        if not is_control(node):
            return node
        regions = (
            _Region(self, inside, around, self.ahead.of(inside)).placed()
            for inside in settings_inside(node, setting)
        )
        return replace(node, regions=tuple(regions))


@dataclass(slots=True)
class _Region:
    """One region being rebuilt with its copies."""

    placer: RegionPlacer
    setting: Setting
    around: Around
    early_reads: frozenset[ReadOn]
    nodes: list[Node] = field(default_factory=list[Node])
    devices: dict[int, int] = field(default_factory=dict[int, int])
    makers: dict[int, Node] = field(default_factory=dict[int, Node])
    copies: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def placed(self) -> Graph:
        """The region with copies in it; values of its own have ids above all others."""
        region = self.setting.graph
        self.devices.update(dict.fromkeys(region.inputs, 0))
        for node in region.nodes:
            device = self.placer.runs_on(node, region)
            self.devices.update(dict.fromkeys(node.results, device))
            if is_made_of_nothing(node):
                self.makers.update(dict.fromkeys(node.results, node))
            self.nodes.append(self._placed(node, device))
        outputs = tuple(self._on(value, 0, ()) for value in region.outputs)
        types = (*region.types, *self.placer.types[len(region.types) :])
        return Graph(region.inputs, tuple(self.nodes), outputs, types)

    def _placed(self, node: Node, device: int) -> Node:
        operands = tuple(self._on(value, device, node.source) for value in node.operands)
        read = sorted(self.placer.read_on_host(node))
        on_host = {value: self._on(value, 0, node.source) for value in read}
        for value, there in self.placer.copied_before(node, self.setting, self.early_reads):
            self._on(value, there, node.source)
        around = Around(self._device_of, self._maker_of, on_host, self._copy_of)
        inside = self.placer.placed(node, self.setting, around)
        return replace(inside, operands=operands, mark=self._mark(device))

    def _mark(self, device: int) -> str:
        return self.placer.names[device] if device else ""

    def _device_of(self, value: int) -> int:
        own = self.devices.get(value)
        return self.around.device_of(value) if own is None else own

    def _maker_of(self, value: int) -> Node | None:
        return self.makers.get(value) if value in self.devices else self.around.maker_of(value)

    def _copy_of(self, read: ReadOn) -> int | None:
        return self.copies[read] if read in self.copies else self.around.copy_of(read)

    def _on(self, value: int, device: int, source: tuple[int, ...]) -> int:
        """The value on a device: itself, or what stands for it there."""
        if value not in self.devices and not device:
            return self.around.on_host[value]
        if self._device_of(value) == device:
            return value
        known = self._copy_of((value, device))
        if known is None:
            known = self.copies[value, device] = self._copy(value, device, source)
        return known

    def _copy(self, value: int, device: int, source: tuple[int, ...]) -> int:
        """What is made of nothing is made there again, everything else copied."""
        types = self.placer.types
        copied, maker = len(types), self._maker_of(value)
        own = self.setting.graph.types
        kinds = own if value < len(own) else types
        types.append(kinds[value])
        if maker is not None:
            made = replace(maker, results=(copied,), mark=self._mark(device))
        else:
            attributes = make_attributes({"destination": self.placer.names[device]})
            made = Node("copy", (value,), (copied,), attributes, (), source, self._mark(device))
        self.nodes.append(made)
        self.devices[copied] = device
        return copied
