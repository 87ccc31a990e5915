"""Hostile bundles: every rule of FORMAT.md refuses by the same error of both loaders, and nothing
else ever happens."""

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.loaders import LOADERS, refused_by_both
from tests.hostile.tiny import WIDTH, tiny_contents, tiny_reference, tree_entry

import ingot_runtime
from ingot_artifacts.bundle.encode_head import encode_head
from ingot_artifacts.bundle.encode_plan import encode_plan
from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.format import header as head
from ingot_runtime.format import plan as plans
from ingot_runtime.format.sha256 import sha256

X = np.arange(4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "tiny.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


def refused(data: bytes | Path, verify: str = "full") -> ingot_runtime.BundleError:
    """Load it; return the error, which must have four parts."""
    error = refused_by_both(data, verify=verify)
    assert error.exit_code in (1, 4, 5)
    return error


def require_right(data: bytes, seed: int = 0, output: str = "y") -> None:
    """Both loaders give the bits that there must be."""
    for load in LOADERS.values():
        session = load(data)
        assert (session.run({"x": X})[output] == tiny_reference(X, seed)).all()
        session.close()


def sections(data: bytes) -> list[head.Section]:
    count = head.check_header(data[: head.HEADER_SIZE_BYTES], len(data))
    table = data[head.HEADER_SIZE_BYTES :][: count * head.ROW_SIZE_BYTES]
    return head.check_table(data[: head.HEADER_SIZE_BYTES], table, len(data))


def sealed(data: bytes, rows: list[head.Section]) -> bytes:
    prefix, _ = encode_head(rows, len(data))
    return prefix + data[len(prefix) :]


def test_truncated_at_every_border(bundle: Path) -> None:
    """A bundle cut at any section's begin or end, or one byte beside, is refused."""
    data = bundle.read_bytes()
    borders = {0, head.HEADER_SIZE_BYTES}
    for row in sections(data):
        borders |= {row.offset, row.offset + row.size_bytes}
    for border in sorted(borders):
        for end in (border - 1, border, border + 1):
            if 0 <= end < len(data):
                refused(data[:end])


def test_changed_byte_is_refused_or_not_read(bundle: Path) -> None:
    """A flipped bit is refused, except in what this run never reads: lock, debug, program (aot),
    other MiBs of weights."""
    data = bundle.read_bytes()
    rng = random.Random(3)
    unread = (head.LOCK, head.DEBUG, head.PROGRAM)
    places = set(range(0, 4096, 37)) | {rng.randrange(len(data)) for _ in range(60)}
    for row in sections(data):
        places |= {row.offset, row.offset + row.size_bytes - 1}
    weights = next(row for row in sections(data) if row.kind == head.WEIGHTS)
    read_mib = range(weights.offset + (1 << 20), weights.offset + (2 << 20))
    for place in sorted(places):
        changed = bytearray(data)
        changed[place] ^= 1 << rng.randrange(8)
        inside = next(
            (row for row in sections(data) if 0 <= place - row.offset < row.size_bytes), None
        )
        if inside is not None and (
            inside.kind in unread or (inside.kind == head.WEIGHTS and place not in read_mib)
        ):
            require_right(bytes(changed))
        else:
            refused(bytes(changed))


def test_fast_and_code_modes(bundle: Path) -> None:
    """ "fast" finds a damaged weight too; "code" does not look at weights, and says so in its
    name."""
    data = bytearray(bundle.read_bytes())
    weights = next(row for row in sections(bytes(data)) if row.kind == head.WEIGHTS)
    data[weights.offset + (1 << 20) + 64] ^= 1
    for mode in ("full", "fast"):
        error = refused(bytes(data), mode)
        assert isinstance(error, ingot_runtime.DigestError)
        assert error.what == "weights are damaged in MiB 1"
    for load in LOADERS.values():
        load(bytes(data), verify="code").close()


def test_not_a_bundle(tmp_path: Path) -> None:
    """Files of other kinds are named as such, with exit code 1; an empty one too."""
    for content in (b"", b"\x7fELF" + bytes(100), b"PK\x03\x04", bytes(200)):
        error = refused(content)
        assert isinstance(error, ingot_runtime.NotABundleError)
        assert error.exit_code == 1
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "not a regular file"),
        (tmp_path / "pipe", "not a regular file"),
    ):
        error = refused(path)
        assert isinstance(error, ingot_runtime.FileError)
        assert why in error.why


