"""Writing bundles: the same bytes every time, whole or not at all, streamed."""

import asyncio
import functools
import os
import resource
import stat
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.hostile.tiny import WEIGHTS_AT, oracle_digest, tiny_contents, tiny_weights, tree_entry

from ingot_artifacts.bundle.contents import BundleContents, BundleTensor, Chunk
from ingot_artifacts.bundle.weights_tree import weights_tree
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.digest.tree import lane_checksum
from ingot_artifacts.errors import ArtifactError, OutputError
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.making.rules.bundle import BundleParts
from ingot_build_rules.making.stages.bundle_file import write_bundle_file
from ingot_build_rules.making.values.packed_constant import PackedConstant
from ingot_compiler.backends.host.support.host import HostDigests
from ingot_runtime.format import header as head
from ingot_runtime.format.describe import describe_source
from ingot_runtime.format.limits import MIB


def weights_of(path: Path) -> bytes:
    with opened(path) as source:
        row = source.by_key[head.WEIGHTS, 0]
        return os.pread(source.fd, row.size_bytes, row.offset)


def test_same_bytes(tmp_path: Path) -> None:
    """Two names, two folders, two umasks: one content, one root digest."""
    (tmp_path / "other").mkdir()
    roots = {write_bundle(tiny_contents(), tmp_path / "a.ingot", tree_entry)}
    old = os.umask(0o077)
    try:
        roots.add(write_bundle(tiny_contents(), tmp_path / "other" / "b.ingot", tree_entry))
    finally:
        os.umask(old)
    assert len(roots) == 1
    assert (tmp_path / "a.ingot").read_bytes() == (tmp_path / "other" / "b.ingot").read_bytes()
    assert stat.S_IMODE((tmp_path / "other" / "b.ingot").stat().st_mode) == 0o600
    assert b"a.ingot" not in (tmp_path / "a.ingot").read_bytes()


def test_root_digest_is_the_headers(tmp_path: Path) -> None:
    """What `write_bundle` returns is what the file says, and another model has another."""
    root = write_bundle(tiny_contents(), tmp_path / "a.ingot", tree_entry)
    with opened(tmp_path / "a.ingot") as source:
        assert source.root_digest.hex() == root
    assert write_bundle(tiny_contents(seed=1), tmp_path / "a.ingot", tree_entry) != root


def _later(chunk: memoryview) -> memoryview:
    return chunk


def test_chunks(tmp_path: Path) -> None:
    """Chunks at any offsets, given as bytes or brought by functions, land there; what lies between
    is zero."""
    size = 3 * MIB + 100
    expected = bytearray(3 * MIB + (1 << 16))
    chunks: list[Chunk] = []
    for offset, length in ((0, 10), (10, 64), (MIB - 1, 2 * MIB), (3 * MIB + 90, 10)):
        data = os.urandom(length)
        expected[offset : offset + length] = data
        chunk = memoryview(data)
        chunks.append((offset, chunk if length == 10 else functools.partial(_later, chunk)))
    contents = replace(_without_ranges(tiny_contents()), weights=chunks, weights_bytes=(size,))
    write_bundle(contents, tmp_path / "m.ingot", tree_entry)
    assert weights_of(tmp_path / "m.ingot") == bytes(expected)


def test_trees_of_sections_that_end_within_a_mib() -> None:
    """Sections follow each other at 64 KiB; the last entry of each is that of what is left and
    zeros."""
    first, second = os.urandom(MIB + 5), os.urandom(100)
    chunks: list[Chunk] = [(0, memoryview(first)), (MIB + (1 << 16), memoryview(second))]
    tree = weights_tree(chunks, (len(first), 0, len(second)), tree_entry)
    leaves = (first[:MIB], first[MIB:].ljust(MIB, b"\0"), second.ljust(MIB, b"\0"))
    assert tree == b"".join(tree_entry(memoryview(leaf)) for leaf in leaves)


