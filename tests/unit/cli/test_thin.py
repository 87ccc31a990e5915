"""``ingot thin``: one variant of several, with the same results; signatures of the whole count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.tiny import WIDTH, tiny_contents, tree_entry
from tests.json_schemas import checked
from tests.unit.runtime.test_signatures import Owner, sign

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import describe_bundle, opened
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.ship.thin import thin_changes
from ingot_runtime.errors import SignatureError
from ingot_runtime.format import header as head
from ingot_runtime.format.limits import MIB

Output = pytest.CaptureFixture[str]
TARGETS = ("x86-64-v2", "aarch64")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Both variants read the second MiB of weights, and nobody reads what is in the third."""
    path, contents = tmp_path / "m.ingot", tiny_contents(targets=TARGETS)
    more = (*contents.weights, (2 * MIB, memoryview(b"more!")))
    write_bundle(replace(contents, weights=more), path, tree_entry)
    return path


def thin(bundle: Path, target: str) -> Path:
    path = bundle.with_name(f"{target}.ingot")
    assert main(["thin", str(bundle), "--target", target, "-o", str(path)]) == 0
    return path


def test_one_variant_is_left(bundle: Path, capsys: Output) -> None:
    """It verifies, gives the same bits, is smaller, and has no name of the other; made once more it
    has the same bytes."""
    path = thin(bundle, TARGETS[0])
    first = path.read_bytes()
    assert thin(bundle, TARGETS[0]).read_bytes() == first
    assert main(["verify", str(path)]) == 0
    with ingot_runtime.load(bundle) as whole, ingot_runtime.load(path) as part:
        x = {"x": np.ones((4, WIDTH), np.float32)}
        assert whole.run(x)["y"].tobytes() == part.run(x)["y"].tobytes()
        assert part.loaded.variant.target == TARGETS[0]
    assert len(first) < bundle.stat().st_size
    described = describe_bundle(path)
    assert list(described["kernels"]) == [TARGETS[0]]
    assert [row["target"] for row in described["variants"]] == [TARGETS[0]]
    capsys.readouterr()
    line = ["thin", str(bundle), "--target", TARGETS[1], "-o", str(path), "--json"]
    assert main(line) == 0
    assert checked("thin", capsys.readouterr().out)["size_bytes"] == path.stat().st_size


def test_weights_that_nobody_reads_are_zeros(bundle: Path) -> None:
    """They take no place on the disk, and the tree agrees; those that are read stay."""
    path = thin(bundle, TARGETS[0])
    with opened(bundle) as whole, opened(path) as part:
        rows = [it.by_key[head.WEIGHTS, 0] for it in (whole, part)]
        (kept,) = thin_changes(whole, TARGETS[0]).kept.values()
        assert kept == ((MIB, 2 * MIB),)
        assert rows[0].size_bytes == rows[1].size_bytes
        before, after = (
            it.read(row.offset, row.size_bytes) for it, row in zip((whole, part), rows, strict=True)
        )
    assert after == (bytes(MIB) + before[MIB : 2 * MIB]).ljust(len(before), b"\0")
    assert after != before
    assert path.stat().st_blocks * 512 < path.stat().st_size


def test_signatures_of_the_whole_count_for_its_parts(bundle: Path, tmp_path: Path) -> None:
    """Inside, and in the file beside; who changes a part breaks it."""
    owner = Owner(tmp_path, "alice", 1)
    sign(bundle, owner)
    path = thin(bundle, TARGETS[0])
    ingot_runtime.load(path, keys=[owner.raw]).close()
    assert main(["verify", str(thin(bundle, TARGETS[1])), "--require-key", str(owner.public)]) == 0
    with opened(path) as source:
        rewrite_bundle(source, Changes({(head.LOCK, 0): source.section(head.LOCK) + b"\0"}), path)
    with pytest.raises(SignatureError, match="is of another bundle"):
        ingot_runtime.load(path, keys=[owner.raw])


def test_a_target_that_the_bundle_has_not(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """It says which ones there are."""
    line = ["thin", str(bundle), "--target", "riscv64", "-o", str(tmp_path / "o.ingot")]
    assert main(line) == 1
    assert "x86-64-v2, aarch64" in capsys.readouterr().err
    assert main([*line[:-1], str(bundle)]) == 1
