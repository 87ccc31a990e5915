"""What ends the kernel of a node: elementwise ops between its result and the one tensor that others
read.

In: a ``ModelView``. Out: ``Epilogue``s by the tensor that they begin with. Not done here: what is
quantized (``choose_tensors``). A tensor inside of an epilogue is never stored, so it has no scale.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import field

from ingot_compiler.quantizer.model_view import ModelView
from ingot_compiler.quantizer.op_classes import ELEMENTWISE
from ingot_runtime.lazy_dataclass import dataclass

_NODES_MAX = 24


@dataclass(frozen=True, slots=True)
class Epilogue:
    """``nodes`` after the one at ``start``, in order, give ``exit``; ``beside``: activations that
    they read from elsewhere. Without any, ``exit`` is the result of ``start``."""

    start: int
    nodes: tuple[int, ...]
    exit: str
    beside: tuple[str, ...]


def epilogues(view: ModelView) -> Mapping[str, Epilogue]:
    """The epilogue of each result of a node that no other epilogue contains, in the order of the
    nodes."""
    found: dict[str, Epilogue] = {}
    inside: set[int] = set()
    for index, node in enumerate(view.nodes):
        for result in node.output:
            if result and index not in inside and result not in view.constants:
                found[result] = _Growth(view, index, result, inside).whole()
                inside.update(found[result].nodes)
    return found


@dataclass(slots=True)
class _Growth:
    """One epilogue while it is looked for; ``taken``: nodes of others."""

    view: ModelView
    start: int
    result: str
    taken: set[int]
    tensors: dict[str, None] = field(default_factory=dict[str, None])
    nodes: list[int] = field(default_factory=list[int])
    waiting: list[int] = field(default_factory=list[int])

    def whole(self) -> Epilogue:
        """The longest one that gives a single tensor."""
        self._add(self.result)
        found = Epilogue(self.start, (), self.result, ())
        while self.waiting and len(self.nodes) < _NODES_MAX:
            index = heapq.heappop(self.waiting)
            if index in self.nodes or not self._joins(index):
                continue
            self.nodes.append(index)
            self._add(self.view.nodes[index].output[0])
            read_outside = [name for name in self.tensors if self._is_read_outside(name)]
            if len(read_outside) == 1:
                found = self._ended(read_outside[0])
        return found

    def _add(self, name: str) -> None:
        self.tensors[name] = None
        for reader in self.view.readers.get(name, []):
            heapq.heappush(self.waiting, reader)

    def _joins(self, index: int) -> bool:
        """Whether a node can be computed as soon as the start is."""
        node, view = self.view.nodes[index], self.view
        if node.op_type not in ELEMENTWISE or node.domain not in ("", "ai.onnx"):
            return False
        if index in self.taken or len([name for name in node.output if name]) != 1:
            return False
        outside = (name for name in view.activations(node) if name not in self.tensors)
        return all(view.producers.get(name, -1) < self.start for name in outside)

    def _is_read_outside(self, name: str) -> bool:
        readers = self.view.only_readers(name)
        return readers is None or not readers or any(item not in self.nodes for item in readers)

    def _ended(self, name: str) -> Epilogue:
        read = (
            item for index in self.nodes for item in self.view.activations(self.view.nodes[index])
        )
        beside = tuple(dict.fromkeys(item for item in read if item not in self.tensors))
        return Epilogue(self.start, tuple(self.nodes), name, beside)
