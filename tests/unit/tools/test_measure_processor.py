"""``ingot identify --measure``: the loops do what they count, and rates follow from their times."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.codegen_harness import FOREIGN, RUNNABLE
from tests.json_schemas import checked

from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.view import measure_processor as measuring
from ingot_build_rules.tools.view.measure_processor import MeasuredProcessor, differences
from ingot_compiler.codegen import measured_loops
from ingot_compiler.codegen.llvm import emit_assembly
from ingot_compiler.codegen.measured_loops import ACCESSES, CHAIN_CYCLES, LOOPS, MeasuredLoops
from ingot_compiler.targets.processors import PROCESSORS, ProcessorClass
from ingot_compiler.targets.target import Target
from ingot_runtime.loader import cpu

INSTRUCTIONS = {
    "x86-64": {"adds": r"\svfmadd\w+ps", "both": r"\sv(fmadd\w+|add)ps", "loads": r"\svmovu?a?ps\s+[^%]*\(", "stores": r"\svmovu?a?ps\s+%[xyz]mm\d+, "},
    "aarch64": {"adds": r"\sfmla\s", "both": r"\sf(mla|add)\s", "loads": r"\sldr\s+q", "stores": r"\sstr\s+q"},
}  # fmt: skip


def loop_of(name: str, target: Target) -> str:
    """The instructions of a loop's round."""
    text = emit_assembly(measured_loops.loops_text(target, 20, 10), target)
    body = text.split(f"\n{name}:", 1)[1].split("\n.Lfunc_end", 1)[0]
    blocks = re.split(r"\n\.LBB\w+:", body)
    return max(blocks, key=len)


@pytest.mark.parametrize("name", LOOPS[1:])
@pytest.mark.parametrize("target", [*RUNNABLE[1:], FOREIGN[0]], ids=str)
def test_a_round_has_the_instructions_that_are_counted(name: str, target: Target) -> None:
    """Nothing is left out, and nothing is kept in memory between."""
    wanted = {"adds": 20, "both": 30, "loads": ACCESSES, "stores": ACCESSES}[name]
    if target.vector_register_count < 20 + 10 + 2 and name in ("adds", "both"):
        return  # they would not be in registers: the loops have fewer there
    found = re.findall(INSTRUCTIONS[target.arch][name], loop_of(name, target))
    assert len(found) in (wanted, wanted // 2)  # a pair of registers by one instruction


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("name", LOOPS)
def test_loops_stay_in_their_memory(name: str, target: Target) -> None:
    """They run on every level, and write nothing behind the end."""
    memory = np.zeros(8192, np.uint8)
    MeasuredLoops(target).run(name, memory, 100, 4096)
    assert not memory[4096 + 64 :].any()


def pretend(row: ProcessorClass, clock: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let times be those of a processor as that one, with its second cache of 2 MiB."""

    def cache(level: int) -> tuple[int, int]:
        return (row.level1_bytes, row.level1_ways) if level == 1 else (row.level2_bytes, 8)

    def seconds(timer: measuring.Timer, name: str, rounds: int, size_bytes: int) -> float:
        loops = timer.loops
        near = size_bytes < row.level1_bytes
        rate = row.level2_rate if size_bytes < row.level2_bytes else row.far_rate
        adds, others = loops.sum_count, 0 if row.adds_apart else loops.other_count
        cycles = {
            "cycles": float(CHAIN_CYCLES),
            "adds": adds / row.multiply_adds,
            "both": (adds + others) / row.multiply_adds,
            "loads": ACCESSES / row.loads if near else ACCESSES * loops.vector_bytes / rate,
            "stores": ACCESSES / row.stores,
        }
        return rounds * cycles[name] / clock

    monkeypatch.setattr(measuring, "cache_of", cache)
    monkeypatch.setattr(measuring.Timer, "seconds", seconds)


@pytest.mark.parametrize("row", PROCESSORS, ids=lambda row: row.name)
def test_rates_follow_from_times(row: ProcessorClass, monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that is as its class is measured so, and leaves the table nowhere."""
    pretend(row, 3e9, monkeypatch)
    found = measuring.measure_processor()
    assert found.clock == pytest.approx(3e9)
    for name in ("multiply_adds", "loads", "stores", "level2_rate", "far_rate"):
        assert getattr(found, name) == pytest.approx(getattr(row, name))
    assert (found.adds_apart, found.level1_ways) == (row.adds_apart, row.level1_ways)
    assert differences(found, row) == ()
    other = replace(row, loads=2 * row.loads, adds_apart=not row.adds_apart)
    assert differences(found, other) == ("loads", "adds_apart")


def test_a_busy_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No time of it would mean anything."""
    noise = np.random.default_rng(0)

    def seconds(_timer: measuring.Timer, _name: str, rounds: int, _size_bytes: int) -> float:
        return rounds * 1e-6 * float(noise.uniform(1, 9) ** 3)

    monkeypatch.setattr(measuring.Timer, "seconds", seconds)
    assert main(["identify", "--measure"]) == 1
    assert "this machine is too busy to be measured" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["AuthenticAMD 1a 2", "GenuineIntel 6 cf", ""])
def test_the_verb_shows_the_row_of_the_class(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a processor that has one; where they differ it says so."""
    made = MeasuredProcessor(4.2e9, 1.9, True, 1.95, 1.0, 49152, 12, 1 << 20, 62.0, 28.0)
    monkeypatch.setattr(measuring, "measure_processor", lambda: made)
    monkeypatch.setattr(cpu, "processor_model", lambda: model)
    assert main(["identify", "--measure", "--json"]) == 0
    found = checked("identify", capsys.readouterr().out)
    assert found["measured"]["clock"] == 4.2e9
    assert (found["table"] is None) == (found["class"] == "unknown")
    assert main(["identify", "--measure"]) == 0
    shown = capsys.readouterr().out
    assert "4.20 GHz" in shown
    assert ("not as the table has it" in shown) == bool(found["differs"])
