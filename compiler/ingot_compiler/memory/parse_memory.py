"""Reads the text form of a memory plan.

In: text, as ``print_memory`` writes it or by hand. Out: a ``MemoryPlan`` that ``verify_memory``
accepts, or ``ModelError`` with line and column. Not done here: whether it fits a fused graph, which
the text does not have.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.text.parse_graph import Places
from ingot_compiler.ir.text.read_terms import read_dim
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.memory.memory_plan import BufferPlacement, MemoryPlan, PoolPlan
from ingot_compiler.memory.verify_memory import POOL, find_memory_problems


def parse_memory(text: str) -> MemoryPlan:
    """The plan that ``text`` writes down; ``parse_memory(print_memory(p)) == p``."""
    reader, places = Reader("memory", text), Places()
    reader.expect("planner")
    planner = reader.name("a planner")
    pools: list[PoolPlan] = []
    while reader.at("device"):
        places[POOL, len(pools)] = reader.token
        pools.append(_pool(reader))
    placements: list[BufferPlacement] = []
    while reader.at("buffer"):
        places[(len(placements),)] = reader.token
        placements.append(_placement(reader))
    reader.end()
    plan = MemoryPlan(tuple(placements), tuple(pools), planner)
    reader.check(find_memory_problems(plan), places)
    return plan


def _pool(reader: Reader) -> PoolPlan:
    reader.expect("device")
    device = reader.integer()
    name = "" if reader.at(":") else reader.name("the name of a pool")
    reader.expect(":")
    size_bytes = reader.integer()
    reader.expect("bytes", ",", "at", "least")
    lower_bound_bytes = reader.integer()
    fixed = reader.accept(",")
    if fixed:
        reader.expect("fixed")
    return PoolPlan(device, size_bytes, lower_bound_bytes, fixed, name)


def _placement(reader: Reader) -> BufferPlacement:
    reader.expect("buffer")
    buffer, device = reader.buffer(), 0
    if reader.accept("on"):
        reader.expect("device")
        device = reader.integer()
    reader.expect(":")
    size_bytes = read_dim(reader)
    reader.expect("bytes", ",", "steps")
    first = reader.integer()
    reader.expect("to")
    last = reader.integer()
    reader.expect(",")
    place = BufferPlacement(buffer, size_bytes, first, last, None, device=device)
    where = reader.choice(("at", "above", "a"))
    if where == "a":
        reader.expect("block", "of", "its", "own")
        return replace(place, is_data_dependent=True)
    if where == "at":
        return replace(place, offset_bytes=reader.integer())
    if reader.accept("nothing"):
        return place
    return replace(place, after=reader.listed(reader.buffer))