def test_the_version_says_who_can_read_the_weights(tmp_path: Path) -> None:
    """Whole MiB are in format 1.0, others in 1.2."""
    for size, minor in ((2 * MIB, 0), (2 * MIB + 5, 2)):
        contents = replace(_without_ranges(tiny_contents()), weights=(), weights_bytes=(size,))
        write_bundle(contents, tmp_path / "m.ingot", tree_entry)
        with opened(tmp_path / "m.ingot") as source:
            assert describe_source(source)["format"] == f"1.{minor}"
        assert (tmp_path / "m.ingot").read_bytes()[10] == minor


def test_no_holes(tmp_path: Path) -> None:
    """What lies between weights has its place on the disk: a disk that is full later cannot end who
    maps the file."""
    chunks = [(0, memoryview(b"a")), (7 * MIB, memoryview(b"b"))]
    contents = replace(_without_ranges(tiny_contents()), weights=chunks, weights_bytes=(8 * MIB,))
    write_bundle(contents, tmp_path / "m.ingot", tree_entry)
    state = (tmp_path / "m.ingot").stat()
    assert state.st_blocks * 512 >= state.st_size


def _without_ranges(contents: BundleContents) -> BundleContents:
    return replace(
        contents,
        variants=tuple(replace(variant, weight_ranges=()) for variant in contents.variants),
    )


@pytest.mark.parametrize(
    "chunks",
    [
        [(64, memoryview(b"ab")), (65, memoryview(b"c"))],
        [(MIB - 1, memoryview(b"ab"))],
        [(-1, memoryview(b"a"))],
    ],
)
def test_chunks_that_overlap(tmp_path: Path, chunks: Sequence[Chunk]) -> None:
    """Chunks that overlap or leave the section are our bug: refused, and no file is left."""
    contents = replace(_without_ranges(tiny_contents()), weights=chunks, weights_bytes=(MIB,))
    with pytest.raises(ArtifactError, match="weights overlap or leave"):
        write_bundle(contents, tmp_path / "m.ingot", tree_entry)
    assert list(tmp_path.iterdir()) == []


def test_no_weights(tmp_path: Path) -> None:
    """A bundle without weights has neither section nor tree."""
    contents = replace(_without_ranges(tiny_contents()), weights=(), weights_bytes=())
    write_bundle(contents, tmp_path / "m.ingot", tree_entry)
    with opened(tmp_path / "m.ingot") as source:
        assert {row.kind for row in source.sections}.isdisjoint({head.WEIGHTS, head.TREE})


def test_compiled_digests_are_the_definition() -> None:
    """The compiler's native tree entry is the oracle's BLAKE3 and the checksum by its
    definition."""
    mib = memoryview(np.random.default_rng(0).bytes(MIB))
    entry = HostDigests().mib_tree_entry(mib)
    assert entry[:32] == oracle_digest(mib)
    assert entry[32:] == lane_checksum(mib).to_bytes(8, "little")


def test_missing_folder(tmp_path: Path) -> None:
    """No folder: four parts, exit code 1."""
    with pytest.raises(OutputError) as caught:
        write_bundle(tiny_contents(), tmp_path / "none" / "m.ingot", tree_entry)
    error = caught.value
    assert (error.exit_code, error.do) == (1, "make the folder first")
    assert error.why == "No such file or directory"
    assert str(tmp_path / "none" / "m.ingot") in error.where


