"""The loader in C with the address sanitizer and the one for undefined behaviour: of damaged
bundles by the thousand it says what the loader in Python says."""

from __future__ import annotations

import collections
import itertools
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.c_loader import Verdict, verdict_of_python
from tests.hostile.mutant_bundles import BUNDLES
from tests.hostile.mutations import mutant
from tests.hostile.reseal import Parts
from tests.hostile.two_devices import tree_entry, two_device_contents
from tests.tidy.source import ROOT
from tests.unit.cli.test_share import share, write
from tests.unit.runtime.test_c_loader import mutated
from tests.unit.runtime.test_c_native import SANITIZERS
from tests.unit.runtime.test_c_share import shared_changed

from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.tools.export.abi_header import error_kinds

pytestmark = [pytest.mark.native, pytest.mark.gcc]
MADE = {name: make for name, make in BUNDLES.items() if name != "large"}
NAMES = [*MADE, "devices"]
RECORD_COUNT = 500  # of one process
SHARED_BYTES = 1 << 21
COUNTS = (1000, pytest.param(25_000, marks=pytest.mark.slow))


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that says what the loader says."""
    compiler = shutil.which("gcc")
    assert compiler, "this test needs gcc: apt-get install gcc"
    path = tmp_path_factory.mktemp("verdicts") / "verdicts"
    source = ROOT / "tests" / "unit" / "c_programs" / "verdicts.c"
    flags = ("-std=c11", *SANITIZERS, "-I", ROOT / "runtime" / "c", "-lpthread")
    subprocess.run([compiler, source, "-o", path, *flags], check=True)
    return path


def verdicts_of_c(program: Path, bundles: list[bytes], *paths: Path) -> list[Verdict]:
    """What it says of each, or of the second of two paths where each is the first; no sanitizer has
    anything to say, of leaks neither."""
    records = b"".join(struct.pack("<I", len(data)) + data for data in bundles)
    command = [program, *paths]
    done = subprocess.run(command, input=records, capture_output=True, check=False, env={})
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode(errors="replace")[:2000]
    found: list[Verdict] = []
    for line in done.stdout.decode().splitlines():
        kind, code, what, where = line.split("\t")
        name = error_kinds()[int(kind) - 1].__name__ if int(kind) else ""
        found.append(Verdict(name, what, where, int(code)))
    return found


def mutants(path: Path, count: int) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each that may be loaded."""
    parts = Parts(path.read_bytes())
    for number in range(count):
        _, made, _ = mutant(parts, number, 7)
        if made.may_run:
            yield number, mutated(parts, made)


def differences(
    some: list[tuple[int, bytes]], wanted: list[Verdict], found: list[Verdict]
) -> list[tuple[int, Verdict, Verdict]]:
    """Number and both verdicts of each that the loaders do not say the same of."""
    pairs = zip(some, wanted, found, strict=True)
    return [(number, ours, theirs) for (number, _), ours, theirs in pairs if ours != theirs]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_mutants_under_both_sanitizers(
    checked: Path, tmp_path: Path, name: str, count: int
) -> None:
    """No crash, no leak, and the verdict of the loader in Python: 1,000 of each bundle, or
    25,000."""
    if name == "devices":
        write_bundle(two_device_contents(count=2), tmp_path / "m.ingot", tree_entry)
    else:
        MADE[name](tmp_path / "m.ingot")
    source = mutants(tmp_path / "m.ingot", count)
    kinds: collections.Counter[str] = collections.Counter()
    while some := list(itertools.islice(source, RECORD_COUNT)):
        wanted = [verdict_of_python(data) for _, data in some]
        found = verdicts_of_c(checked, [data for _, data in some])
        assert differences(some, wanted, found) == []
        kinds.update(verdict.kind for verdict in wanted)
    assert kinds.keys() >= {"", "FormatError", "DigestError", "VersionError"}


def mutants_of_shared(path: Path, count: int) -> Iterator[tuple[int, bytes]]:
    """Of a bundle that shares weights; each third is one of the section that says where they lie."""
    parts = Parts(path.read_bytes())
    for number in range(count):
        made = shared_changed(parts, number) if number % 3 == 0 else mutant(parts, number, 7)[1]
        if made.may_run:
            yield number, mutated(parts, made)


@pytest.mark.parametrize("count", [400, pytest.param(25_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("of_base", [False, True])
def test_mutants_of_shared_weights(
    checked: Path, tmp_path: Path, count: int, of_base: bool
) -> None:
    """Of the bundle that shares weights, and of the one that has them: as above."""
    base = write(tmp_path / "base.ingot", 0, SHARED_BYTES)
    shared = share(base, write(tmp_path / "m.ingot", 1, SHARED_BYTES))
    path = base if of_base else shared
    source = mutants(path, count) if of_base else mutants_of_shared(path, count)
    kinds: collections.Counter[str] = collections.Counter()
    while some := list(itertools.islice(source, RECORD_COUNT)):
        wanted: list[Verdict] = []
        for _, data in some:
            path.write_bytes(data)
            wanted.append(verdict_of_python(shared))
        found = verdicts_of_c(checked, [data for _, data in some], path, shared)
        assert differences(some, wanted, found) == []
        kinds.update(verdict.kind for verdict in wanted)
    assert kinds.keys() >= {"FormatError", "DigestError"}
