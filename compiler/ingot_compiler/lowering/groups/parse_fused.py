"""Reads the text form of a fused graph.

In: text, as ``print_fused`` writes it or by hand. Out: a ``FusedGraph`` that ``verify_fused``
accepts, or ``ModelError`` with line and column. Not done here: devices and targets, which are
beside it.
"""

from __future__ import annotations

from collections.abc import Collection

from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.text.parse_graph import read_graph
from ingot_compiler.ir.text.read_terms import read_type
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import BufferSpec, FusedGraph, Specialisation
from ingot_compiler.lowering.groups.print_fused import FUSED, read_steps
from ingot_compiler.lowering.groups.verify_fused import find_fused_problems
from ingot_compiler.lowering.groups.verify_fused_buffers import BUFFER, CONSTANT


def parse_fused(text: str, kinds: Collection[str] = ()) -> FusedGraph:
    """The fused graph that ``text`` writes down; ``parse_fused(print_fused(f)) == f``. ``kinds``:
    of kernels, as in ``verify_fused``."""
    reader = Reader("fused", text)
    inputs, outputs = _types(reader, "input"), _types(reader, "output")
    buffers = _buffers(reader)
    specialisations: list[Specialisation] = []
    while reader.at("specialisation"):
        specialisations.append(FUSED.read(Specialisation, reader))
    steps = read_steps(reader, "constant")
    constants = _constants(reader)
    reader.end()
    fused = FusedGraph(inputs, outputs, buffers, steps, constants, tuple(specialisations))
    reader.check(find_fused_problems(fused, kinds), reader.places)
    return fused


def _types(reader: Reader, word: str) -> tuple[TensorType, ...]:
    found: list[TensorType] = []
    while reader.at(word):
        reader.expect(word, str(len(found)), ":")
        found.append(read_type(reader))
    return tuple(found)


def _buffers(reader: Reader) -> tuple[BufferSpec, ...]:
    found: list[BufferSpec] = []
    while reader.at("buffer"):
        reader.places[BUFFER, len(found)] = reader.token
        reader.expect("buffer", f"b{len(found)}", ":")
        found.append(FUSED.read(BufferSpec, reader))
    return tuple(found)


def _constants(reader: Reader) -> tuple[Graph, ...]:
    found: list[Graph] = []
    while reader.at("constant"):
        path = (CONSTANT, len(found))
        reader.places[path] = reader.expect("constant", str(len(found)), ":")
        found.append(read_graph(reader, reader.places, path))
    return tuple(found)
