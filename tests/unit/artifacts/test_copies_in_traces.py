"""No copy is made twice, or for nobody: read from the traces of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.json_schemas import checked
from tests.unit.end_to_end.test_end_to_end_devices import BLOCKS, X, network

import ingot
from ingot_artifacts.inspect.describe import opened, variant_program
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.format.program import CODES
from ingot_runtime.format.source import read_plan

DEVICES = {"acc": "null", "other": "cpu:1"}
SPLITS = {
    "turns": ("acc", "other", "acc", "host", "acc", "other"),
    "branch": ("host", "acc", "other", "acc", "host", "acc"),
    "one": ("acc",) * 6,
    "auto": ("auto",) * 6,
}


def copies_of_calls(path: Path) -> list[list[dict[str, Any]]]:
    """The copies of each stepped call in a trace, in order."""
    entries: list[dict[str, Any]] = checked("trace", path.read_text())["traceEvents"]
    slices = [entry for entry in entries if entry["ph"] == "X"]
    calls = [entry for entry in slices if entry["cat"] == "call" and "stepped" in entry["name"]]
    copies = [entry for entry in slices if entry["cat"] == "copy"]
    found = [
        [
            copy["args"]
            for copy in copies
            if call["ts"] <= copy["ts"] + 0.01 <= call["ts"] + call["dur"] + 0.02
        ]
        for call in calls
    ]
    assert sum(map(len, found)) == len(copies)
    return found


def readers(bundle: Path) -> set[tuple[int, int]]:
    """(number of a device, buffer) of everything that a launch, a copy, a read or the caller gets
    from there."""
    with opened(bundle) as source:
        plan = read_plan(source)
        program = variant_program(source, plan, 0)
    names = {code: name for name, code in CODES.items()}
    found: set[tuple[int, int]] = set()
    for code, operands in program.instructions:
        name = names[code]
        if name.startswith("launch"):
            buffers = operands[3]
            assert isinstance(buffers, tuple)
            found |= {(int(str(operands[0])), buffer) for buffer in buffers}
        elif name in ("copy", "begin_copy"):
            found.add((int(str(operands[0])), int(str(operands[3]))))
        elif name in ("read", "output_buffer"):
            found.add((0, int(str(operands[1]))))
        elif name == "buffer_output":
            found.add((0, int(str(operands[0]))))
    return found


@pytest.mark.sweep(6)
@pytest.mark.parametrize("split", SPLITS)
def test_no_copy_is_redundant(split: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each call a value goes to a device at most once, somebody reads it there, and nothing is
    copied back to where it came from; the bytes are those that the compiler told."""
    place = {f"/{block}/*": device for block, device in zip(BLOCKS, SPLITS[split], strict=True)}
    bundle, trace = tmp_path / "m.ingot", tmp_path / "t.json"
    ingot.compile(network(), targets=["x86-64-v2"], devices=DEVICES, place=place).save(bundle)
    np.savez(tmp_path / "x.npz", x=X)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "m.ingot", "--inputs", "x.npz", "--trace", str(trace)]) == 0
    numbers = {"host": 0, **{name: at for at, name in enumerate(sorted(DEVICES), 1)}}
    read = readers(bundle)
    calls = copies_of_calls(trace)
    assert calls
    assert len(calls[0]) > 0 or split == "auto"
    for copies in calls:
        assert_none_redundant(copies, numbers, read)


def assert_none_redundant(
    copies: Sequence[Mapping[str, Any]], numbers: Mapping[str, int], read: set[tuple[int, int]]
) -> None:
    """The rules for the copies of one call."""
    made = Counter((copy["buffers"][0], copy["destination"]) for copy in copies)
    assert set(made.values()) <= {1}
    origin: dict[int, set[str]] = {}
    for copy in copies:
        source, target = copy["buffers"]
        assert (numbers[copy["destination"]], target) in read
        been = origin.get(source, set()) | {copy["source"]}
        assert copy["destination"] not in been, "a copy goes back to where the value came from"
        origin[target] = been


def test_what_counts_as_redundant() -> None:
    """The rules find a copy that is made twice, that nobody reads, that goes back."""
    numbers, read = {"host": 0, "acc": 1}, {(1, 5), (1, 6), (0, 7)}
    one = {"source": "host", "destination": "acc", "buffers": [2, 5]}
    assert_none_redundant([one], numbers, read)
    for wrong in (
        [one, {**one, "buffers": [2, 6]}],
        [{**one, "buffers": [2, 9]}],
        [one, {"source": "acc", "destination": "host", "buffers": [5, 7]}],
    ):
        with pytest.raises(AssertionError):
            assert_none_redundant(wrong, numbers, read)
