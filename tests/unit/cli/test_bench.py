"""``ingot bench``: what it prints, of bundles and of models; a noisy machine gives no number."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.decoder_harness import decoder
from tests.json_schemas import checked
from tests.unit.tools.test_report_data import ROWS, WIDTH, matmul_chain

import ingot
from ingot_build_rules.tools.cli import bench
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.view import resident_memory as memory
from ingot_build_rules.tools.view.measure import (
    MachineLimits,
    machine_limits,
    measure_blocks,
    percentiles,
)
from ingot_build_rules.tools.view.roofline import peak_share, roofline_rows
from ingot_compiler.ir.errors import BuildError

MIB = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of open sizes, its bundle, and inputs."""
    made = tmp_path_factory.mktemp("bench")
    (made / "m.onnx").write_bytes(matmul_chain("rows"))
    ingot.compile(made / "m.onnx").save(made / "m.ingot")
    np.savez(made / "x.npz", x=np.ones((ROWS, WIDTH), np.float32))
    return made


def run(folder: Path, name: str, *words: str) -> int:
    """Run the command for a very short measurement."""
    inputs = str(folder / "x.npz")
    return main(["bench", str(folder / name), "--inputs", inputs, "--seconds", "0.01", *words])


def measured(medians: list[float]) -> Callable[..., list[list[float]]]:
    """What measures gives these medians of blocks."""

    def measure(call: Callable[[], object], seconds: float) -> list[list[float]]:
        assert call()
        return [[value] * 3 for value in medians]

    return measure


def test_all_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has the time with its interval, percentiles in order, rate, memory and kernels."""
    assert run(folder, "m.ingot", "--anyway", "--json") == 0
    report = checked("bench", capsys.readouterr().out)
    seconds, sizes = report["call_seconds_percentiles"], report["memory"]
    for name in ("call_seconds", "calls_per_second"):
        assert 0 < report[name]["low"] <= report[name]["median"] <= report[name]["high"]
    assert list(seconds) == ["p10", "p50", "p90", "p99"]
    assert list(seconds.values()) == sorted(seconds.values())
    assert report["call_count"] >= report["block_count"] >= 6
    assert report["size_bytes"] == (folder / "m.ingot").stat().st_size
    assert sizes["load_bytes"] > 0
    assert sizes["workspace_bytes"] > 0
    assert report["compiled"] is None
    assert len(report["launches"]) == 3
    assert report["roofline"] is None


def test_a_noisy_machine_gives_no_number(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused with the interval and what to do; with ``--anyway`` the number comes, and is
    called noisy."""
    monkeypatch.setattr(bench, "measure_blocks", measured([1.0] * 10 + [1.5] * 10))
    assert run(folder, "m.ingot") == 2
    told = capsys.readouterr()
    assert not told.out
    assert "error: this machine is too noisy for a number\n" in told.err
    assert "between 1.00 s and 1.50 s: expected at most 5% between them, got 40%" in told.err
    assert "--anyway" in told.err
    assert run(folder, "m.ingot", "--anyway") == 0
    assert re.search(r"^call .*\(spread 40\.0%\); too noisy", capsys.readouterr().out, re.MULTILINE)


