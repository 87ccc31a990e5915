"""Reads the text form of a fused graph.

In: text, as ``print_fused`` writes it or by hand. Out: a ``FusedGraph`` that ``verify_fused``
accepts, or ``ModelError`` with line and column. Not done here: devices and targets, which are
beside it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal as OneOf

from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.parse_graph import Places, read_graph
from ingot_compiler.ir.read_terms import read_dim, read_dtype, read_profile, read_type
from ingot_compiler.ir.text_reader import Reader
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fused import BufferSpec, FusedGraph, Specialisation
from ingot_compiler.lowering.parse_fused_steps import read_steps
from ingot_compiler.lowering.parse_group import read_device
from ingot_compiler.lowering.verify_fused import find_fused_problems
from ingot_compiler.lowering.verify_fused_buffers import BUFFER, CONSTANT


def parse_fused(text: str, kinds: Collection[str] = ()) -> FusedGraph:
    """The fused graph that ``text`` writes down; ``parse_fused(print_fused(f)) == f``. ``kinds``:
    of kernels, as in ``verify_fused``."""
    reader = Reader("fused", text)
    places = Places()
    inputs, outputs = _types(reader, "input"), _types(reader, "output")
    buffers = _buffers(reader, places)
    specialisations: list[Specialisation] = []
    while reader.at("specialisation"):
        specialisations.append(_specialisation(reader))
    steps = read_steps(reader, places)
    constants = _constants(reader, places)
    reader.end()
    fused = FusedGraph(inputs, outputs, buffers, steps, constants, tuple(specialisations))
    reader.check(find_fused_problems(fused, kinds), places)
    return fused


def _types(reader: Reader, word: str) -> tuple[TensorType, ...]:
    found: list[TensorType] = []
    while reader.at(word):
        reader.expect(word, str(len(found)), ":")
        found.append(read_type(reader))
    return tuple(found)


def _buffers(reader: Reader, places: Places) -> tuple[BufferSpec, ...]:
    found: list[BufferSpec] = []
    while reader.at("buffer"):
        places[BUFFER, len(found)] = reader.token
        found.append(_buffer(reader, len(found)))
    return tuple(found)


def _constants(reader: Reader, places: Places) -> tuple[Graph, ...]:
    found: list[Graph] = []
    while reader.at("constant"):
        path = (CONSTANT, len(found))
        places[path] = reader.expect("constant", str(len(found)), ":")
        found.append(read_graph(reader, places, path))
    return tuple(found)


def _buffer(reader: Reader, number: int) -> BufferSpec:
    reader.expect("buffer", f"b{number}", ":")
    dtype = read_dtype(reader)
    reader.expect("x")
    element_count = read_dim(reader)
    reader.expect(",")
    kind: OneOf["input", "output", "workspace", "constant"]
    kind = reader.choice(("input", "output", "workspace", "constant"))
    index = reader.integer() if reader.token.kind == "INTEGER" else -1
    return BufferSpec(kind, dtype, element_count, index, read_device(reader))


def _specialisation(reader: Reader) -> Specialisation:
    reader.expect("specialisation", "from")
    first_step = reader.integer()
    reader.expect("where")
    return Specialisation(first_step, read_profile(reader))