@pytest.mark.parametrize(
    ("at", "value"), [(8, 2), (8, 0), (10, head.VERSION_MINOR + 1), (10, 0xFFFF)]
)
def test_other_version(bundle: Path, at: int, value: int) -> None:
    """A newer or older format version is refused as such, exit code 5, before anything else of the
    header counts."""
    data = bytearray(bundle.read_bytes())
    data[at : at + 2] = struct.pack("<H", value)
    error = refused(bytes(data))
    assert isinstance(error, ingot_runtime.VersionError)
    assert error.exit_code == 5
    assert "update ingot-runtime" in error.do


def _overlap(rows: list[head.Section]) -> None:
    rows[1].offset = rows[0].offset


def _outside(rows: list[head.Section]) -> None:
    rows[-1].offset += 1 << 40


def _overflow(rows: list[head.Section]) -> None:
    rows[-1].size_bytes = (1 << 64) - rows[-1].offset


def _longer(rows: list[head.Section]) -> None:
    rows[2].size_bytes += 1 << 30


def _shorter(rows: list[head.Section]) -> None:
    rows[-1].size_bytes -= 1 << 20


def _twice(rows: list[head.Section]) -> None:
    rows[3].kind, rows[3].id = rows[2].kind, rows[2].id


def _unknown(rows: list[head.Section]) -> None:
    rows[3].kind = 99


def _misaligned(rows: list[head.Section]) -> None:
    rows[3].offset += 1


def _alignment(rows: list[head.Section]) -> None:
    rows[3].alignment = 1


def _unsorted(rows: list[head.Section]) -> None:
    rows[2], rows[3] = rows[3], rows[2]


def _missing(rows: list[head.Section]) -> None:
    rows[3].id = 7


def _no_digest(rows: list[head.Section]) -> None:
    rows[3].digest = bytes(32)


@pytest.mark.parametrize(
    "forge",
    [
        _overlap, _outside, _overflow, _longer, _shorter, _twice, _unknown, _misaligned, _alignment, _unsorted, _missing,
        _no_digest,
    ],
)  # fmt: skip
def test_forged_table(bundle: Path, forge: Callable[[list[head.Section]], None]) -> None:
    """A table that breaks one rule is refused although its root digest is right."""
    data = bundle.read_bytes()
    rows = sections(data)
    forge(rows)
    expected = ingot_runtime.VersionError if forge is _unknown else ingot_runtime.FormatError
    assert isinstance(refused(sealed(data, rows)), expected)


def test_million_sections(bundle: Path) -> None:
    """A header that promises a million sections is refused before a table of that size is read."""
    data = bytearray(bundle.read_bytes())
    data[20:24] = struct.pack("<I", 1_000_000)
    assert "bad number of sections" in str(refused(bytes(data)))


def test_bytes_between_sections(bundle: Path) -> None:
    """A byte that no digest covers must be zero."""
    data = bytearray(bundle.read_bytes())
    rows = sections(bytes(data))
    data[rows[1].offset - 1] = 1
    assert rows[0].offset + rows[0].size_bytes < rows[1].offset
    assert "not zero" in str(refused(bytes(data)))