def test_a_quiet_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines for people: each number has its unit, and the interval stands beside the median."""
    monkeypatch.setattr(bench, "measure_blocks", measured([0.25] * 20))
    assert run(folder, "m.ingot") == 0
    text = capsys.readouterr().out
    ms = r"250\.00 ms"
    for line in (
        rf"call    median {ms}, between {ms} and {ms} with 95% confidence \(spread 0\.0%\)",
        rf"calls   p10 {ms}, p50 {ms}, p90 {ms}, p99 {ms} \(60 calls in 20 blocks\)",
        r"rate    median 4, between 4 and 4 calls per second, 1 thread \(spread 0\.0%\)",
        r"memory  .* resident after the load, at most .* more in calls; workspace .*; file [\d.]+ kB",
    ):
        assert re.search(f"^{line}$", text, re.MULTILINE), text


def test_large_rates_have_no_exponent(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """100,000 calls per second are not 1e+05."""
    monkeypatch.setattr(bench, "measure_blocks", measured([1e-5] * 20))
    assert run(folder, "m.ingot") == 0
    line = "rate    median 100,000, between 100,000 and 100,000 calls per second"
    assert line in capsys.readouterr().out


@pytest.mark.broad
def test_a_model_is_compiled_over_the_users_cache(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The command says so, leaves no bundle behind, and finds in the cache what is there."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert run(folder, "m.onnx", "--anyway", "--target", "x86-64-v3", "--json") == 0
    told = capsys.readouterr()
    cache = os.environ["INGOT_CACHE"]
    said = f"{folder / 'm.onnx'} for x86-64-v3, over the cache {cache}, into a temporary bundle"
    assert f"compiling {said}" in told.err
    report = checked("bench", told.out)
    assert report["compiled"].startswith(f"compiled {said}, in ")
    assert report["bundle"] == str(folder / "m.onnx")
    assert not [name for name in os.listdir(tmp_path) if name.startswith("ingot-")]


@pytest.mark.parametrize(
    ("name", "words", "code", "said"),
    [
        ("m.ingot", ("--target", "x86-64-v3"), 1, "a target for a bundle"),
        ("none.onnx", (), 1, "none.onnx"),
        ("none.ingot", (), 1, "none.ingot"),
        ("text.onnx", (), 1, "text.onnx"),
    ],
)
def test_errors(
    folder: Path,
    name: str,
    words: tuple[str, ...],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A mistake has an error in parts."""
    (folder / "text.onnx").write_text("no model")
    assert run(folder, name, *words) == code
    told = capsys.readouterr().err
    assert "error: " in told
    assert said in told
    assert "Traceback" not in told


def test_blocks_cover_all_calls() -> None:
    """Calls that take longer than a block are blocks of one call, six at least; quick ones fill
    blocks of many."""
    calls: list[None] = []
    blocks = measure_blocks(lambda: calls.append(None), 1e-9)
    assert [len(block) for block in blocks] == [1] * 6
    assert len(calls) == 6 + 3  # three warm up
    many = measure_blocks(lambda: None, 0.01)
    assert sum(map(len, many)) > len(many)
    assert len(many) <= 20


def test_percentiles() -> None:
    """Of 0 to 100 they are their own names."""
    found = percentiles([float(value) for value in range(101)])
    assert found == {"p10": 10.0, "p50": 50.0, "p90": 90.0, "p99": 99.0}


