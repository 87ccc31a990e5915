"""Bundles of every release, kept for ever: each loads with the present loader and gives the bits
that it gave then.

A file here is never made again. Where one does not pass, the loader is wrong (FORMAT.md, "Version
rule"), or its major version is another.
"""

from __future__ import annotations

import json
import lzma
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.codegen_harness import Array
from tests.json_schemas import checked

import ingot_runtime
from ingot_runtime import command
from ingot_runtime.format.features import LEVELS
from ingot_runtime.loader.cpu import machine_features
from ingot_runtime.npz import in_bits

HERE = Path(__file__).parent
GENERATIONS = tuple(sorted(path.parent.name for path in HERE.glob("*/index.json")))
SIZE_BYTES_MAX = 250_000  # of one generation
OLDEST = "0.1.0"


def index(generation: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (HERE / generation / "index.json").read_text(encoding="utf-8")
    )
    return found


BUNDLES = [(generation, name) for generation in GENERATIONS for name in index(generation)]


@cache
def bundle(generation: str, name: str) -> bytes:
    return lzma.decompress((HERE / generation / f"{name}.ingot.xz").read_bytes())


def arrays(generation: str, name: str) -> dict[str, Array]:
    with np.load(HERE / generation / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def part(stored: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {
        key.removeprefix(prefix): array for key, array in stored.items() if key.startswith(prefix)
    }


@pytest.mark.sweep(3)
@pytest.mark.parametrize("executor", ["aot", "vm"])
@pytest.mark.parametrize(("generation", "name"), BUNDLES)
def test_the_answers_of_then(generation: str, name: str, executor: str) -> None:
    """Each variant that this machine can run, with 1 and 2 threads: shapes, types and bits. Others
    are refused by name."""
    about, stored = index(generation)[name], arrays(generation, name)
    calls = sorted({key.split("/")[0] for key in stored})
    compared = 0
    for target in about["targets"]:
        load = partial(
            ingot_runtime.load, variant=target, executor=executor, digest=about["root_digest"]
        )
        if not machine_features() >= set(LEVELS[target]):
            with pytest.raises(ingot_runtime.IncompatibleError, match=target):
                load(bundle(generation, name))
            continue
        for threads in (1, 2):
            session = load(bundle(generation, name), threads=threads)
            for call in calls:
                expected = part(stored, f"{call}/{target}/")
                found = session.run(part(stored, f"{call}/in/"))
                assert list(found) == list(expected)
                for key, array in expected.items():
                    bits = in_bits(found[key])
                    assert (bits.dtype, bits.shape) == (array.dtype, array.shape)
                    assert bits.tobytes() == array.tobytes()
                    compared += 1
            session.close()
    assert compared


@pytest.mark.parametrize(("generation", "name"), BUNDLES)
def test_it_can_be_looked_into(
    generation: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The description names its targets and devices, and the digest that was written down when it
    was made."""
    path = tmp_path / "old.ingot"
    path.write_bytes(bundle(generation, name))
    assert command.main(["inspect", "--json", str(path)]) == 0
    described = checked("device-inspect", capsys.readouterr().out)
    about = index(generation)[name]
    assert described["digest"] == about["root_digest"]
    assert {variant["target"] for variant in described["variants"]} == set(about["targets"])
    assert {device["name"] for device in described["devices"]} == {"host", *about["devices"]}


def test_generations_are_whole_and_small() -> None:
    """The first one is there for ever; each has its files, and no others."""
    assert OLDEST in GENERATIONS
    assert {
        path.parent.name for path in HERE.glob("*/*") if path.parent.name != "__pycache__"
    } == set(GENERATIONS)
    for generation in GENERATIONS:
        files = {path.name: path.stat().st_size for path in (HERE / generation).iterdir()}
        names = index(generation)
        assert set(files) == {
            "index.json",
            *(f"{name}{end}" for name in names for end in (".npz", ".ingot.xz")),
        }
        assert sum(files.values()) < SIZE_BYTES_MAX
