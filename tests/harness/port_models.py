"""Models of the ports of processors: cycles that LLVM's llvm-mca or OSACA predict for a loop whose
data are all in the first cache and whose chains are long apart.

In: assembly text. Out: ``PortModel``, which of them this machine has, which of their numbers are
right. Not done here: loops (``loop_code``), what classes of processors say (``targets.processors``).

Both programs take the busiest port's work for a turn of the loop. A model is no oracle for numbers
that its processor's maker, or a measurement, contradicts: ``wrong`` has them and the reason.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LLVM_VERSION_MIN = (
    19  # earlier ones lack Zen 4, Alder Lake and the Neoverse cores, or have others' ports
)
LLVM_NAMES = ("llvm-mca", *(f"llvm-mca-{version}" for version in range(19, 30)))
OSACA_VARIABLE = "INGOT_OSACA"
RATES = ("multiply-adds", "additions", "loads", "stores", "bytes", "loops")
MULTIPLY_ADDS, ADDS, LOADS, STORES, BYTES, LOOPS = RATES
_PRESSURE = re.compile(r"^Summary:.*?PortPressure: \{(.*?)\}", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PortModel:
    """``row``: the class of processors; ``name``: the processor, as the program says it; ``wrong``:
    those of ``RATES`` that it does not know (multiplying bytes, whole loops are among them), and
    ``why``."""

    row: str
    program: str
    name: str
    wrong: tuple[str, ...] = ()
    why: str = ""

    def knows(self, rate: str) -> bool:
        """Whether one of ``RATES`` is right."""
        return rate not in self.wrong

    def cycles(self, text: str, arch: str) -> float:
        """Cycles of a turn."""
        return _cycles(self.program, self.name, text, arch)


def _llvm(row: str, name: str, *wrong: str, why: str = "") -> PortModel:
    return PortModel(row, "llvm-mca", name, wrong, why)


def _osaca(row: str, name: str, *wrong: str, why: str = "") -> PortModel:
    """It knows no products of bytes."""
    return PortModel(row, "osaca", name, (BYTES, *wrong), why)


MODELS = (
    _llvm("zen4", "znver4", LOADS, STORES, BYTES, why="loads as of 256 bits, bytes at half the speed"),
    _osaca("zen4", "ZEN4", LOOPS, why="refuses broadcasts from memory"),
    _llvm("skylake-x", "skylake-avx512"),
    _osaca("skylake-x", "SKX"),
    _osaca("ice-lake-server", "ICX"),
    _osaca("sapphire-rapids", "SPR"),
    _llvm("haswell", "haswell", ADDS, why="the port of additions is not summed with multiply-adds"),
    _llvm("haswell", "broadwell", ADDS, why="the same"),
    _osaca("haswell", "HSW", LOOPS, why="one broadcast from memory in a cycle"),
    _osaca("haswell", "BDW"),
    _llvm("skylake", "skylake"),
    _osaca("skylake", "SKX"),
    _llvm("alder-lake", "alderlake"),
    _llvm("zen2", "znver3"),
    _llvm("zen2", "znver2", LOADS, STORES, LOOPS, why="three addresses of any kind; four wide"),
    _osaca("zen2", "ZEN2", LOOPS, why="refuses broadcasts from memory"),
    _osaca("zen2", "ZEN3", LOOPS, why="one broadcast from memory in a cycle"),
    _llvm("neoverse-n1", "neoverse-n1"),
    _osaca("neoverse-n1", "N1", STORES, why="two of 128 bits; by the maker one"),
    _llvm("neoverse-n2", "neoverse-n2"),
    _llvm("neoverse-v1", "neoverse-v1"),
    _llvm("neoverse-v2", "neoverse-v2"),
    _osaca("neoverse-v2", "V2"),
    _llvm("cortex-a72", "cortex-a72", BYTES, why="it multiplies none"),
    _osaca("cortex-a72", "A72"),
    _llvm("cortex-a55", "cortex-a53", ADDS, LOADS, LOOPS, why="a load of 128 bits in one cycle"),
    _osaca("apple-m", "M1"),
)  # fmt: skip
"""Not among them, for they are another processor's: LLVM's of Ice Lake and Sapphire Rapids (one unit of
512 bits, as in clients; measured: two), Zen 5 (Zen 4's), Cortex-A76 (Cortex-A57's), Apple's (of 2013);
Cortex-A55 (two multiply-adds of 128 bits; by the maker one)."""


def models_here() -> tuple[PortModel, ...]:
    """Those whose programs this machine has."""
    found = {"llvm-mca": _llvm_program(), "osaca": _osaca_program()}
    return tuple(model for model in MODELS if found[model.program])


@cache
def _llvm_program() -> str:
    """The path of an llvm-mca that is new enough; "" for none."""
    for name in LLVM_NAMES:
        if path := shutil.which(name):
            told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
            version = re.search(r"version (\d+)", told.stdout)
            if version and int(version[1]) >= LLVM_VERSION_MIN:
                return path
    return ""


@cache
def _osaca_program() -> str:
    return os.environ.get(OSACA_VARIABLE) or shutil.which("osaca") or ""


@cache
def _cycles(program: str, name: str, text: str, arch: str) -> float:
    found = _by_llvm(name, text, arch) if program == "llvm-mca" else _by_osaca(name, text)
    assert found > 0, (program, name, text)
    return found


def _by_llvm(name: str, text: str, arch: str) -> float:
    triple = "aarch64" if arch == "aarch64" else "x86_64"
    command = [_llvm_program(), f"-mtriple={triple}", f"-mcpu={name}", "-json"]
    told = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    (region,) = json.loads(told.stdout)["CodeRegions"]
    return float(region["SummaryView"]["BlockRThroughput"])


def _by_osaca(name: str, text: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        code, report = Path(folder, "loop.s"), Path(folder, "report.yaml")
        code.write_text(text)
        options = ["--arch", name, "--ignore-unknown", "--yaml-out", str(report)]
        command = [_osaca_program(), *options, str(code)]
        subprocess.run(command, capture_output=True, check=True)
        pressure = _PRESSURE.search(report.read_text())
    assert pressure
    ports = pressure[1].replace("\n", " ").split(",")
    return max(float(port.rpartition(":")[2]) for port in ports)