@pytest.mark.broad
def test_memory_of_calls(tmp_path: Path) -> None:
    """Inputs of 64 MiB that a call reads give outputs of as much, which the peak has in it."""
    from onnx import TensorProto, helper
    from tests.hostile.model_builder import model, value

    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    made = model(nodes, [value("x", ["n"], TensorProto.FLOAT)], [value("y", ["n"])])
    ingot.compile(made.SerializeToString(), targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    feed = {"x": np.ones(16 * MIB, np.float32)}
    found = memory.resident_memory(str(tmp_path / "m.ingot"), feed, 1, "x86-64-v3", {})
    assert found.peak_beyond_load_bytes is not None
    assert 60 * MIB < found.peak_beyond_load_bytes < 300 * MIB
    assert found.load_bytes < 60 * MIB


def test_memory_of_a_process_that_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it said last is the reason."""

    def fail(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "Traceback\nMemoryError: no more\n")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(BuildError, match="MemoryError: no more"):
        memory.resident_memory(str(folder / "m.ingot"), {}, 1, "x86-64-v3", {})


@pytest.mark.broad
def test_a_token_behind_others(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One row for each length that was asked for, as a table and as JSON."""
    path = str(tmp_path / "decoder.ingot")
    ingot.compile(decoder().SerializeToString()).save(path)
    words = ["bench", path, "--decode", "3", "--decode", "700", "--seconds", "0.01", "--anyway"]
    assert main([*words, "--json"]) == 0
    rows = checked("bench", capsys.readouterr().out)["decode"]
    assert [row["length"] for row in rows] == [3, 700]
    assert all(row["token_seconds"]["median"] > 0 for row in rows)
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("tokens before")


@pytest.mark.parametrize(
    ("name", "words", "text"),
    [
        ("m.ingot", [], "the bundle has no state"),
        ("decoder.ingot", ["--inputs", "x.npz"], "leave --inputs and --shape out"),
        ("m.ingot", ["--roofline"], "options --decode, --roofline"),
    ],
)
def test_what_cannot_be_decoded(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, words: list[str], text: str
) -> None:
    """A bundle without caches, and lengths beside inputs, are refused."""
    ingot.compile(decoder().SerializeToString()).save(folder / "decoder.ingot")
    assert main(["bench", str(folder / name), "--decode", "3", *words]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.broad
def test_launches_beside_the_peak(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shares of the time add up, those of peak and bandwidth follow from the counts and limits."""
    assert run(folder, "m.ingot", "--anyway", "--roofline", "--json") == 0
    found = checked("bench", capsys.readouterr().out)["roofline"]
    rates = found["limits"]
    assert len(found["launches"]) == 3
    assert sum(row["time_share"] for row in found["launches"]) == pytest.approx(1)
    for row in found["launches"]:
        assert row["operations"] > 0
        operations = row["operations"] / row["seconds"]
        assert row["peak_share"] == pytest.approx(operations / rates["operations_per_second"])
        moved = row["bytes"] / row["seconds"]
        assert row["bandwidth_share"] == pytest.approx(moved / rates["bytes_per_second"])
        assert row["nodes"]
    assert run(folder, "m.ingot", "--anyway", "--roofline") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-6].endswith("% of it, by their time")
    assert lines[-4].split() == ["time", "share", "of", "peak", "of", "bandwidth", "kind", "nodes"]


def test_peak_of_two_threads() -> None:
    """Each limit is that of all threads together."""
    limits = machine_limits(2)
    assert limits.operations_per_second > 1e9
    assert limits.bytes_per_second > 1e8


def test_launches_of_another_device_have_no_share() -> None:
    """The limits are those of the host; a kernel whose loops are unknown has none either."""
    row: dict[str, Any] = {
        "ordinal": 0,
        "kind": "conv",
        "nodes": [],
        "operations": 8,
        "bytes": 4,
        "seconds": 2.0,
    }
    rows = [{**row, "device": "acc"}, {**row, "device": "host", "operations": None, "bytes": None}]
    found = roofline_rows([*rows, {**row, "device": "host"}], MachineLimits(8.0, 4.0))
    assert [each["peak_share"] for each in found] == [None, None, 0.5]
    assert [each["bandwidth_share"] for each in found] == [None, None, 0.5]
    assert peak_share(found) == 0.5
    assert peak_share(found[:2]) is None


@pytest.mark.broad
def test_on_another_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All that is measured runs where the user says, which is told; a wrong name is refused."""
    path = tmp_path / "m.ingot"
    ingot.compile(matmul_chain(ROWS), devices={"acc": "cpu"}, place={"*": "acc"}).save(path)
    words = ["bench", str(path), "--seconds", "0.01", "--anyway", "--device", "acc=null:3"]
    assert main([*words, "--json"]) == 0
    report = checked("bench", capsys.readouterr().out)
    assert report["devices"] == {"host": "host:0", "acc": "null:3"}
    assert report["launches"]
    assert main(words) == 0
    assert "devices acc on null:3\n" in capsys.readouterr().out
    assert main([*words, "--device", "acc=cpu:1"]) == 1
    assert "acc" in capsys.readouterr().err
    assert main([*words[:-1], "other=cpu:1"]) == 1
    assert "no device 'other'" in capsys.readouterr().err
