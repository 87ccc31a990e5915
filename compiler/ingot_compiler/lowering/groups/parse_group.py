"""Reads the text form of a group of a fused graph.

In: a reader behind the word ``kernel``. Out: the ``Group``; where its nodes stand. Not done here:
other steps (``print_fused``), whether the group is well formed (``verify_group``).
"""

from __future__ import annotations

from dataclasses import field

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.text.parse_graph import read_node, read_source
from ingot_compiler.ir.text.read_terms import read_dim, read_type
from ingot_compiler.ir.text.text_reader import Reader, Token
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Group, Operand, View
from ingot_compiler.lowering.groups.method import Method, method_language
from ingot_runtime.lazy_dataclass import dataclass


def read_group(reader: Reader) -> Group:
    """``METHOD of PLUGIN on device 1 anchor 0 @[1] { NODES, reads, writes, knows, ends }``."""
    method = method_language().read(Method, reader)
    plugin = reader.name("a plug-in") if reader.accept("of") else ""
    device = 0
    if reader.accept("on"):
        reader.expect("device")
        device = reader.integer()
    anchor = reader.integer() if reader.accept("anchor") else -1
    source = read_source(reader)
    reader.expect("{")
    values = _Values(reader)
    nodes = values.nodes()
    operands, results = values.operands("reads"), values.operands("writes")
    while reader.accept("knows"):
        values.value()
    stop_reason = reader.string() if reader.accept("stop_reason") else ""
    reader.expect("}")
    types = tuple(sorted(values.types.items()))
    return Group(
        method, nodes, operands, results, types, anchor, source, device, stop_reason, plugin
    )


@dataclass(frozen=True, slots=True)
class _Values:
    """Reads what names the values of a group; remembers their types."""

    reader: Reader
    types: dict[int, TensorType] = field(default_factory=dict[int, TensorType])

    def nodes(self) -> tuple[Node, ...]:
        """The nodes of a kernel; it has no regions, and its values any numbers."""
        reader, found = self.reader, list[Node]()

        def define(_: Token, number: int, tensor_type: TensorType) -> int:
            self.types[number] = tensor_type
            return number

        def region(_: int) -> Graph:
            raise reader.fail("expected a node without regions, got one")

        while reader.token.kind == "VALUE" or reader.ahead() == "(":
            at = (*reader.path, len(found))
            found.append(read_node(reader, reader.places, at, reader.value, define, region))
        return tuple(found)

    def operands(self, word: str) -> tuple[Operand, ...]:
        """``reads %1: f32[2] in b0 at DIM strides [DIM]``, some of them."""
        reader, found = self.reader, list[Operand]()
        while reader.accept(word):
            value, kind = self.value()
            reader.expect("in")
            buffer = reader.buffer()
            reader.expect("at")
            offset = read_dim(reader)
            reader.expect("strides", "[")
            strides = reader.items(lambda: read_dim(reader), "]")
            found.append(Operand(value, kind, buffer, View(strides, offset)))
        return tuple(found)

    def value(self) -> tuple[int, TensorType]:
        """``%1: f32[2]``."""
        start = self.reader.token
        value = self.reader.value()
        self.reader.expect(":")
        kind = read_type(self.reader)
        if self.types.setdefault(value, kind) != kind:
            raise self.reader.fail(f"expected {self.types[value]}, as above, got {kind}", start)
        return value, kind