def test_output_is_a_folder(tmp_path: Path) -> None:
    """A folder of that name is kept."""
    (tmp_path / "m.ingot").mkdir()
    with pytest.raises(OutputError, match="choose the name of a file"):
        write_bundle(tiny_contents(), tmp_path / "m.ingot", tree_entry)
    assert [path.name for path in tmp_path.iterdir()] == ["m.ingot"]


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that one may not write to: four parts (simulated, since root may write
    everywhere)."""

    def refuse(_path: str, _flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ingot_artifacts.store.atomic._private", refuse)
    with pytest.raises(OutputError, match="choose a folder that you may write to"):
        write_bundle(tiny_contents(), tmp_path / "m.ingot", tree_entry)


def test_no_space(tmp_path: Path) -> None:
    """A disk that is full (here: a limit of file size) leaves the old bundle and nothing
    half-written."""
    write_bundle(tiny_contents(), tmp_path / "m.ingot", tree_entry)
    before = (tmp_path / "m.ingot").read_bytes()
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, old[1]))
    try:
        with pytest.raises(OutputError) as caught:
            write_bundle(tiny_contents(seed=3), tmp_path / "m.ingot", tree_entry)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert caught.value.exit_code == 1
    assert (tmp_path / "m.ingot").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.ingot"]


def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C while weights are being read leaves nothing behind, and the old file as it was."""

    def interrupt() -> memoryview:
        raise KeyboardInterrupt

    (tmp_path / "m.ingot").write_bytes(b"old")
    contents = replace(tiny_contents(), weights=((WEIGHTS_AT, interrupt),))
    with pytest.raises(KeyboardInterrupt):
        write_bundle(contents, tmp_path / "m.ingot", tree_entry)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("m.ingot", b"old")]


def test_contents_that_break_the_format() -> None:
    """What no reader would take is refused by the writer."""
    with pytest.raises(ArtifactError, match="unknown dtype"):
        BundleTensor("x", "f31", ())
    with pytest.raises(ArtifactError, match="a name is too long"):
        BundleTensor("x" * 5000, "f32", ())
    with pytest.raises(ArtifactError, match="features are not sorted"):
        replace(tiny_contents().variants[0], features=("b", "a"))


def test_weights_fixture() -> None:
    """The fixture's weights differ by seed, so that tests of damage mean something."""
    assert (tiny_weights(0) != tiny_weights(1)).all()


class _Blobs:
    """Stands for a compilation whose weights lie in a cache: ``most`` were in memory at once."""

    def __init__(self, parts: BundleParts, contents: dict[str, bytes]) -> None:
        self.parts, self.contents, self.most = parts, contents, 0
        self.alive: weakref.WeakSet[memoryview] = weakref.WeakSet()
        self.build = self

    async def bundle_parts(self) -> BundleParts:
        return self.parts

    async def value(self, artifact: Artifact[memoryview]) -> memoryview:
        content = memoryview(self.contents[artifact.digest])
        self.alive.add(content)
        self.most = max(self.most, len(self.alive))
        return content


def test_weights_are_loaded_one_by_one(tmp_path: Path) -> None:
    """The file is what it is with all of them in memory, is left alone when it is there already,
    and no more than two are in memory beside the head of the file."""
    contents = {str(number): bytes([number + 1]) * 64 for number in range(6)}
    loader = cast("Any", None)
    packed = tuple(
        PackedConstant(64 * int(name), 64, Artifact(name, loader, raw=True), 0) for name in contents
    )
    head_bytes, end = b"head", MIB
    artifact: Artifact[memoryview] = Artifact("head", loader, raw=True)
    parts = BundleParts("00", artifact, packed, len(head_bytes) + end)
    blobs = _Blobs(parts, {**contents, "head": head_bytes})
    path, compilation = str(tmp_path / "m.ingot"), cast("Any", blobs)
    assert asyncio.run(write_bundle_file(compilation, path))
    assert not asyncio.run(write_bundle_file(compilation, path))
    whole = head_bytes + b"".join(contents.values())
    assert Path(path).read_bytes() == whole.ljust(len(head_bytes) + end, b"\0")
    assert blobs.most <= 3
    (tmp_path / "m.ingot").write_bytes(bytes(len(head_bytes) + end))
    assert asyncio.run(write_bundle_file(compilation, path))
    assert Path(path).read_bytes().startswith(whole)
