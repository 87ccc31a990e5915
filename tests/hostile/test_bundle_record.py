"""What a bundle records may have been written by anybody: it is read, or refused in four parts,
never anything else."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from ingot_build_rules.engine.actions.message_pack import pack
from ingot_build_rules.tools.reproduce.bundle_difference import Side, bundle_difference
from ingot_build_rules.tools.reproduce.bundle_record import read_record
from ingot_build_rules.tools.reproduce.stage_difference import program_difference
from ingot_compiler.ir.errors import VerificationError

DIGEST = "0" * 64
DESCRIBED: dict[str, Any] = {
    "lock": {
        "graph": DIGEST,
        "weights": [DIGEST],
        "options": {"targets": ["x86-64-v3"], "shapes": [{"x": "2"}], "devices": {}, "place": [["*", "host"]], "planner": "best", "other_shapes": "general", "strip": False},
        "toolchain": {"ingot": "0.1.0"},
        "stages": {
            "infer_types": DIGEST, "optimize": DIGEST, "place": DIGEST,
            "targets": {
                "x86-64-v3": {
                    "fuse": DIGEST, "plan_memory": DIGEST, "codegen_main": DIGEST, "link": DIGEST, "kernels": {"k_1": DIGEST},
                }
            },
        },
    },
    "debug": {
        "launches": {"x86-64-v3": [{"kernel": "k_1", "nodes": [["/a", "Add"]]}]},
        "programs": {"x86-64-v3": {"k_1": b"loops"}},
    },
}  # fmt: skip
JUNK: tuple[Any, ...] = (None, 0, -1, True, 1.5, "", "x", b"x", [], [[]], {}, {"x": {}})


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with each of its keys."""
    keys: list[Any] = list(value) if isinstance(value, dict) else []  # pyright: ignore[reportUnknownArgumentType]
    keys = list(range(len(value))) if isinstance(value, list) else keys  # pyright: ignore[reportUnknownArgumentType]
    for key in keys:
        yield value, key
        yield from places(value[key])


@pytest.mark.parametrize("number", range(len(list(places(DESCRIBED)))))
def test_junk_at_every_place(number: int) -> None:
    """Any value of another kind, or none at all, at each place: read all the same, or one error
    that says what is wrong."""
    refused: list[VerificationError] = []
    for junk in (*JUNK, ...):
        described = copy.deepcopy(DESCRIBED)
        container, key = list(places(described))[number]
        if junk is ...:
            del container[key]
        else:
            container[key] = junk
        if not {"lock", "debug"} <= set(described):
            continue
        try:
            read_record(described, "a.ingot")
        except VerificationError as error:
            refused.append(error)
    assert refused
    for item in refused:
        assert item.what == "the bundle does not say what it was made from"
        assert item.where == "a.ingot, section lock 0"
        assert item.why
        assert item.do


def test_loops_without_end() -> None:
    """A record of loops that is nested without end is refused, too."""
    described = copy.deepcopy(DESCRIBED)
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    described["debug"]["programs"]["x86-64-v3"]["k_1"] = nested
    with pytest.raises(VerificationError):
        read_record(described, "a.ingot")


def test_programs_that_are_none() -> None:
    """Where loops cannot be read, nothing is said of them."""
    for junk in (
        b"",
        b"x",
        *map(pack, (*JUNK, [["LoopProgram"], [16, 1, 2, 3, 4, 5, 6]], [["Store"], [16, 1]])),
    ):
        assert program_difference(junk, junk) == ""


def test_launches_of_other_lengths() -> None:
    """A launch that only one side has is a difference, whatever the other one is."""
    other = copy.deepcopy(DESCRIBED)
    other["debug"]["launches"]["x86-64-v3"] = []
    plain = {"sections": [], "variants": [{"target": "x86-64-v3"}]}
    sides = [
        Side({**plain, **described}, read_record(described, "a"))
        for described in (DESCRIBED, other)
    ]
    kernel = bundle_difference(*sides).kernel
    assert kernel is not None
    assert (kernel.old, kernel.new, kernel.nodes) == ("k_1", "", (("/a", "Add"),))