def forged_plan(data: bytes, change: Callable[[plans.BundlePlan], None]) -> bytes:
    """Write another plan, the manifest that agrees with it, and all digests."""
    rows = sections(data)
    by_kind = {row.kind: row for row in rows}
    row = by_kind[head.PLAN]
    plan = plans.decode_plan(data[row.offset : row.offset + row.size_bytes])
    change(plan)
    out = bytearray(data)
    for kind, payload in (
        (head.PLAN, encode_plan(plan)),
        (head.MANIFEST, plans.manifest_bytes(plan)),
    ):
        place = by_kind[kind]
        following = rows[rows.index(place) + 1]
        assert place.offset + len(payload) <= following.offset
        out[place.offset : following.offset] = payload.ljust(following.offset - place.offset, b"\0")
        place.size_bytes, place.digest = len(payload), sha256(payload)
    return sealed(bytes(out), rows)


def test_forged_name_is_another_valid_bundle(bundle: Path) -> None:
    """A consistent forgery may rename: the answer is the same bits under the new name."""

    def rename(plan: plans.BundlePlan) -> None:
        plan.outputs[0].name = "z"
        plan.model = "ynit"

    require_right(forged_plan(bundle.read_bytes(), rename), output="z")


def _dtype(plan: plans.BundlePlan) -> None:
    plan.inputs[0].dtype = 6


def _rank(plan: plans.BundlePlan) -> None:
    plan.outputs[0].dims = (4, 8, 1)


def _size(plan: plans.BundlePlan) -> None:
    plan.inputs[0].dims = (4, 9)


def _output_size(plan: plans.BundlePlan) -> None:
    plan.outputs[0].dims = (1, 8)


def _no_input(plan: plans.BundlePlan) -> None:
    plan.inputs = ()


def _more_kernels(plan: plans.BundlePlan) -> None:
    plan.variants[0].kernel_count = 2


def _workspace(plan: plans.BundlePlan) -> None:
    plan.variants[0].workspace_bytes = (64,)


def _range(plan: plans.BundlePlan) -> None:
    plan.variants[0].ranges = ((0, 1 << 40),)


@pytest.mark.parametrize(
    "change", [_dtype, _rank, _size, _output_size, _no_input, _more_kernels, _workspace, _range]
)  # fmt: skip
def test_forged_plan_cannot_overrun(
    bundle: Path, change: Callable[[plans.BundlePlan], None]
) -> None:
    """A plan, manifest and digests that agree with each other but not with the image are
    refused."""
    assert isinstance(refused(forged_plan(bundle.read_bytes(), change)), ingot_runtime.FormatError)


def test_manifest_must_be_the_plans(bundle: Path) -> None:
    """A manifest that tells another story than the plan is refused, whatever its msgpack is."""
    data = bundle.read_bytes()
    rows = sections(data)
    row = next(row for row in rows if row.kind == head.MANIFEST)
    for payload in (
        data[row.offset : row.offset + row.size_bytes].replace(b"tiny", b"ynit"),
        b"\xc1" * row.size_bytes,
    ):
        row.digest = sha256(payload)
        forged = sealed(data[: row.offset] + payload + data[row.offset + row.size_bytes :], rows)
        assert "manifest and plan disagree" in str(refused(forged))


def test_forged_feature_list_is_refused(bundle: Path) -> None:
    """A plan that hides a CPU feature which the image needs is refused before the image runs."""

    def hide(plan: plans.BundlePlan) -> None:
        plan.variants[0].features = plan.variants[0].features[1:]

    assert "CPU features" in str(refused(forged_plan(bundle.read_bytes(), hide)))


def test_forged_program_is_refused_by_the_vm(bundle: Path) -> None:
    """The vm steps only the program whose digest the image holds; aot does not read the section."""
    data = bundle.read_bytes()
    rows = sections(data)
    row = next(row for row in rows if row.kind == head.PROGRAM)
    payload = bytearray(data[row.offset : row.offset + row.size_bytes])
    payload[40] ^= 1
    row.digest = sha256(payload)
    forged = sealed(data[: row.offset] + payload + data[row.offset + row.size_bytes :], rows)
    with pytest.raises(ingot_runtime.FormatError, match="program and image disagree"):
        ingot_runtime.load(forged, executor="vm")
    require_right(forged)
